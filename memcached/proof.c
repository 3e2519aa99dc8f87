/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/proof.h"

#include "util/array.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
	PROBE_MOST = 512, /* bytes of a probe's item */
	NAME_MOST = 64,
	/* names that are tried for each bucket: one that none of them is in would be a wonder */
	NAMES_PER_BUCKET = 32,
};

/* One proof under way */
struct work {
	struct proof *proof;
	const struct reader *file;
	struct talk *talk;
	struct reddn_cache_live live; /* when it began */
	char *why;
};

static int fail(const struct work *w, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct work *w, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(w->why, PROOF_WHY, format, ap);
	va_end(ap);
	return error;
}

static int talk_failed(const struct work *w, int e)
{
	return fail(w, e, "memcached does not answer: %s", strerror(-e));
}

static int read_failed(const struct work *w, int e)
{
	return fail(w, e, "the cache file cannot be read: %s", strerror(-e));
}

/* ---- the memcached ---------------------------------------------------------------------- */

/* A memcached runs with the file, and that of the connection has what readers need */
static int check_server(struct work *w)
{
	struct talk_stat stats[] = {{.name = "version"}};
	struct talk_stat settings[] = {{.name = "cas_enabled"}};
	int e;

	if (!reader_is_served(w->file))
		return fail(w, -EINVAL, "no memcached runs with this file");
	e = reader_live(w->file, &w->live);
	if (e < 0)
		return read_failed(w, e);
	if (w->live.generation % 2)
		return fail(w, -EAGAIN, "memcached is starting");
	e = talk_send(w->talk, "stats\r\nstats settings");
	if (e == 0)
		e = talk_stats_answer(w->talk, stats, COUNT(stats));
	if (e == 0)
		e = talk_stats_answer(w->talk, settings, COUNT(settings));
	if (e < 0)
		return talk_failed(w, e);
	if (strcmp(settings[0].value, "yes") != 0)
		return fail(w, -EINVAL, "memcached runs without CAS ids (-C)");
	w->proof->pid = w->live.pid;
	w->proof->generation = w->live.generation;
	snprintf(w->proof->version, sizeof(w->proof->version), "%.31s", stats[0].value);
	return 0;
}

/* ---- one probe -------------------------------------------------------------------------- */

struct probe {
	char key[NAME_MOST], value[NAME_MOST];
	struct proof_item item;
	uint64_t next; /* when it was found: its h_next */
	int64_t off;   /* and its place */
};

static void random_text(char *text, size_t len, const char *begin)
{
	int n = snprintf(text, NAME_MOST, "%s", begin);
	uint8_t bytes[NAME_MOST];

	/* never fails for so few bytes (getrandom(2)) */
	(void)!getrandom(bytes, sizeof(bytes), 0);
	for (size_t i = (size_t)n; i < len; i++)
		text[i] = "0123456789abcdefghijklmnopqrstuv"[bytes[i] % 32];
	text[len] = 0;
}

static void probe_name(struct probe *p, unsigned nkey, uint32_t flags, uint32_t ttl)
{
	*p = (struct probe){.item = {.flags = flags, .ttl = ttl}, .off = -1};
	random_text(p->key, nkey, "reddn-check-");
	random_text(p->value, 10 + nkey, "");
	p->item.key = p->key;
	p->item.value = p->value;
}

/* Those of probe_ask() */
struct answers {
	struct talk_stat before, after; /* uptime */
	char stored[256], value[256];
};

static int probe_ask(const struct work *w, const struct probe *p)
{
	return talk_send(w->talk, "stats\r\nset %s %u %u %zu\r\n%s\r\nstats\r\ngets %s", p->key,
		p->item.flags, p->item.ttl, strlen(p->value), p->value, p->key);
}

/* Whatever they say: the next answer belongs to another command. After VALUE come the value and END */
static int take_answers(const struct work *w, struct answers *a)
{
	char line[256];
	int e;

	*a = (struct answers){.before.name = "uptime", .after.name = "uptime"};
	e = talk_stats_answer(w->talk, &a->before, 1);
	if (e == 0)
		e = talk_line(w->talk, a->stored, sizeof(a->stored));
	if (e == 0)
		e = talk_stats_answer(w->talk, &a->after, 1);
	if (e == 0)
		e = talk_line(w->talk, a->value, sizeof(a->value));
	for (unsigned i = 0; e == 0 && i < 2 && strncmp(a->value, "VALUE ", 6) == 0; i++)
		e = talk_line(w->talk, line, sizeof(line));
	return e;
}

static uint32_t clock_of(const struct talk_stat *uptime)
{
	return (uint32_t)strtoul(uptime->value, NULL, 10) + CACHE_CLOCK_AHEAD;
}

static int understand(const struct work *w, const struct answers *a, struct probe *p)
{
	if (strcmp(a->stored, "STORED") != 0)
		return fail(w, -EINVAL, "memcached does not take a key: %s", a->stored);
	if (sscanf(a->value, "VALUE %*s %*u %*u %" SCNu64, &p->item.cas) != 1)
		return fail(w, -EAGAIN, "a key that was set is gone: %s", a->value);
	p->item.clock_min = clock_of(&a->before);
	p->item.clock_max = clock_of(&a->after);
	return 0;
}

/* Sets at most two, and learns what their items must look like */
static int probes_set(const struct work *w, struct probe *probes, unsigned n)
{
	struct answers answers[2];
	int e = 0;

	for (unsigned i = 0; e == 0 && i < n; i++)
		e = probe_ask(w, &probes[i]);
	for (unsigned i = 0; e == 0 && i < n; i++)
		e = take_answers(w, &answers[i]);
	if (e < 0)
		return talk_failed(w, e);
	for (unsigned i = 0; e == 0 && i < n; i++)
		e = understand(w, &answers[i], &probes[i]);
	return e;
}

static void probes_delete(const struct work *w, const struct probe *probes, unsigned n)
{
	char line[256];
	int e = 0;

	for (unsigned i = 0; e == 0 && i < n && *probes[i].key; i++)
		e = talk_send(w->talk, "delete %s", probes[i].key);
	for (unsigned i = 0; e == 0 && i < n && *probes[i].key; i++)
		e = talk_line(w->talk, line, sizeof(line));
}

/* 1: it is in this bucket, and looks as it must. 0: it is not there. An item that has its key and differs is
 * an error: no other one has it. */
static int look_in_bucket(const struct work *w, struct probe *p, uint64_t bucket_off)
{
	size_t nkey = strlen(p->key);
	uint8_t bytes[PROBE_MOST];
	uint64_t pointer;
	int e = reader_read(w->file, bucket_off, &pointer, sizeof(pointer));

	for (unsigned n = 0; e == 0 && pointer && n < READER_CHAIN; n++) {
		int64_t off = reader_item(w->file, pointer);

		if (off < 0)
			return 0;
		/* padding follows the last item */
		e = reader_read(w->file, (uint64_t)off, bytes, proof_item_size(&p->item));
		if (e < 0)
			break;
		memcpy(&pointer, bytes + offsetof(struct reddn_cache_item, h_next), sizeof(pointer));
		if (memcmp(bytes + sizeof(struct reddn_cache_item), p->key, nkey) != 0)
			continue;
		p->off = off;
		p->next = pointer;
		e = proof_item_compare(&p->item, bytes, w->why);
		return e < 0 ? e : 1;
	}
	return e < 0 ? read_failed(w, e) : 0;
}

/* Looks in each table, by each hash, for @p; @only: by the one that is known. 0 when it is found. */
static int find(struct work *w, struct probe *p, bool only)
{
	const struct reddn_cache_header *h = &w->file->header;
	struct reddn_cache_live live;
	int r = reader_live(w->file, &live);

	if (r < 0)
		return read_failed(w, r);
	for (unsigned place = 0; place <= h->power_max; place++) {
		unsigned power = place ? place : h->power_min;

		for (int hash = 0; (live.tables >> place & 1) && hash < CACHE_HASHES; hash++) {
			uint64_t bucket = cache_hash(hash, p->key, strlen(p->key)) & ((1ull << power) - 1);
			uint64_t table = reddn_cache_table(h->tables_off, place);

			if (only && hash != (int)w->proof->hash)
				continue;
			r = look_in_bucket(w, p, table + 8 * bucket);
			if (r < 0)
				return r;
			if (r == 0)
				continue;
			w->proof->hash = hash;
			w->proof->power = power;
			w->proof->table_off = table;
			return 0;
		}
	}
	return live.tables & (live.tables - 1)
		       ? fail(w, -EAGAIN, "memcached moves its items to a larger table")
		       : fail(w, -EINVAL,
				 "a key that was set is in no bucket of the tables in this file: this "
				 "memcached (%s) has another hash or another layout, or another memcached "
				 "runs with this file",
				 w->proof->version);
}

/* ---- h_next ----------------------------------------------------------------------------- */

/* Names @b so that it is in the bucket of @a */
static void name_beside(const struct work *w, const struct probe *a, struct probe *b)
{
	uint32_t mask = (uint32_t)((1ull << w->proof->power) - 1);
	uint32_t want = cache_hash(w->proof->hash, a->key, strlen(a->key)) & mask;
	char *digits;

	probe_name(b, 30, 0, 0);
	digits = b->key + strlen(b->key) - 8;
	for (uint64_t n = 0; n < (uint64_t)NAMES_PER_BUCKET << w->proof->power; n++) {
		for (unsigned i = 0; i < 8; i++)
			digits[i] = "0123456789abcdef"[n >> 4 * i & 15];
		if ((cache_hash(w->proof->hash, b->key, strlen(b->key)) & mask) == want)
			return;
	}
}

/* A new item is the first of its bucket, and its h_next leads to the one that was (assoc.c, assoc_insert) */
static int prove_chain(struct work *w, struct probe *a, struct probe *b)
{
	unsigned power = w->proof->power;
	int e;

	name_beside(w, a, b);
	e = probes_set(w, b, 1);
	if (e == 0)
		e = find(w, b, true);
	if (e == 0)
		e = find(w, a, true);
	if (e < 0)
		return e;
	if (w->proof->power != power)
		return fail(w, -EAGAIN, "memcached moves its items to a larger table");
	e = reader_leads(w->file, b->next, a->off);
	if (e == -EFAULT)
		return fail(w, -EINVAL,
			"this memcached has another layout of items: h_next (byte 16) of one does not lead "
			"to another of its bucket");
	return e < 0 ? read_failed(w, e) : 0;
}

/* ----------------------------------------------------------------------------------------- */

static int prove(struct work *w, struct probe probes[3])
{
	struct reddn_cache_live live;
	int e = check_server(w);

	if (e < 0)
		return e;
	/* with flags and a time, and without either: the fields of the one differ from those of the other */
	probe_name(&probes[0], 40, 0x12345678, 1000);
	probe_name(&probes[1], 33, 0, 0);
	e = probes_set(w, probes, 2);
	if (e == 0)
		e = find(w, &probes[0], false);
	if (e == 0)
		e = find(w, &probes[1], true);
	if (e == 0)
		e = prove_chain(w, &probes[1], &probes[2]);
	if (e < 0)
		return e;
	w->proof->clock = probes[2].item.clock_max;
	e = reader_live(w->file, &live);
	if (e < 0)
		return read_failed(w, e);
	if (live.generation != w->live.generation)
		return fail(w, -EAGAIN, "memcached was started again");
	return 0;
}

int proof_make(struct proof *p, const struct reader *file, struct talk *talk, char why[PROOF_WHY])
{
	struct work w = {.proof = p, .file = file, .talk = talk, .why = why};
	struct probe probes[3] = {0};
	int e;

	*p = (struct proof){0};
	e = prove(&w, probes);
	probes_delete(&w, probes, COUNT(probes));
	return e;
}
