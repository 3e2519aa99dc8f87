/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gap-clients ADDRESS PORT OFFLOAD there FILE - connects three clients and prints "connected". Once FILE is
 * there, the first disconnects, the second sends more bytes than a request has, which breaks its queue pair
 * at the server; prints "done". Expects that the server disconnects the second and the third, and prints
 * "ended". gap-clients ADDRESS PORT OFFLOAD come N - sends N requests for connections at once and prints
 * "asked". Expects that all are accepted; each of them then disconnects.
 */
#include "tests/lib/raw-client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 128, POLL_US = 10000, PATIENCE = 30 /* of raw_event() */ };

static struct raw_client c[MOST];

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* A machine may be busy */
static int wait_event(struct raw_client *client)
{
	int event = -1;

	for (int i = 0; i < PATIENCE && event < 0; i++)
		event = raw_event(client, RAW_PATIENCE_MS);
	return event;
}

static void there(char **argv)
{
	for (unsigned i = 0; i < 3; i++) {
		raw_prepare(&c[i], argv[1], argv[2], argv[3]);
		raw_start(&c[i]);
		raw_post_recvs(&c[i], RAW_WRS);
	}
	say("connected");
	while (access(argv[5], F_OK))
		usleep(POLL_US);
	rdma_disconnect(c[0].id);
	raw_post_sends(&c[1], 1, raw_arg_len(&c[1]) + 8);
	say("done");
	for (unsigned i = 1; i < 3; i++)
		raw_need(wait_event(&c[i]) == RDMA_CM_EVENT_DISCONNECTED, "the server does not disconnect");
	say("ended");
}

static void come(char **argv)
{
	unsigned n = (unsigned)atoi(argv[5]);

	raw_need(n && n <= MOST, "the number of clients");
	for (unsigned i = 0; i < n; i++)
		raw_prepare(&c[i], argv[1], argv[2], argv[3]);
	for (unsigned i = 0; i < n; i++)
		raw_ask(&c[i], &c[i].req, sizeof(c[i].req));
	say("asked");
	for (unsigned i = 0; i < n; i++) {
		int event = wait_event(&c[i]);

		raw_need(event == RDMA_CM_EVENT_ESTABLISHED,
			event == RDMA_CM_EVENT_REJECTED ? c[i].rej.text : "a client is not accepted");
		rdma_disconnect(c[i].id);
	}
}

int main(int argc, char **argv)
{
	raw_case = "gap-clients";
	if (argc != 6)
		return 2;
	if (strcmp(argv[4], "there") == 0)
		there(argv);
	else
		come(argv);
	for (unsigned i = 0; i < MOST && c[i].id; i++)
		raw_finish(&c[i]);
	return 0;
}
