/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/proof.h"

#include "memcached/cache-layout.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* -EIO: the file does not have these bytes any more. -errno. */
static int reader_read(const struct reader *r, uint64_t off, void *bytes, size_t size)
{
	long n = file_read_at(r->fd, off, bytes, size);

	return n < 0 ? (int)n : (size_t)n == size ? 0 : -EIO;
}

static int refuse(char *why, size_t size, const char *words)
{
	snprintf(why, size, "%s", words);
	return -EINVAL;
}

int reader_init(struct reader *r, int fd, uint64_t bytes, char *why, size_t size)
{
	struct reddn_cache_header *h = &r->header;

	r->fd = fd;
	if (reader_read(r, REDDN_CACHE_NULL, h, sizeof(*h)) < 0 || h->magic != REDDN_CACHE_MAGIC)
		return refuse(why, size, "it is no cache file of memcached; libreddn-memcached.so makes one");
	if (!cache_layout_is_sound(h, bytes))
		return refuse(why, size, "it is a cache file of another version, or damaged");
	return 0;
}

int reader_live(const struct reader *r, struct reddn_cache_live *live)
{
	return reader_read(
		r, REDDN_CACHE_NULL + offsetof(struct reddn_cache_header, live), live, sizeof(*live));
}

bool reader_is_served(const struct reader *r)
{
	struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(r->fd, F_OFD_GETLK, &all) < 0 || all.l_type != F_UNLCK;
}

/* Offset of the item that pointer @p leads to. -EFAULT: it leads to no place in the slab pages where there
 * can be one. */
static int64_t reader_item(const struct reader *r, uint64_t p)
{
	const struct reddn_cache_header *h = &r->header;
	uint64_t off = p - h->base;

	if (p % 8 || off < h->pages_off ||
		off - h->pages_off > h->pages_size - sizeof(struct reddn_cache_item))
		return -EFAULT;
	return (int64_t)off;
}

/* 0 if pointer @p leads to the item at @off, or to one from which h_next of READER_CHAIN items leads there.
 * -EFAULT: it does not. Errors of reader_read(). */
static int reader_leads(const struct reader *r, uint64_t p, int64_t off)
{
	struct reddn_cache_item item;

	for (unsigned n = 0; n < READER_CHAIN; n++) {
		int64_t at = reader_item(r, p);
		int e = at < 0 || at == off ? 0 : reader_read(r, (uint64_t)at, &item, sizeof(item));

		if (at < 0 || at == off || e < 0)
			return at < 0 ? -EFAULT : e;
		p = item.h_next;
	}
	return -EFAULT;
}

/* ---- an item in memory, compared with what memcached was asked to store ---- */

/* What an item that was set must look like. */
struct proof_item {
	const char *key, *value;
	uint32_t flags;
	uint32_t ttl; /* 0: none */
	uint64_t cas;
	uint32_t clock_min, clock_max; /* of the server, when it was set */
};

static uint16_t flags_of(const struct proof_item *want)
{
	return (uint16_t)(CACHE_ITEM_LINKED | CACHE_ITEM_CAS | (want->flags ? CACHE_ITEM_CFLAGS : 0));
}

/* Bytes of such an item. */
static size_t proof_item_size(const struct proof_item *want)
{
	return reddn_cache_value((uint8_t)strlen(want->key), flags_of(want)) + strlen(want->value) + 2;
}

static int differs(char *why, const char *field, unsigned off, uint64_t is, uint64_t should)
{
	snprintf(why, PROOF_WHY,
		"this memcached has another layout of items: of one that was set, %s (byte %u) is %" PRIu64
		" where %" PRIu64 " is right",
		field, off, is, should);
	return -EINVAL;
}

static int different_bytes(char *why, const char *field, size_t off)
{
	snprintf(why, PROOF_WHY,
		"this memcached has another layout of items: of one that was set, byte %zu does not begin %s",
		off, field);
	return -EINVAL;
}

static int compare_header(const struct proof_item *want, const struct reddn_cache_item *h, char *why)
{
	uint16_t looked_at = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_SLABBED | CACHE_ITEM_CHUNKED |
			     CACHE_ITEM_HDR | CACHE_ITEM_CFLAGS;
	size_t nbytes = strlen(want->value) + 2;
	uint32_t set = h->time;

	if (set < want->clock_min || set > want->clock_max)
		return differs(why, "time", 24, set, want->clock_min);
	/* the clock may tick while memcached takes the command */
	if (want->ttl ? h->exptime - want->ttl < want->clock_min || h->exptime - want->ttl > want->clock_max
		      : h->exptime != 0)
		return differs(why, "exptime", 28, h->exptime, want->ttl ? want->clock_min + want->ttl : 0);
	if (h->nbytes != (int32_t)nbytes)
		return differs(why, "nbytes", 32, (uint32_t)h->nbytes, nbytes);
	/* one of the reply with the CAS id, which memcached releases after it was sent (resp_finish), and one
	 * of a thread that goes through its lists or pages, which has locked the item (items.c,
	 * lru_pull_tail) */
	if (h->refcount < 1 || h->refcount > 3)
		return differs(why, "refcount", 36, h->refcount, 1);
	if ((h->it_flags & looked_at) != flags_of(want))
		return differs(why, "it_flags", 38, h->it_flags & looked_at, flags_of(want));
	if ((h->clsid & 0x3f) == 0)
		return differs(why, "slabs_clsid", 40, h->clsid, 1);
	if (h->nkey != strlen(want->key))
		return differs(why, "nkey", 41, h->nkey, strlen(want->key));
	if (h->cas != want->cas)
		return differs(why, "the CAS id", 48, h->cas, want->cas);
	return 0;
}

/* Compares the item at @bytes, all of it, field by field. -EINVAL: @why names the first that differs. */
static int proof_item_compare(const struct proof_item *want, const uint8_t *bytes, char why[PROOF_WHY])
{
	size_t off = sizeof(struct reddn_cache_item), nkey = strlen(want->key), len = strlen(want->value);
	struct reddn_cache_item h;
	int e;

	memcpy(&h, bytes, sizeof(h));
	e = compare_header(want, &h, why);
	if (e < 0)
		return e;
	if (memcmp(bytes + off, want->key, nkey) != 0)
		return different_bytes(why, "the key", off);
	/* the byte behind the key is what the memory had before (items.c, do_item_alloc) */
	off += nkey + 1;
	if (want->flags) {
		if (memcmp(bytes + off, &want->flags, sizeof(want->flags)) != 0)
			return different_bytes(why, "the client's flags", off);
		off += sizeof(want->flags);
	}
	if (memcmp(bytes + off, want->value, len) != 0 || memcmp(bytes + off + len, "\r\n", 2) != 0)
		return different_bytes(why, "the value, CR and LF", off);
	return 0;
}

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
