/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens: forged, with a flipped bit, for another request, address or time, and replayed. */
#include "protocol/token.h"
#include "tests/hostile/hostile.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void own_address(uint8_t as[16])
{
	memset(as, 0, 10);
	memset(as + 10, 0xff, 2);
	raw_need(inet_pton(AF_INET, hostile_address, as + 12) == 1, "hostile_address must be IPv4");
}

/* Connects with @req unchanged. True if it is accepted, false if it is refused with an access error */
static bool is_accepted(const struct reddn_wire_req *req)
{
	struct raw_client c;
	int event;

	hostile_prepare(&c);
	event = raw_connect(&c, req, sizeof(*req));
	raw_need(event == RDMA_CM_EVENT_ESTABLISHED || event == RDMA_CM_EVENT_REJECTED, "no answer");
	if (event == RDMA_CM_EVENT_REJECTED)
		raw_need(c.rej.reason == REDDN_REJ_ACCESS, c.rej.text);
	raw_finish(&c);
	return event == RDMA_CM_EVENT_ESTABLISHED;
}

/* Tries each use of a token but the right one */
static void try_other_uses(const struct raw_client *c, const struct token_key *key, const uint8_t as[16])
{
	static const size_t changed[] = {offsetof(struct reddn_wire_req, depth) + 1,
		offsetof(struct reddn_wire_req, slot_addr) + 6,
		offsetof(struct reddn_wire_req, slot_rkey) + 3,
		offsetof(struct reddn_wire_req, slot_size) + 2};
	struct reddn_wire_req req;
	uint8_t other[16];

	for (size_t i = 0; i < COUNT(changed); i++) {
		req = c->req;
		token_make(key, &req, as, (uint64_t)time(NULL), req.token);
		((uint8_t *)&req)[changed[i]] ^= 4;
		raw_need(!is_accepted(&req), "a token is good for another request");
	}
	req = c->req;
	memcpy(other, as, sizeof(other));
	other[15] ^= 1;
	token_make(key, &req, other, (uint64_t)time(NULL), req.token);
	raw_need(!is_accepted(&req), "a token is good from another address");
	for (int windows = -4; windows <= 4; windows++) {
		if (windows >= -2 && windows <= 2) /* valid, or valid soon */
			continue;
		token_make(key, &req, as, (uint64_t)(time(NULL) + windows * TOKEN_WINDOW_S), req.token);
		raw_need(!is_accepted(&req), "a token is good at another time");
	}
}

int hostile_tokens(int argc, char **argv)
{
	static uint8_t before[HOSTILE_MEMORY];
	struct raw_client c, replay;
	struct token_key key;
	struct reddn_wire_req req;
	uint8_t as[16];
	char why[200];

	(void)argc;
	raw_need(token_key_read(argv[0], &key, why, sizeof(why)) == 0, "no key");
	own_address(as);
	hostile_prepare(&c);
	req = c.req;
	raw_need(!is_accepted(&req), "no token is needed");
	for (unsigned i = 0; i < 200; i++) {
		for (size_t b = 0; b < sizeof(req.token); b++)
			req.token[b] = (uint8_t)hostile_random(256);
		raw_need(!is_accepted(&req), "a forged token is good");
	}
	token_make(&key, &req, as, (uint64_t)time(NULL), req.token);
	for (unsigned bit = 0; bit < 64; bit++) {
		req.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
		raw_need(!is_accepted(&req), "a token with a wrong bit is good");
		req.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	try_other_uses(&c, &key, as);

	token_make(&key, &c.req, as, (uint64_t)time(NULL), c.req.token);
	raw_start(&c);
	/* A token that is replayed at once: the replies go to its owner */
	hostile_prepare(&replay);
	if (raw_connect(&replay, &c.req, sizeof(c.req)) == RDMA_CM_EVENT_ESTABLISHED) {
		memset(replay.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
		memcpy(before, replay.mem, HOSTILE_MEMORY);
		raw_post_recvs(&replay, 1);
		raw_post_sends(&replay, 1, raw_arg_len(&replay));
		raw_replies(&replay, 1, NULL);
		raw_need(memcmp(before, replay.mem, HOSTILE_MEMORY) == 0,
			"a replayed token is good for other slots");
	}
	raw_finish(&replay);
	raw_finish(&c);
	token_key_wipe(&key);
	printf("%s: forged, stale, of another request and replayed\n", raw_case);
	return 0;
}
