/* SPDX-License-Identifier: BSD-2-Clause */
/* The bystander: gets each record in turn and compares all of its memory with the expected bytes. */
#include "tests/hostile/known.h"
#include "tools/load/histogram.h"
#include "util/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Polls without a pause: the measured time would be the pause */
static void await_reply(struct raw_client *c)
{
	uint64_t end = clock_ns() + RAW_PATIENCE_MS * 1000000ull;
	struct ibv_wc wc;
	int r;

	do {
		r = ibv_poll_cq(c->cq, 1, &wc);
		raw_need(r == 0 || (r > 0 && wc.status == IBV_WC_SUCCESS), "the session has ended");
		raw_need(clock_ns() < end, "no answer");
	} while (r == 0 || wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM);
}

int hostile_bystander(int argc, char **argv)
{
	static uint8_t want[HOSTILE_MEMORY + RAW_REQUEST];
	const struct known_table t = known_map(argv[0]);
	static struct histogram times;
	uint64_t right = 0;
	struct raw_client c;

	(void)argc;
	signal(SIGTERM, on_stop);
	hostile_prepare(&c);
	raw_start(&c);
	printf("bystander: slots %#x:%#" PRIx64 ":%d\n", c.mr->rkey, (uint64_t)(uintptr_t)c.mem,
		HOSTILE_MEMORY);
	fflush(stdout);
	memset(c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	for (uint64_t n = 0; !stopped; n++) {
		unsigned slot = n % RAW_DEPTH;
		uint64_t at = n * 16 % t.window, begin;

		memset(c.mem + slot * RAW_SLOT, HOSTILE_FILLER, RAW_SLOT);
		known_put_probe(&c, 0, known_look(&t, at).fp, at);
		known_put_probe(&c, 1, known_look(&t, at).fp, at);
		memcpy(want, c.mem, sizeof(want));
		raw_need(known_model(&c, &t, slot, want), "the table is damaged");
		raw_post_recvs(&c, 1);
		begin = clock_ns();
		raw_post_sends(&c, 1, raw_arg_len(&c));
		await_reply(&c);
		histogram_add(&times, clock_ns() - begin);
		raw_need(memcmp(c.mem, want, sizeof(want)) == 0,
			"a wrong answer, or other memory has changed");
		right++;
		usleep(2000);
	}
	printf("bystander: %" PRIu64 " right answers, p50 %" PRIu64 " ns, p99 %" PRIu64 " ns\n", right,
		histogram_at(&times, 0.5), histogram_at(&times, 0.99));
	raw_finish(&c);
	return right > 0 ? 0 : 1;
}
