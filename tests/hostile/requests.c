/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of any offload, of right and of wrong length: there is an answer in its slot and nowhere else, or
 * the session ends. Of hash-get, whose table is told, an answer is compared with what it must be, wherever in
 * the client's memory it leads. Made at random, or from a corpus: lines of an offload's name, a space and the
 * request.
 */
#include "tests/fuzz/corpus.h"
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

/* What the memory may hold now, in the place of what it held */
static void check(struct asker *a, uint8_t *want, bool answered)
{
	const struct raw_client *c = &a->c;

	if (!a->table) {
		memcpy(want + a->slot * RAW_SLOT, c->mem + a->slot * RAW_SLOT, be32toh(c->rep.reply_max));
		raw_need(memcmp(want, c->mem, HOSTILE_MEMORY + RAW_REQUEST) == 0,
			"more than the reply has changed");
		return;
	}
	raw_need(known_model(&a->c, a->table, a->slot, want) || !answered,
		"an answer where there can be none");
	/* of a chain that fails the first steps may be done */
	for (size_t i = 0; i < HOSTILE_MEMORY + RAW_REQUEST; i++)
		raw_need(c->mem[i] == want[i] || (!answered && c->mem[i] == HOSTILE_FILLER),
			"memory does not hold what it must");
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

static int tell(struct asker *a)
{
	raw_finish(&a->c);
	printf("%s: %u answers, %u sessions ended, %u of a wrong length\n", raw_case, a->answers, a->ends,
		a->malformed);
	return 0;
}

static uint32_t wrong_length(uint32_t own)
{
	uint32_t len = (uint32_t)hostile_random(own + LONGER - 1);

	return len + (len >= own);
}

/* Every second one that is kept in a corpus has a wrong length */
static int ask_at_random(struct asker *a, uint64_t count, FILE *corpus)
{
	begin(a);
	for (; count > 0; count--) {
		uint32_t own = raw_arg_len(&a->c), len = own;
		bool wild = hostile_random(8) == 0;
		uint8_t bytes[RAW_REQUEST] = {0};

		if (corpus ? count % 2 == 0 : hostile_random(16) == 0)
			len = wrong_length(own);
		for (uint32_t i = 0; i < own && wild; i++)
			bytes[i] = (uint8_t)hostile_random(256);
		bytes[hostile_random(own)] = (uint8_t)hostile_random(256);
		ask(a, bytes, len);
		if (corpus) {
			struct input in = {
				.len = (size_t)snprintf(in.bytes, sizeof(in.bytes), "%s ", hostile_offload)};

			memcpy(in.bytes + in.len, bytes, len);
			in.len += len;
			corpus_write(corpus, &in);
		}
	}
	return tell(a);
}

static int ask_corpus(struct asker *a, FILE *corpus)
{
	size_t name = strlen(hostile_offload);
	static struct input in;
	unsigned line = 0;

	begin(a);
	while (corpus_read(corpus, &in, &line)) {
		raw_need(in.len <= name + 1 + RAW_REQUEST, "a line of the corpus is too long");
		if (in.len > name && in.bytes[name] == ' ' && memcmp(in.bytes, hostile_offload, name) == 0)
			ask(a, in.bytes + name + 1, (uint32_t)(in.len - name - 1));
	}
	raw_need(a->answers + a->ends > 0, "there are no requests of that offload");
	return tell(a);
}

static FILE *open_corpus(const char *path, const char *mode)
{
	FILE *f = *path ? fopen(path, mode) : NULL;

	raw_need(f || !*path, path);
	return f;
}

int hostile_any(int argc, char **argv)
{
	FILE *corpus = argc > 2 ? open_corpus(argv[2], "a") : NULL;
	struct known_table table;
	struct asker a = {0};
	int r;

	if (argc > 3) {
		table = known_map(argv[3]);
		a.table = &table;
	}
	hostile_seed(hostile_number(argv[0]));
	r = ask_at_random(&a, hostile_number(argv[1]), corpus);
	raw_need(!corpus || fclose(corpus) == 0, "the corpus cannot be written");
	return r;
}

int hostile_requests(int argc, char **argv)
{
	FILE *corpus = open_corpus(argv[0], "r");
	struct known_table table;
	struct asker a = {0};
	int r;

	if (argc > 1) {
		table = known_map(argv[1]);
		a.table = &table;
	}
	raw_need(corpus != NULL, "CORPUS [TABLE]");
	r = ask_corpus(&a, corpus);
	fclose(corpus);
	return r;
}
