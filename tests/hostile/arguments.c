/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to hash-get: every pattern of argument bytes at the edges of windows, forged offsets, wrong
 * lengths, and random bytes. */
#include "tests/hostile/known.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

enum { ENTRIES = 8 };

struct tally {
	unsigned connects, answers, refusals;
};

/*
 * Sends the request in @c for slot @*slot and compares all slots with the expected bytes. If no answer is
 * possible, the server must end the session; the client then connects again.
 */
static void attempt(struct raw_client *c, const struct known_table *t, unsigned *slot, struct tally *tally)
{
	static uint8_t want[HOSTILE_MEMORY + RAW_REQUEST];
	enum ibv_wc_status status;
	bool answered;

	memset(c->mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	memcpy(want, c->mem, sizeof(want));
	answered = known_model(c, t, *slot, want);
	raw_post_recvs(c, 1);
	raw_post_sends(c, 1, raw_arg_len(c));
	if (!answered) {
		uint8_t request[RAW_REQUEST];

		raw_expect_disconnect(c);
		raw_need(!hostile_answered(c), "an impossible answer");
		/* A step before the failed one may have written to its own slot */
		for (unsigned i = 0; i < RAW_DEPTH; i++)
			raw_need(i == *slot ||
					 memcmp(c->mem + i * RAW_SLOT, want + i * RAW_SLOT, RAW_SLOT) == 0,
				"another slot has changed");
		memcpy(request, raw_request(c), sizeof(request));
		raw_finish(c);
		hostile_prepare(c);
		raw_start(c);
		memcpy(raw_request(c), request, sizeof(request));
		*slot = 0;
		tally->refusals++;
		tally->connects++;
		return;
	}
	raw_need(raw_replies(c, 1, &status) == 1, "no answer");
	raw_need(memcmp(c->mem, want, sizeof(want)) == 0, "wrong bytes in the slots");
	*slot = (*slot + 1) % RAW_DEPTH;
	tally->answers++;
}

static void tell(const struct tally *t)
{
	printf("%s: %u answers, %u sessions ended\n", raw_case, t->answers, t->refusals);
}

int hostile_arguments(int argc, char **argv)
{
	static const uint8_t zero[KNOWN_FP], ones[KNOWN_FP] = {255, 255, 255, 255, 255, 255},
					     one[KNOWN_FP] = {0, 0, 0, 0, 0, 1};
	const struct known_table t = known_map(argv[0]);
	const uint64_t w = t.window;
	const uint64_t edges[] = {0, 1, 8, 15, 16, 17, w / 2 - 1, w - 17, w - 16, w - 15, w - 14, w - 8,
		w - 1, w, w + 1, w + 4096, UINT32_MAX, 1ull << 39, UINT64_MAX};
	struct raw_client c;
	struct tally tally = {0};
	unsigned slot = 0;

	(void)argc;
	hostile_prepare(&c);
	raw_start(&c);
	for (size_t i = 0; i < COUNT(edges); i++)
		for (unsigned p = 0; p < c.rep.table.probes; p++) {
			const uint8_t *fps[] = {zero, ones, one};

			for (size_t f = 0; f < 3; f++) {
				known_put_probe(&c, 0, ones, 0);
				known_put_probe(&c, 1, ones, 16);
				known_put_probe(&c, p, fps[f], edges[i]);
				attempt(&c, &t, &slot, &tally);
			}
		}
	/* Between the buckets, with the bytes that lie there as fingerprint: the step that follows takes what
	 * it finds */
	for (uint64_t bucket = 0, n = 0; bucket < w - 16 && n < ENTRIES; bucket += 16) {
		const struct known_bucket s = known_look(&t, bucket);

		if (memcmp(s.fp, zero, KNOWN_FP) == 0)
			continue;
		n++;
		for (unsigned d = 0; d < 16; d++) {
			const struct known_bucket between = known_look(&t, bucket + d);

			known_put_probe(&c, 0, between.fp, bucket + d);
			known_put_probe(&c, 1, ones, 0);
			attempt(&c, &t, &slot, &tally);
		}
	}
	raw_need(tally.answers > 50 && tally.refusals > 20, "too little was tried");
	tell(&tally);
	raw_finish(&c);
	return 0;
}

int hostile_bytes(int argc, char **argv)
{
	const struct known_table t = known_map(argv[0]);
	struct raw_client c;
	struct tally tally = {0};
	unsigned slot = 0;

	raw_need(argc == 3, "FILE SEED COUNT");
	hostile_seed(hostile_number(argv[1]));
	hostile_prepare(&c);
	raw_start(&c);
	for (uint64_t n = hostile_number(argv[2]); n > 0; n--) {
		unsigned half = KNOWN_FP + c.rep.table.offset_len;

		for (uint32_t i = 0; i < raw_arg_len(&c); i++)
			raw_request(&c)[i] = (uint8_t)hostile_random(256);
		/* Most offsets lie inside of the window, to get beyond the check of the window */
		for (unsigned p = 0; p < c.rep.table.probes && hostile_random(16); p++) {
			uint64_t at = hostile_random(8) ? hostile_random(t.window / 16) * 16
							: hostile_random(t.window - 15);
			const struct known_bucket s = known_look(&t, at);

			known_put_probe(&c, p, hostile_random(2) ? s.fp : raw_request(&c) + p * half, at);
		}
		attempt(&c, &t, &slot, &tally);
	}
	tell(&tally);
	raw_finish(&c);
	return 0;
}

/*
 * The last bytes of a request that is too short are those that its instance was armed with: 0. Its answer is
 * that of the completed request. A request that is too long is refused.
 */
int hostile_lengths(int argc, char **argv)
{
	static uint8_t want[HOSTILE_MEMORY + RAW_REQUEST];
	const struct known_table t = known_map(argv[0]);
	struct raw_client c;
	uint32_t len, n;

	(void)argc;
	hostile_prepare(&c);
	raw_start(&c);
	n = raw_arg_len(&c);
	raw_finish(&c);
	for (len = 0; len <= n + 2; len++) {
		enum ibv_wc_status status;
		unsigned got;

		hostile_prepare(&c);
		raw_start(&c);
		/* A good request first: the next one must not see its bytes */
		for (unsigned p = 0; p < 2; p++)
			known_put_probe(&c, p, known_look(&t, 16 * p).fp, 16 * p);
		raw_post_recvs(&c, 2);
		raw_post_sends(&c, 1, n);
		raw_need(raw_replies(&c, 1, &status) == 1, "no answer to a good request");
		memset(c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
		memset(raw_request(&c), 0, n);
		raw_post_sends(&c, 1, len);
		got = raw_replies(&c, 1, &status);
		if (len > n)
			raw_need(got == 0, "a request that is too long is answered");
		memcpy(want, c.mem, sizeof(want));
		memset(want, HOSTILE_FILLER, HOSTILE_MEMORY);
		if (got == 1)
			raw_need(known_model(&c, &t, 1, want), "an impossible answer");
		raw_need(memcmp(want, c.mem, sizeof(want)) == 0, "wrong bytes in the slots");
		raw_finish(&c);
	}
	printf("%s: 0 to %u bytes\n", raw_case, n + 2);
	return 0;
}
