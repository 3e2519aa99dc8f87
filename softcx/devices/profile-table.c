/* SPDX-License-Identifier: BSD-2-Clause */
/* profile-table.c - profile-table FILE prints a profile as the inside of a C initializer. */
#include "softcx/devices/profile.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char why[PROFILE_WHY];
	struct profile p;

	if (argc != 2 || profile_read(argv[1], &p, why) < 0) {
		fprintf(stderr, "%s\n", argc == 2 ? why : "usage: profile-table FILE");
		return 1;
	}
	printf(".name = \"%s\",\n.title = \"%s\",\n.value = {", p.name, p.title);
	for (unsigned i = 0; i < PROFILE_FACTS; i++)
		printf("%" PRIu64 ", ", p.value[i]);
	printf("},\n");
	return 0;
}
