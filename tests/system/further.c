/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * further ADDRESS PORT OFFLOAD - a client that asks for a further connection of its session at each SIGUSR1,
 * until it gets one. Prints "ready" when it has a session, "refused: WHY" for each connection that is refused
 * though its session goes on, and "joined" in the end.
 */
#include "tests/lib/raw-client.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void ask(struct raw_client *c)
{
	raw_post_recvs(c, 1);
	raw_post_sends(c, 1, raw_arg_len(c));
	raw_need(raw_replies(c, 1, NULL) == 1, "not answered");
}

/* False: it is refused */
static bool join(char **argv, struct raw_client *c, const struct raw_client *first)
{
	int event;

	raw_prepare(c, argv[1], argv[2], "");
	raw_name_session(c, first->rep.session, first->rep.secret);
	event = raw_connect(c, &c->req, sizeof(c->req));
	if (event == RDMA_CM_EVENT_REJECTED) {
		printf("refused: %.*s\n", (int)sizeof(c->rej.text), c->rej.text);
		return false;
	}
	raw_expect(c, event, RDMA_CM_EVENT_ESTABLISHED);
	return true;
}

int main(int argc, char **argv)
{
	struct raw_client first, further;
	bool joined = false;
	sigset_t asked;
	int sig;

	if (argc != 4) {
		fputs("usage: further ADDRESS PORT OFFLOAD\n", stderr);
		return 2;
	}
	raw_case = "further";
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&asked);
	sigaddset(&asked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &asked, NULL);
	raw_prepare(&first, argv[1], argv[2], argv[3]);
	raw_start(&first);
	ask(&first);
	puts("ready");
	while (!joined) {
		sigwait(&asked, &sig);
		joined = join(argv, &further, &first);
		ask(&first);
		if (joined)
			ask(&further);
		raw_finish(&further);
	}
	raw_finish(&first);
	puts("joined");
	return 0;
}
