/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * refused-clients ADDRESS PORT COUNT [why|SOURCE]: connects @COUNT times to an offload that there is not, or
 * asks as often why a session ended that there never was, from address SOURCE if it is given, and prints how
 * often it was answered with which words.
 */
#include "tests/lib/raw-client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	bool why;

	raw_case = "refused-clients";
	if (!n)
		return 2;
	why = argc > 4 && strcmp(argv[4], "why") == 0;
	if (argc > 4 && !why)
		raw_source = argv[4];
	for (unsigned i = 0; i < n; i++) {
		struct raw_client c;

		raw_prepare(&c, argv[1], argv[2], "nothing");
		if (why)
			c.req.flags = REDDN_REQ_END_REASON;
		raw_need(raw_connect(&c, &c.req, sizeof(c.req)) == RDMA_CM_EVENT_REJECTED, "not refused");
		printf("%.*s\n", (int)sizeof(c.rej.text), c.rej.text);
		raw_finish(&c);
	}
	return 0;
}
