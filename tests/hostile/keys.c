/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory keys of the server and of other clients, neighbours of keys, and guessed keys: in one-sided
 * operations, in SENDs and as reply slots. */
#include "tests/hostile/hostile.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW_BITS = 40, WINDOWS = 4 /* addresses to guess: windows of regions have them */ };

static void one_sided(const struct hostile_key *k, unsigned op, bool used)
{
	struct ibv_send_wr wr;
	struct raw_client c;
	uint8_t before[64];

	hostile_prepare(&c);
	wr = hostile_one_sided(c.id->verbs, op, k);
	raw_start(&c);
	if (used) {
		raw_post_recvs(&c, 2);
		memset(raw_request(&c), 0, raw_arg_len(&c));
		raw_post_sends(&c, 1, raw_arg_len(&c));
		raw_need(raw_replies(&c, 1, NULL) == 1, "no answer");
	}
	memset(raw_request(&c), HOSTILE_FILLER, sizeof(before));
	memcpy(before, raw_request(&c), sizeof(before));
	raw_need(hostile_post(&c, &wr, 8) != IBV_WC_SUCCESS, "the server's memory can be reached");
	raw_need(memcmp(before, raw_request(&c), sizeof(before)) == 0, "data came back");
	raw_finish(&c);
}

int hostile_keys(int argc, char **argv)
{
	unsigned n = 0;

	for (int i = 0; i < argc; i++) {
		struct hostile_key k = hostile_parse_key(argv[i]);

		for (unsigned op = 0; op < HOSTILE_ONE_SIDED; op++, n++)
			one_sided(&k, op, n & 1);
		/* Neighbours: key numbers are consecutive in many devices, their low byte is not random */
		k.key += 0x100 + 1;
		one_sided(&k, n % HOSTILE_ONE_SIDED, true);
		n++;
	}
	printf("%s: %u attempts with %d keys\n", raw_case, n, argc);
	return 0;
}

/* Around the client's own key: above and below, with its low byte and with others, at addresses that the
 * server may have */
int hostile_guesses(int argc, char **argv)
{
	uint32_t n = (uint32_t)hostile_number(argv[0]), own;
	struct raw_client c;

	(void)argc;
	hostile_prepare(&c);
	own = c.mr->rkey;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t away = (i / 4 + 1) << 8;
		struct hostile_key k = {.key = (i & 1 ? own + away : own - away) + (i & 2 ? i >> 2 : 0),
			.addr = i % WINDOWS ? (uint64_t)(i % WINDOWS) << WINDOW_BITS : (uintptr_t)c.mem};

		one_sided(&k, i % HOSTILE_ONE_SIDED, false);
	}
	raw_finish(&c);
	printf("%s: %u around %#x\n", raw_case, n, own);
	return 0;
}

/* A SEND that invalidates a key would break its other users */
int hostile_invalidate(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const struct hostile_key k = hostile_parse_key(argv[i]);
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = k.key};
		struct raw_client c;

		hostile_prepare(&c);
		raw_start(&c);
		raw_post_recvs(&c, 1);
		memset(raw_request(&c), 0, raw_arg_len(&c));
		raw_need(hostile_post(&c, &wr, raw_arg_len(&c)) != IBV_WC_SUCCESS,
			"a key of the server was invalidated");
		raw_finish(&c);
	}
	printf("%s: %d keys\n", raw_case, argc);
	return 0;
}

int hostile_slots(int argc, char **argv)
{
	const struct hostile_key k = hostile_parse_key(argv[0]);
	struct raw_client c;

	(void)argc;
	hostile_prepare(&c);
	c.req.slot_addr = htobe64(k.addr);
	c.req.slot_rkey = htobe32(k.key);
	raw_start(&c);
	raw_post_recvs(&c, 1);
	memset(raw_request(&c), 0, raw_arg_len(&c));
	raw_post_sends(&c, 1, raw_arg_len(&c));
	raw_expect_disconnect(&c);
	raw_need(!hostile_answered(&c), "an answer");
	raw_finish(&c);
	printf("%s: refused by this client's own NIC\n", raw_case);
	return 0;
}
