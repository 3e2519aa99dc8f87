/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens: forged, with a flipped bit, for another request, connection or time, and replayed. */
#include "protocol/token.h"
#include "tests/hostile/hostile.h"
#include "util/array.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Connects with c->req, and is done with @c. True if it is accepted, false if it is refused with an access
 * error */
static bool is_accepted(struct raw_client *c)
{
	int event = raw_connect(c, &c->req, sizeof(c->req));

	raw_need(event == RDMA_CM_EVENT_ESTABLISHED || event == RDMA_CM_EVENT_REJECTED, "no answer");
	if (event == RDMA_CM_EVENT_REJECTED)
		raw_need(c->rej.reason == REDDN_REJ_ACCESS, c->rej.text);
	raw_finish(c);
	return event == RDMA_CM_EVENT_ESTABLISHED;
}

static void try_forged(const struct token_key *key)
{
	struct raw_client c;

	hostile_prepare(&c);
	raw_need(!is_accepted(&c), "no token is needed");
	for (unsigned i = 0; i < 200; i++) {
		hostile_prepare(&c);
		for (size_t b = 0; b < sizeof(c.req.token); b++)
			c.req.token[b] = (uint8_t)hostile_random(256);
		raw_need(!is_accepted(&c), "a forged token is good");
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		hostile_prepare(&c);
		raw_sign(&c, key);
		c.req.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
		raw_need(!is_accepted(&c), "a token with a wrong bit is good");
	}
}

/* Tries each use of a token but the right one */
static void try_other_uses(const struct token_key *key)
{
	static const size_t requests[] = {offsetof(struct reddn_wire_req, depth) + 1,
		offsetof(struct reddn_wire_req, slot_addr) + 6,
		offsetof(struct reddn_wire_req, slot_rkey) + 3,
		offsetof(struct reddn_wire_req, slot_size) + 2};
	static const struct {
		size_t at;
		const char *what;
	} others[] = {
		{offsetof(struct token_ends, client) + 15, "a token is good from another address"},
		{offsetof(struct token_ends, gid) + 15, "a token is good from another GID"},
		{offsetof(struct token_ends, server) + 15, "a token is good at another server"},
		{offsetof(struct token_ends, port), "a token is good at another port"},
		{offsetof(struct token_ends, client_qpn), "a token is good for another queue pair"},
	};
	struct token_ends ends;
	struct raw_client c;

	for (size_t i = 0; i < COUNT(requests); i++) {
		hostile_prepare(&c);
		raw_sign(&c, key);
		((uint8_t *)&c.req)[requests[i]] ^= 4;
		raw_need(!is_accepted(&c), "a token is good for another request");
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		hostile_prepare(&c);
		ends = raw_ends(&c);
		((uint8_t *)&ends)[others[i].at] ^= 1;
		token_make(key, &c.req, &ends, (uint64_t)time(NULL), c.req.token);
		raw_need(!is_accepted(&c), others[i].what);
	}
	for (int windows = -4; windows <= 4; windows++) {
		if (windows >= -2 && windows <= 2) /* valid, or valid soon */
			continue;
		hostile_prepare(&c);
		ends = raw_ends(&c);
		token_make(
			key, &c.req, &ends, (uint64_t)(time(NULL) + windows * TOKEN_WINDOW_S), c.req.token);
		raw_need(!is_accepted(&c), "a token is good at another time");
	}
}

/* A request that is overheard, and sent again at once from a queue pair beside that of its owner */
static void try_replay(const struct token_key *key)
{
	struct raw_client owner, replay;

	hostile_prepare(&owner);
	raw_sign(&owner, key);
	raw_start(&owner);
	hostile_prepare(&replay);
	replay.req = owner.req;
	raw_need(!is_accepted(&replay), "a replayed token is good");
	raw_post_recvs(&owner, 1);
	raw_post_sends(&owner, 1, raw_arg_len(&owner));
	raw_need(raw_replies(&owner, 1, NULL) == 1, "the owner of a replayed token is not served");
	raw_finish(&owner);
}

/* The same, naming the queue pair of its owner: the token is right. The connection is not the sender's, and
 * the owner, who does not wait for it, does not complete it */
static void try_in_the_name_of_another(const struct token_key *key)
{
	struct raw_client owner, replay;
	struct rdma_cm_id *id;

	hostile_prepare(&owner);
	raw_sign(&owner, key);
	hostile_prepare(&replay);
	id = hostile_half_open(&replay, owner.id->qp->qp_num, &owner.req, sizeof(owner.req));
	raw_need(raw_event(&replay, RAW_PATIENCE_MS) == RDMA_CM_EVENT_CONNECT_RESPONSE,
		"a token is not good for its own queue pair");
	rdma_destroy_id(id);
	raw_finish(&replay);
	raw_finish(&owner);
}

int hostile_tokens(int argc, char **argv)
{
	struct token_key key;
	char why[200];

	(void)argc;
	raw_need(token_key_read(argv[0], &key, why, sizeof(why)) == 0, "no key");
	try_forged(&key);
	try_other_uses(&key);
	try_replay(&key);
	try_in_the_name_of_another(&key);
	token_key_wipe(&key);
	printf("%s: forged, stale, of another request or connection, and replayed\n", raw_case);
	return 0;
}
