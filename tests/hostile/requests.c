/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random requests to any offload, every second one of a wrong length. An answer changes its slot and nothing
 * else, or the session ends. With the table of a hash-get offload, each answer is compared with the right
 * one, wherever in the client's memory it is written.
 */
#include "tests/hostile/known.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGER = 8 };

struct asker {
	struct raw_client c;
	const struct known_table *table; /* or NULL */
	unsigned slot, answers, ends, malformed;
};

static void begin(struct asker *a)
{
	hostile_prepare(&a->c);
	raw_start(&a->c);
	a->slot = 0;
}

/* Checks that the memory holds what an answer, or a failed chain, may leave there. */
static void check(struct asker *a, uint8_t *want, bool answered)
{
	const struct raw_client *c = &a->c;

	if (!a->table) {
		memcpy(want + a->slot * RAW_SLOT, c->mem + a->slot * RAW_SLOT, be32toh(c->rep.reply_max));
		raw_need(memcmp(want, c->mem, HOSTILE_MEMORY + RAW_REQUEST) == 0,
			"memory outside of the reply has changed");
		return;
	}
	raw_need(known_model(&a->c, a->table, a->slot, want) || !answered, "an impossible answer");
	/* a chain that fails may have executed its first steps */
	for (size_t i = 0; i < HOSTILE_MEMORY + RAW_REQUEST; i++)
		raw_need(c->mem[i] == want[i] || (!answered && c->mem[i] == HOSTILE_FILLER),
			"wrong bytes in the memory");
}

static void ask(struct asker *a, const void *bytes, uint32_t len)
{
	static uint8_t want[HOSTILE_MEMORY + RAW_REQUEST];
	struct pollfd over = {.fd = a->c.channel->fd, .events = POLLIN};
	bool answered = false;

	memset(raw_request(&a->c), 0, RAW_REQUEST);
	memcpy(raw_request(&a->c), bytes, len);
	memset(a->c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	memcpy(want, a->c.mem, sizeof(want));
	raw_post_recvs(&a->c, 1);
	raw_post_sends(&a->c, 1, len);
	for (unsigned ms = 0; !answered && poll(&over, 1, 0) == 0; ms++) {
		raw_need(ms < RAW_PATIENCE_MS, "neither an answer nor an end");
		answered = hostile_answered(&a->c);
		if (!answered)
			usleep(1000);
	}
	raw_need(!answered || len <= raw_arg_len(&a->c), "a request that is too long is answered");
	check(a, want, answered);
	a->slot = (a->slot + 1) % RAW_DEPTH;
	a->answers += answered;
	a->malformed += len != raw_arg_len(&a->c);
	if (!answered) {
		raw_finish(&a->c);
		begin(a);
		a->ends++;
	}
}

static uint32_t wrong_length(uint32_t own)
{
	uint32_t len = (uint32_t)hostile_random(own + LONGER - 1);

	return len + (len >= own);
}

static void ask_at_random(struct asker *a, bool wrong)
{
	uint32_t own = raw_arg_len(&a->c);
	uint8_t bytes[RAW_REQUEST] = {0};

	if (hostile_random(8) == 0)
		for (uint32_t i = 0; i < own; i++)
			bytes[i] = (uint8_t)hostile_random(256);
	bytes[hostile_random(own)] = (uint8_t)hostile_random(256);
	ask(a, bytes, wrong ? wrong_length(own) : own);
}

int hostile_requests(int argc, char **argv)
{
	struct known_table table;
	struct asker a = {0};

	if (argc > 2) {
		table = known_map(argv[2]);
		a.table = &table;
	}
	hostile_seed(hostile_number(argv[0]));
	begin(&a);
	for (uint64_t count = hostile_number(argv[1]); count > 0; count--)
		ask_at_random(&a, count % 2 == 0);
	raw_finish(&a.c);
	printf("%s: %u answers, %u sessions ended, %u of a wrong length\n", raw_case, a.answers, a.ends,
		a.malformed);
	return 0;
}
