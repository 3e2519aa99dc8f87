/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle-clients ADDRESS PORT OFFLOAD KEY SESSIONS [REQUESTS FILE] - connects SESSIONS clients, with tokens by
 * the key in file KEY unless that is "", that send no request, and prints "connected". Without REQUESTS it
 * disconnects them and ends. Else it waits for FILE, sends REQUESTS requests on each of them at once, and
 * waits for a signal.
 */
#include "tests/lib/raw-client.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, POLL_US = 10000 };

int main(int argc, char **argv)
{
	static struct raw_client c[MOST];
	unsigned n = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	static struct token_key key;
	char why[200];

	raw_case = "idle-clients";
	if (!n || n > MOST || (argc != 6 && argc != 8))
		return 2;
	if (*argv[4])
		raw_need(token_key_read(argv[4], &key, why, sizeof(why)) == 0, "no key");
	for (unsigned i = 0; i < n; i++) {
		raw_prepare(&c[i], argv[1], argv[2], argv[3]);
		if (key.len)
			raw_sign(&c[i], &key);
		raw_start(&c[i]);
		raw_post_recvs(&c[i], RAW_WRS);
	}
	printf("connected\n");
	fflush(stdout);
	if (argc == 8) {
		while (access(argv[7], F_OK))
			usleep(POLL_US);
		for (unsigned i = 0; i < n; i++)
			raw_post_sends(&c[i], (unsigned)atoi(argv[6]), raw_arg_len(&c[i]));
		pause();
	}
	for (unsigned i = 0; i < n; i++) {
		rdma_disconnect(c[i].id);
		raw_finish(&c[i]);
	}
	return 0;
}
