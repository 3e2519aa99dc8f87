/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash-get chain on the emulated silicon, in one process: a table, a client and the rings of a session in
 * one arena, requests at random, and after every reply a comparison with what a get means. Under strict
 * seeds the silicon fetches early and lands late; variants of the chain with one barrier missing must then
 * fail.
 */
#include "mlx5/wqe.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"
#include "tests/chain/by-hand.h"
#include "tests/chain/chain-rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 64,
	RECORDS = 24,
	RECORD_MAX = 65536,
	MOSTLY = 216, /* bytes of most records, at most */
};

struct trial {
	uint64_t seed;
	bool lenient, parallel;
	unsigned depth, offset_len, requests;
	unsigned recycled; /* slots that the NIC keeps going by itself; 0: the rig arms */
	uint64_t first;    /* number of the first request */
	uint32_t record_max;
	enum { TAME, BEYOND, LONG } wild;        /* what the client does wrong in the end: send_request() */
	void (*damage)(struct chain_image *img); /* makes a wrong variant */
};

struct world {
	struct chain_rig c;
	const struct trial *t;
	struct reddn_bucket *buckets;
	uint8_t *heap, *slots;
	struct reddn_table_live *live;
	uint8_t *table_before, *slots_after; /* what memory must look like */
	uint32_t slot, heap_size;            /* as large as the records need them: all of both is compared */
	struct {
		uint32_t off, len;
	} record[RECORDS];
	uint64_t answered;
	char why[400]; /* what went wrong */
};

static uint64_t rnd(struct world *w, uint64_t below)
{
	return chain_rig_random(&w->c, below);
}

/* ---- table ------------------------------------------------------------------------------ */

static uint64_t fp_of(const struct reddn_bucket *b)
{
	uint64_t fp = 0;

	for (unsigned i = sizeof(b->fp); i-- > 0;)
		fp = fp << 8 | b->fp[i];
	return fp;
}

static void set_bucket(struct world *w, unsigned b, unsigned rec, uint64_t fp)
{
	struct reddn_bucket *k = &w->buckets[b];
	uint64_t off = w->record[rec].off;

	for (unsigned i = 0; i < 3; i++)
		k->len[i] = (uint8_t)(w->record[rec].len >> 8 * (2 - i));
	for (unsigned i = 0; i < 5; i++)
		k->off[i] = (uint8_t)(off >> 8 * (4 - i));
	for (unsigned i = 0; i < sizeof(k->fp); i++)
		k->fp[i] = (uint8_t)(fp >> 8 * i);
	k->tag = rec ? REDDN_TABLE_TAG : 0;
}

/* Record 0 is the null record. A third of the buckets is empty: their mark is 0. */
static void make_table(struct world *w)
{
	uint32_t at = 0;

	w->buckets = rig_alloc(&w->c.rig, BUCKETS * sizeof(*w->buckets));
	w->live = rig_alloc(&w->c.rig, sizeof(*w->live));
	w->heap = rig_alloc(&w->c.rig, w->heap_size);
	chain_rig_fill(&w->c, w->live, sizeof(*w->live));
	for (unsigned i = 0; i < RECORDS; i++) {
		uint32_t len = 17 + (uint32_t)rnd(w, rnd(w, 3) ? MOSTLY - 16 : w->t->record_max - 16);

		len = i == 0 ? sizeof(struct reddn_record) : i == 1 ? w->t->record_max : i == 2 ? 17 : len;
		w->record[i].off = at;
		w->record[i].len = len;
		chain_rig_fill(&w->c, w->heap + at, len);
		at += (len + 7) & ~7u;
		assert_true(at <= w->heap_size);
	}
	for (unsigned b = 0; b < BUCKETS; b++) {
		bool empty = rnd(w, 3) == 0;
		uint64_t fp = rnd(w, 1u << 30) * 0x3ffff;

		if (b % 2 && rnd(w, 3) == 0) /* two entries that a get cannot tell apart */
			fp = fp_of(&w->buckets[b - 1]);
		set_bucket(w, b, empty ? 0 : 1 + (unsigned)rnd(w, RECORDS - 1), empty ? 0 : fp);
	}
	for (unsigned r = 0; r < 3; r++)
		w->c.env.region[r].iova = (uint64_t)(r + 1) << 56;
	w->c.env.region[CHAIN_HASH_GET_WINDOW].rkey = chain_rig_key(&w->c, w->buckets,
		BUCKETS * sizeof(*w->buckets), w->c.env.region[CHAIN_HASH_GET_WINDOW].iova, HW_REMOTE_READ);
	w->c.env.region[CHAIN_HASH_GET_HEAP].lkey =
		chain_rig_key(&w->c, w->heap, w->heap_size, w->c.env.region[CHAIN_HASH_GET_HEAP].iova, 0);
	w->c.env.region[CHAIN_HASH_GET_LIVE].lkey =
		chain_rig_key(&w->c, w->live, sizeof(*w->live), w->c.env.region[CHAIN_HASH_GET_LIVE].iova, 0);
	w->table_before = malloc(w->heap + w->heap_size - (uint8_t *)w->buckets);
	assert_non_null(w->table_before);
	memcpy(w->table_before, w->buckets, (size_t)(w->heap + w->heap_size - (uint8_t *)w->buckets));
}

static void make_slots(struct world *w)
{
	size_t bytes = (size_t)w->t->depth * w->slot;

	w->slots = rig_alloc(&w->c.rig, bytes);
	chain_rig_fill(&w->c, w->slots, bytes);
	w->slots_after = malloc(bytes);
	assert_non_null(w->slots_after);
	memcpy(w->slots_after, w->slots, bytes);
}

/* ---- requests --------------------------------------------------------------------------- */

static unsigned seen[4]; /* misses, hits in the first bucket, the second, both */

/* What a get of @fp in these buckets means for the reply slot */
static void expect(struct world *w, const unsigned b[2], uint64_t fp)
{
	uint8_t *slot = w->slots_after + w->c.sent % w->t->depth * w->slot;
	unsigned hits = 0;

	for (unsigned p = 0; p < 2; p++) {
		const struct reddn_bucket *k = &w->buckets[b[p]];
		uint64_t len = 0, off = 0;

		if (fp_of(k) != fp || k->tag != REDDN_TABLE_TAG)
			continue;
		hits |= 1 << p;
		for (unsigned i = 0; i < 3; i++)
			len = len << 8 | k->len[i];
		for (unsigned i = 0; i < 5; i++)
			off = off << 8 | k->off[i];
		memcpy(slot + REDDN_SLOT_RECORD, w->heap + off, len);
	}
	memcpy(slot + REDDN_SLOT_LIVE, w->live, sizeof(*w->live));
	seen[hits]++;
}

static void send_request(struct world *w)
{
	uint8_t arg[CHAIN_MAX_ARG], *p = arg;
	unsigned b[2] = {(unsigned)rnd(w, BUCKETS), (unsigned)rnd(w, BUCKETS)}, pick = (unsigned)rnd(w, 6);
	uint64_t fp = pick < 4 ? fp_of(&w->buckets[b[pick % 2]]) : 1 + rnd(w, 1u << 30);

	if (pick == 3) { /* often a hit in both */
		b[1] = b[0] ^ 1;
		fp = fp_of(&w->buckets[b[0]]);
	}
	if (pick == 5) /* a near miss: one bit */
		fp = fp_of(&w->buckets[b[0]]) ^ 1ull << rnd(w, 48);
	expect(w, b, fp);
	if (w->t->wild == BEYOND && w->c.sent > 8)
		b[1] = BUCKETS;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = sizeof(w->buckets->fp); k-- > 0;)
			*p++ = (uint8_t)(fp >> 8 * k);
		for (unsigned k = w->t->offset_len; k-- > 0;)
			*p++ = (uint8_t)((uint64_t)b[i] * sizeof(struct reddn_bucket) >> 8 * k);
	}
	assert_int_equal(p - arg, w->c.img->arg_len);
	chain_rig_send(&w->c, arg, w->c.img->arg_len + (w->t->wild == LONG && w->c.sent > 8), NULL, 0);
}

static bool wrong(struct world *w, const char *what)
{
	if (!w->why[0])
		snprintf(w->why, sizeof(w->why), "request %lu: %s", (unsigned long)w->answered, what);
	return false;
}

static bool take_replies(struct world *w)
{
	const uint8_t *cqe;
	char why[360];

	while ((cqe = rig_cq_next(&w->c.client_rcq))) {
		size_t slot = w->answered % w->t->depth * w->slot;

		if (rig_cqe_op(cqe) != CQE_OP_RESP_WRITE_IMM)
			return wrong(w, "the client's receive failed");
		if (wqe_get(cqe + 36, 4) != (uint32_t)(w->t->first + w->answered))
			return wrong(w, "the immediate is not the number of the request");
		if (memcmp(w->slots + slot, w->slots_after + slot, w->slot) != 0)
			return wrong(w, "the reply slot is not what a get means");
		w->answered++;
	}
	while ((cqe = rig_cq_next(&w->c.client_scq)))
		if (rig_cqe_op(cqe) != CQE_OP_REQ)
			return wrong(w, "the client's send failed");
	return chain_rig_serve(&w->c, why, sizeof(why)) || wrong(w, why);
}

static bool serve(struct world *w)
{
	while (w->answered < w->t->requests || w->c.completed < w->t->requests) {
		bool busy = false;

		/* a slot's old reply must have been compared before it is asked for again */
		if (w->c.sent < w->t->requests && w->c.sent - w->answered < w->t->depth && rnd(w, 2))
			send_request(w);
		for (uint64_t n = 1 + rnd(w, 12); n-- > 0;)
			busy |= hw_poll(w->c.rig.dev);
		if (!take_replies(w))
			return false;
		if (!busy && w->c.sent > w->answered && !hw_poll(w->c.rig.dev) &&
			hw_next_timer(w->c.rig.dev) == UINT64_MAX)
			return take_replies(w) && wrong(w, "no answer");
	}
	rig_run(&w->c.rig);
	if (memcmp(w->slots, w->slots_after, (size_t)w->t->depth * w->slot) != 0)
		return wrong(w, "a reply slot was written after its reply");
	return take_replies(w);
}

/* ---- trials ----------------------------------------------------------------------------- */

static bool trial(const struct trial *t, char why[400])
{
	struct world *w = calloc(1, sizeof(*w));
	struct hw_config cfg = {.seed = t->seed, .lenient = t->lenient};
	struct chain_image *img = NULL;
	const uint32_t longest = t->record_max > MOSTLY ? t->record_max : MOSTLY;
	bool ok;

	assert_non_null(w);
	w->t = t;
	w->slot = REDDN_SLOT_RECORD + (longest + 63) / 64 * 64;
	w->heap_size = RECORDS * ((longest + 7) & ~7u);
	assert_int_equal(
		chain_hash_get(&(struct chain_hash_get){t->parallel, (uint8_t)t->offset_len}, &img), 0);
	if (t->damage)
		t->damage(img);
	chain_rig_open(&w->c, &cfg, img, t->depth);
	if (t->recycled)
		chain_rig_recycle(&w->c, t->recycled);
	chain_rig_first(&w->c, t->first);
	make_table(w);
	make_slots(w);
	chain_rig_start(&w->c, w->slots, w->slot, t->depth);
	ok = serve(w);
	rig_run(&w->c.rig);
	/* cmocka looks at each byte by itself */
	assert_true(memcmp(w->table_before, w->buckets,
			    (size_t)(w->heap + w->heap_size - (uint8_t *)w->buckets)) == 0);
	memcpy(why, w->why, sizeof(w->why));

	chain_rig_close(&w->c);
	free(w->table_before);
	free(w->slots_after);
	free(w);
	return ok;
}

static void assert_right(const struct trial *t)
{
	char why[400];

	if (!trial(t, why))
		fail_msg("%s, depth %u, seed %lu: %s", t->parallel ? "parallel" : "sequential", t->depth,
			(unsigned long)t->seed, why);
}

static void friendly_silicon(void **state)
{
	(void)state;
	for (unsigned par = 0; par < 2; par++)
		assert_right(&(struct trial){.lenient = true,
			.parallel = par,
			.depth = 2,
			.offset_len = 5,
			.requests = 50,
			.record_max = 4096});
}

static void any_legal_silicon(void **state)
{
	static const unsigned depths[] = {1, 2, 16};

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++)
		for (unsigned par = 0; par < 2; par++)
			for (unsigned d = 0; d < 3; d++)
				assert_right(&(struct trial){.seed = seed,
					.parallel = par,
					.depth = depths[d],
					.offset_len = 2 + (unsigned)seed % 6,
					.requests = 10 + 5 * depths[d],
					.record_max = seed % 8 ? 2000 : RECORD_MAX});
	for (unsigned i = 0; i < 4; i++)
		assert_true(seen[i] > 100);
}

/* Beyond the window: an error of the step that went there, for this client alone, and nothing is written */
static void outside_the_window(void **state)
{
	char why[400];

	(void)state;
	for (unsigned form = 0; form < 4; form++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			assert_false(trial(&(struct trial){.seed = seed,
						   .parallel = form & 1,
						   .recycled = form & 2 ? 8 : 0,
						   .depth = 2,
						   .offset_len = 3,
						   .requests = 20,
						   .record_max = 200,
						   .wild = BEYOND},
				why));
			if (!strstr(why, "syndrome 0x13 of step look1"))
				fail_msg("seed %lu: %s", (unsigned long)seed, why);
		}
}

static void indices_wrap(void **state)
{
	(void)state;
	/* 16 WQEBBs of code ring per instance: the 16-bit index wraps after 4096 requests */
	for (unsigned par = 0; par < 2; par++)
		assert_right(&(struct trial){.seed = 5,
			.parallel = par,
			.depth = 1,
			.offset_len = 2,
			.requests = 8300,
			.record_max = 40});
}

/*
 * A request one byte too long: its RECV fails, and so do all that are posted. Their CQEs end the WAITs of the
 * code queues, which then run on with what is in their slots; neither client nor table may notice.
 */
static void a_request_too_long(void **state)
{
	char why[400];

	(void)state;
	for (unsigned par = 0; par < 2; par++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			assert_false(trial(&(struct trial){.seed = seed,
						   .parallel = par,
						   .depth = 16,
						   .offset_len = 3,
						   .requests = 40,
						   .record_max = 200,
						   .wild = LONG},
				why));
			if (!strstr(why, "the client's send failed") &&
				!strstr(why, "the client's receive failed"))
				fail_msg("seed %lu: %s", (unsigned long)seed, why);
		}
}

/* ---- nobody arms ---------------------------------------------------------------------------- */

static void recycled(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < CHAIN_RIG_SEEDS; seed++)
		for (unsigned par = 0; par < 2; par++)
			assert_right(&(struct trial){.seed = seed,
				.parallel = par,
				.depth = 1 << seed % 3,
				.recycled = 8 << seed % 2,
				.offset_len = 2 + (unsigned)seed % 6,
				.requests = 60,
				.record_max = 200});
}

/* Every number wraps that has 16 bits: WQE indices, enables, RECVs */
static void recycled_for_long(void **state)
{
	static const unsigned slots[] = {4, 64, 256};

	(void)state;
	for (unsigned par = 0; par < 2; par++)
		for (unsigned i = 0; i < 3; i++)
			assert_right(&(struct trial){.seed = 7,
				.parallel = par,
				.depth = i ? 16 : 2,
				.recycled = slots[i],
				.offset_len = 2,
				.requests = i ? CHAIN_RIG_LONG / 2 : CHAIN_RIG_LONG / 8,
				.record_max = 40});
}

/* CQE numbers have 24 bits, request numbers 32 */
static void recycled_past_every_number(void **state)
{
	static const uint64_t ends[] = {1ull << 24, 1ull << 32};

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned slots = 64; slots <= 256; slots *= 4)
			assert_right(&(struct trial){.seed = 9,
				.parallel = i == 0,
				.depth = 16,
				.recycled = slots,
				.first = ends[i] - 65536,
				.offset_len = 2,
				.requests = CHAIN_RIG_LONG / 2,
				.record_max = 40});
}

/* ---- variants with one thing wrong ----------------------------------------------------------- */

static uint8_t *step(struct chain_image *img, const char *label)
{
	for (unsigned i = 0; i < img->nlabels; i++)
		if (strcmp(img->labels[i].name, label) == 0)
			return img->queue[img->labels[i].queue].wqes +
			       (size_t)img->labels[i].wqebb * CHAIN_WQEBB;
	fail_msg("no step %s", label);
	return NULL;
}

static void compare_too_early(struct chain_image *img)
{
	step(img, "match0")[WQE_FLAGS] &= (uint8_t)~WQE_FENCE;
}

/* Without its CQE the READ of the lanes may be late, and the WAIT holds nothing back */
static void reply_too_early(struct chain_image *img)
{
	step(img, "decide")[WQE_FLAGS] &= (uint8_t)~WQE_SIGNALLED;
	img->queue[1].cqes = 0;
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (img->relocs[i].kind == CHAIN_REL_WAIT && img->relocs[i].index == 1)
			img->relocs[i].addend = -1;
}

/* Waits for the decision of the instance before, which is there already */
static void decision_not_awaited(struct chain_image *img)
{
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (img->relocs[i].kind == CHAIN_REL_WAIT && img->relocs[i].index == 1)
			img->relocs[i].addend--;
}

static struct chain_reloc *enable(struct chain_image *img, unsigned target)
{
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (img->relocs[i].kind == CHAIN_REL_ENABLE && img->relocs[i].index == target)
			return &img->relocs[i];
	fail_msg("nothing enables queue %u", target);
	return NULL;
}

/* The next instance's READs may be fetched before its request has filled them in */
static void body_too_early(struct chain_image *img)
{
	enable(img, 1)->addend = 2 * img->queue[1].wqebbs;
}

/* The hits may be fetched while they are NOPs: with the next instance's head, long before its decision */
static void hits_too_early(struct chain_image *img)
{
	enable(img, 0)->addend = 2 * img->queue[0].wqebbs;
}

/* Does not wait for the other queue's decision, but for the one before */
static void other_queue_not_awaited(struct chain_image *img)
{
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (img->relocs[i].kind == CHAIN_REL_WAIT && img->relocs[i].index == 2)
			img->relocs[i].addend--;
}

static void wrong_twins_fail(void **state)
{
	static const struct {
		const char *name;
		bool parallel;
		void (*damage)(struct chain_image *img);
	} variants[] = {
		{"compare without fence", false, compare_too_early},
		{"reply enabled before the decision", false, reply_too_early},
		{"decision not awaited", false, decision_not_awaited},
		{"body enabled with the head", false, body_too_early},
		{"hits enabled with the reply before", false, hits_too_early},
		{"other queue not awaited", true, other_queue_not_awaited},
	};
	char why[400];

	(void)state;
	for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		unsigned failed = 0, n = 20;

		for (uint64_t seed = 0; seed < n; seed++)
			failed += !trial(&(struct trial){.seed = seed,
						 .parallel = variants[i].parallel,
						 .depth = 2,
						 .offset_len = 2,
						 .requests = 20,
						 .record_max = 200,
						 .damage = variants[i].damage},
				why);
		print_message(
			"%s: %u of %u seeds fail, the last with: %s\n", variants[i].name, failed, n, why);
		if (failed == 0)
			fail_msg("%s passes under every seed", variants[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(friendly_silicon),
		cmocka_unit_test(any_legal_silicon),
		cmocka_unit_test(indices_wrap),
		cmocka_unit_test(outside_the_window),
		cmocka_unit_test(a_request_too_long),
		cmocka_unit_test(recycled),
		cmocka_unit_test(recycled_for_long),
		cmocka_unit_test(recycled_past_every_number),
		cmocka_unit_test(wrong_twins_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
