/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * costs-table FILE - prints the costs of a clock file as a C initializer of struct costs, for programs with
 * built-in costs of one NIC.
 */
#include "costs/costs.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct costs c;
	char why[200];

	if (argc != 2 || costs_read(argv[1], &c, why, sizeof(why)) < 0) {
		fprintf(stderr, "costs-table: %s\n", argc == 2 ? why : "an argument is missing: FILE");
		return 1;
	}
#define MEMBER(name) printf("." #name " = %" PRIu64 ",\n", (uint64_t)c.name)
	MEMBER(pus);
	MEMBER(doorbell);
	MEMBER(fetch);
	MEMBER(issue);
	MEMBER(wait);
	MEMBER(cqe);
	MEMBER(wire);
	MEMBER(write);
	MEMBER(read);
	MEMBER(atomic);
	MEMBER(gather);
	MEMBER(pu);
	MEMBER(pu_read);
	MEMBER(atomic_unit);
	MEMBER(port_byte);
	MEMBER(pcie_byte);
	MEMBER(packet_bytes);
	MEMBER(clock_khz);
	return 0;
}
