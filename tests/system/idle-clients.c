/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle-clients ADDRESS PORT OFFLOAD SESSIONS [REQUESTS FILE] - connects SESSIONS clients that send no
 * request, and prints "connected". Without REQUESTS it disconnects them and ends. Else it waits for FILE,
 * sends REQUESTS requests on each of them at once, and waits for a signal.
 */
#include "tests/lib/raw-client.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, POLL_US = 10000 };

int main(int argc, char **argv)
{
	static struct raw_client c[MOST];
	unsigned n = argc > 4 ? (unsigned)atoi(argv[4]) : 0;

	raw_case = "idle-clients";
	if (!n || n > MOST || (argc != 5 && argc != 7))
		return 2;
	for (unsigned i = 0; i < n; i++) {
		raw_prepare(&c[i], argv[1], argv[2], argv[3]);
		raw_start(&c[i]);
		raw_post_recvs(&c[i], RAW_WRS);
	}
	printf("connected\n");
	fflush(stdout);
	if (argc == 7) {
		while (access(argv[6], F_OK))
			usleep(POLL_US);
		for (unsigned i = 0; i < n; i++)
			raw_post_sends(&c[i], (unsigned)atoi(argv[5]), raw_arg_len(&c[i]));
		pause();
	}
	for (unsigned i = 0; i < n; i++) {
		rdma_disconnect(c[i].id);
		raw_finish(&c[i]);
	}
	return 0;
}
