/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table that cannot be misread: requests for every byte offset of the bucket array, and beyond its end,
 * each with the fingerprint that lies there. What comes back is a record that the table holds, whole, or
 * nothing.
 */
#include "protocol/table-hash.h"
#include "tests/hostile/known.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = RAW_DEPTH, BUCKET_READ = 15, RECORD_ROOM = RAW_SLOT - REDDN_SLOT_RECORD };

static struct {
	uint64_t tried, records, misses, ended;
} tally;

/* True if a bucket holds exactly this record, at this place */
static bool is_present(const struct known_table *t, uint64_t at, const uint8_t *record, uint64_t len)
{
	const struct known_bucket s = known_look(t, at);

	return at % sizeof(struct reddn_bucket) == 0 && s.tag == REDDN_TABLE_TAG && s.len == len &&
	       memcmp(t->heap + s.off, record, len) == 0;
}

/* What lies in a reply slot that was filled with @HOSTILE_FILLER. @gone: bytes that no present record has */
static void check_slot(const struct known_table *t, const uint8_t *slot, uint64_t at, const char *gone)
{
	const uint8_t *room = slot + REDDN_SLOT_RECORD;
	const struct reddn_record *r = (const struct reddn_record *)room;
	uint64_t len = RECORD_ROOM;
	char what[80];

	snprintf(what, sizeof(what), "byte %" PRIu64 " of the bucket array gives what is no record", at);
	while (len && room[len - 1] == HOSTILE_FILLER)
		len--;
	tally.tried++;
	raw_need(!memmem(slot, RAW_SLOT, gone, strlen(gone)), "a record comes back that is gone");
	if (!len) {
		tally.misses++;
		return;
	}
	raw_need(r->key_len && r->key_len <= RECORD_ROOM && r->val_len <= RECORD_ROOM &&
			 reddn_record_padded(reddn_record_size(r->key_len, r->val_len)) == len &&
			 r->sum == reddn_record_sum(r) && is_present(t, at, room, len),
		what);
	tally.records++;
}

/* Asks for @n offsets from @at on at the same time */
static void ask(struct raw_client *c, const struct known_table *t, uint64_t at, unsigned n, unsigned *slot,
	const char *gone)
{
	enum ibv_wc_status status;

	memset(c->mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	raw_post_recvs(c, n);
	for (unsigned i = 0; i < n; i++) {
		/* one probe is the offset; the other, in turn, matches nothing or the same */
		const struct known_bucket s = known_look(t, at + i);
		uint8_t none[KNOWN_FP] = {1, 2, 3, 4, 5, 6};

		known_put_probe(c, i % 2, s.fp, at + i);
		known_put_probe(c, (i + 1) % 2, (at + i) % 4 < 2 ? none : s.fp, at + i);
		raw_post_sends(c, 1, raw_arg_len(c));
		raw_need(raw_replies(c, 1, &status) == 1, "no answer");
		check_slot(t, c->mem + *slot * RAW_SLOT, at + i, gone);
		*slot = (*slot + 1) % RAW_DEPTH;
	}
}

int hostile_offsets(int argc, char **argv)
{
	const struct known_table t = known_map(argv[0]);
	struct raw_client c;
	unsigned slot = 0;

	raw_need(argc == 2, "FILE TEXT");
	hostile_prepare(&c);
	raw_start(&c);
	for (uint64_t at = 0; at + BUCKET_READ <= t.window; at += BATCH) {
		uint64_t left = t.window - BUCKET_READ - at + 1;

		ask(&c, &t, at, left < BATCH ? (unsigned)left : BATCH, &slot, argv[1]);
	}
	/* reads across the end: the NIC refuses them, and the session ends without a record */
	for (uint64_t at = t.window - BUCKET_READ + 1; at < t.window + 2; at++) {
		uint8_t fp[KNOWN_FP] = {0};

		raw_finish(&c);
		hostile_prepare(&c);
		raw_start(&c);
		memset(c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
		for (unsigned i = 0; i < KNOWN_FP && at + 8 + i < t.window; i++)
			fp[KNOWN_FP - 1 - i] = t.buckets[at + 8 + i];
		known_put_probe(&c, 0, fp, at);
		known_put_probe(&c, 1, fp, at);
		raw_post_recvs(&c, 1);
		raw_post_sends(&c, 1, raw_arg_len(&c));
		raw_expect_disconnect(&c);
		raw_need(!hostile_answered(&c), "an answer to a read across the end");
		for (unsigned i = 0; i < HOSTILE_MEMORY; i++)
			raw_need(c.mem[i] == HOSTILE_FILLER, "a reply slot has changed");
		tally.ended++;
	}
	raw_finish(&c);
	raw_need(tally.records > 10 && tally.misses > tally.records, "too little was tried");
	printf("%s: %" PRIu64 " offsets, %" PRIu64 " records, %" PRIu64 " misses, %" PRIu64
	       " sessions ended\n",
		raw_case, tally.tried, tally.records, tally.misses, tally.ended);
	return 0;
}
