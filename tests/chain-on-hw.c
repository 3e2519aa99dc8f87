/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash-get chain on the emulated silicon, in one process: a table, a client and the rings of a session in
 * one arena, requests at random, and after every reply a comparison with what a get means. Under strict
 * seeds the silicon fetches early and lands late; twins of the chain with one barrier missing must then fail.
 */
#include "libclient/table-format.h"
#include "libclient/wire.h"
#include "reddnd/chain/arm.h"
#include "reddnd/chain/decode.h"
#include "reddnd/chain/hashget.h"
#include "reddnd/chain/wqe.h"
#include "softcx/nic/test-rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 64,
	RECORDS = 24,
	RECORD_MAX = 65536,
	HEAP = 3 << 19,
	SLOT = REDDN_SLOT_RECORD + RECORD_MAX,
	DEPTH_MAX = 16,
	CQ_LOG = 7,
};

struct trial {
	uint64_t seed;
	bool lenient, parallel;
	unsigned depth, offset_len, requests;
	uint32_t record_max;
	bool wild;                               /* a client that looks beyond the table, in the end */
	void (*damage)(struct chain_image *img); /* makes a wrong twin */
};

struct world {
	const struct trial *t;
	uint64_t rng;
	struct rig rig;
	struct chain_image *img;
	struct chain_env env;
	struct rig_cq request_cq, cq[CHAIN_MAX_QUEUES], client_scq, client_rcq, boot_cq;
	struct rig_qp queue[CHAIN_MAX_QUEUES], client, boot;
	uint32_t key[8];
	unsigned nkeys;
	struct reddn_bucket *buckets;
	uint8_t *heap, *slots, *args;
	struct reddn_table_live *live;
	uint8_t *table_before, *slots_after; /* what memory must look like */
	struct {
		uint32_t off, len;
	} record[RECORDS];
	uint64_t armed, posted, sent, answered, completed; /* counts of instances */
	char why[400];                                     /* what went wrong */
};

static uint64_t rnd(struct world *w, uint64_t below)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (w->rng >> 11) % below;
}

static void fill(struct world *w, uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)rnd(w, 256);
}

static uint32_t make_key(struct world *w, const void *p, uint64_t len, uint64_t iova, unsigned access)
{
	struct hw_mkey_attr a = {.pdn = w->rig.pdn,
		.iova = iova,
		.len = len,
		.access = access,
		.mem = &w->rig.mem,
		.mem_off = rig_off(&w->rig, p)};

	assert_int_equal(hw_mkey_create(w->rig.dev, &a, &w->key[w->nkeys]), 0);
	return w->key[w->nkeys++];
}

/* ---- table ------------------------------------------------------------------------------ */

static uint64_t fp_of(const struct reddn_bucket *b)
{
	uint64_t fp = 0;

	for (unsigned i = 7; i-- > 0;)
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
	for (unsigned i = 0; i < 7; i++)
		k->fp[i] = (uint8_t)(fp >> 8 * i);
}

/* Record 0 is the null record. A third of the buckets is empty: fingerprint 0. */
static void make_table(struct world *w)
{
	uint32_t at = 0;

	w->buckets = rig_alloc(&w->rig, BUCKETS * sizeof *w->buckets);
	w->live = rig_alloc(&w->rig, sizeof *w->live);
	w->heap = rig_alloc(&w->rig, HEAP);
	fill(w, (uint8_t *)w->live, sizeof *w->live);
	for (unsigned i = 0; i < RECORDS; i++) {
		uint32_t len = 17 + (uint32_t)rnd(w, rnd(w, 3) ? 200 : w->t->record_max - 16);

		len = i == 0 ? sizeof(struct reddn_record) : i == 1 ? w->t->record_max : i == 2 ? 17 : len;
		if (at + len > HEAP)
			len = 17;
		w->record[i].off = at;
		w->record[i].len = len;
		fill(w, w->heap + at, len);
		at += (len + 7) & ~7u;
		assert_true(at <= HEAP);
	}
	for (unsigned b = 0; b < BUCKETS; b++) {
		bool empty = rnd(w, 3) == 0;
		uint64_t fp = 1 + rnd(w, 1u << 30) * 0x3ffffff;

		if (b % 2 && rnd(w, 3) == 0) /* two entries that a get cannot tell apart */
			fp = fp_of(&w->buckets[b - 1]);
		set_bucket(w, b, empty ? 0 : 1 + (unsigned)rnd(w, RECORDS - 1), empty ? 0 : fp);
	}
	for (unsigned r = 0; r < 3; r++)
		w->env.region[r].iova = (uint64_t)(r + 1) << 56;
	w->env.region[CHAIN_HASH_GET_WINDOW].rkey = make_key(w, w->buckets, BUCKETS * sizeof *w->buckets,
		w->env.region[CHAIN_HASH_GET_WINDOW].iova, HW_REMOTE_READ);
	w->env.region[CHAIN_HASH_GET_HEAP].lkey =
		make_key(w, w->heap, HEAP, w->env.region[CHAIN_HASH_GET_HEAP].iova, 0);
	w->env.region[CHAIN_HASH_GET_LIVE].lkey =
		make_key(w, w->live, sizeof *w->live, w->env.region[CHAIN_HASH_GET_LIVE].iova, 0);
	w->table_before = malloc(w->heap + HEAP - (uint8_t *)w->buckets);
	assert_non_null(w->table_before);
	memcpy(w->table_before, w->buckets, (size_t)(w->heap + HEAP - (uint8_t *)w->buckets));
}

/* ---- session ---------------------------------------------------------------------------- */

static void make_queues(struct world *w)
{
	unsigned slots = w->env.slots;

	rig_cq_new_attr(&w->rig, &w->request_cq, (struct hw_cq_attr){.log_size = 0, .oi = true});
	w->env.recv_cqn = hw_cqn(w->request_cq.cq);
	for (unsigned q = 0; q < w->img->nqueues; q++) {
		const struct chain_queue *iq = &w->img->queue[q];
		struct rig_opt opt = {
			.managed = true, .wqebbs = chain_ring_wqebbs(iq, slots), .rq_wqes = slots};

		assert_true(opt.wqebbs > 0);
		rig_cq_new_attr(&w->rig, &w->cq[q], (struct hw_cq_attr){.log_size = CQ_LOG, .oi = q > 0});
		rig_qp_new_with(&w->rig, &w->queue[q], &w->cq[q], q ? &w->cq[q] : &w->request_cq, opt);
		w->env.queue[q].qpn = hw_qpn(w->queue[q].qp);
		w->env.queue[q].cqn = hw_cqn(w->cq[q].cq);
		w->env.queue[q].ring = w->queue[q].sq;
		w->env.queue[q].ring_wqebbs = opt.wqebbs;
		w->env.queue[q].iova = (uint64_t)(16 + q) << 32;
		w->env.queue[q].lkey = w->env.queue[q].rkey =
			make_key(w, w->queue[q].sq, (uint64_t)opt.wqebbs * CHAIN_WQEBB, w->env.queue[q].iova,
				HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC);
		if (q)
			rig_connect(&w->queue[q], &w->queue[q]);
	}
	w->env.scratch.mem = rig_alloc(&w->rig, (size_t)slots * w->img->scratch_size);
	w->env.scratch.iova = 0x4000000000;
	w->env.scratch.lkey = w->env.scratch.rkey =
		make_key(w, w->env.scratch.mem, (uint64_t)slots * w->img->scratch_size, w->env.scratch.iova,
			HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC);
	w->env.rq = w->queue[0].rq;
	w->env.rq_stride = chain_rq_stride(w->img);
	assert_int_equal(w->env.rq_stride, 64); /* the rig's */
}

static void make_client(struct world *w)
{
	size_t bytes = (size_t)w->t->depth * SLOT;

	rig_cq_new(&w->rig, &w->client_scq, 6);
	rig_cq_new(&w->rig, &w->client_rcq, 6);
	rig_qp_new_with(&w->rig, &w->client, &w->client_scq, &w->client_rcq, (struct rig_opt){.rq_wqes = 32});
	rig_connect(&w->client, &w->queue[0]);
	w->args = rig_alloc(&w->rig, (size_t)DEPTH_MAX * CHAIN_MAX_ARG);
	w->slots = rig_alloc(&w->rig, bytes);
	fill(w, w->slots, bytes);
	w->slots_after = malloc(bytes);
	assert_non_null(w->slots_after);
	memcpy(w->slots_after, w->slots, bytes);
	w->env.slot_addr = 0x7f0012340000;
	w->env.slot_size = SLOT;
	w->env.slot_count = w->t->depth;
	w->env.slot_rkey = make_key(w, w->slots, bytes, w->env.slot_addr, HW_LOCAL_WRITE | HW_REMOTE_WRITE);
}

static void post_receives(struct world *w)
{
	while (w->posted + 1 < w->armed)
		w->posted++;
	w->queue[0].db[0] = htobe32((uint32_t)w->posted & 0xffff);
}

static void start(struct world *w)
{
	for (; w->armed < w->env.slots; w->armed++)
		chain_arm(w->img, &w->env, w->armed);
	for (unsigned s = 0; s < w->env.slots; s++)
		chain_format_recv(w->img, &w->env, s);
	post_receives(w);
	rig_cq_new(&w->rig, &w->boot_cq, 4);
	rig_qp_new(&w->rig, &w->boot, &w->boot_cq, &w->boot_cq);
	rig_connect(&w->boot, &w->boot);
	for (unsigned q = 1; q < w->img->nqueues; q++)
		wqe_enable(&w->boot, HW_OP_SEND_EN, w->env.queue[q].qpn, chain_start_index(w->img, q), 0);
	rig_ring(&w->boot);
	rig_run(&w->rig);
}

/* ---- requests --------------------------------------------------------------------------- */

static unsigned seen[4]; /* misses, hits in the first bucket, the second, both */

/* What a get of @fp in these buckets means for the reply slot */
static void expect(struct world *w, const unsigned b[2], uint64_t fp)
{
	uint8_t *slot = w->slots_after + w->sent % w->t->depth * SLOT;

	unsigned hits = 0;

	for (unsigned p = 0; p < 2; p++) {
		const struct reddn_bucket *k = &w->buckets[b[p]];
		uint64_t len = 0, off = 0;

		if (fp_of(k) != fp)
			continue;
		hits |= 1 << p;
		for (unsigned i = 0; i < 3; i++)
			len = len << 8 | k->len[i];
		for (unsigned i = 0; i < 5; i++)
			off = off << 8 | k->off[i];
		memcpy(slot + REDDN_SLOT_RECORD, w->heap + off, len);
	}
	memcpy(slot + REDDN_SLOT_LIVE, w->live, sizeof *w->live);
	seen[hits]++;
}

static void send_request(struct world *w)
{
	uint8_t *arg = w->args + w->sent % DEPTH_MAX * CHAIN_MAX_ARG, *p = arg;
	unsigned b[2] = {(unsigned)rnd(w, BUCKETS), (unsigned)rnd(w, BUCKETS)}, pick = (unsigned)rnd(w, 6);
	uint64_t fp = pick < 4 ? fp_of(&w->buckets[b[pick % 2]]) : 1 + rnd(w, 1u << 30);

	if (pick == 3) { /* often a hit in both */
		b[1] = b[0] ^ 1;
		fp = fp_of(&w->buckets[b[0]]);
	}
	if (pick == 5) /* a near miss: one bit */
		fp = fp_of(&w->buckets[b[0]]) ^ 1ull << rnd(w, 56);
	expect(w, b, fp);
	if (w->t->wild && w->sent > 8)
		b[1] = BUCKETS;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 7; k-- > 0;)
			*p++ = (uint8_t)(fp >> 8 * k);
		for (unsigned k = w->t->offset_len; k-- > 0;)
			*p++ = (uint8_t)((uint64_t)b[i] * sizeof(struct reddn_bucket) >> 8 * k);
	}
	assert_int_equal(p - arg, w->img->arg_len);
	rig_recv(&w->client, 0);
	wqe_send(&w->client, HW_OP_SEND, arg, w->img->arg_len, SIG, 0);
	rig_ring(&w->client);
	w->sent++;
}

static bool wrong(struct world *w, const char *what)
{
	if (!w->why[0])
		snprintf(w->why, sizeof w->why, "request %lu: %s", (unsigned long)w->answered, what);
	return false;
}

/* An error of queue @q, in the words a daemon would use */
static bool error_of(struct world *w, unsigned q, const uint8_t *cqe)
{
	uint16_t index = rig_cqe_idx(cqe);
	uint32_t at = index & (w->env.queue[q].ring_wqebbs - 1);
	char line[250], what[350];

	chain_decode(w->env.queue[q].ring + (size_t)at * CHAIN_WQEBB, CHAIN_WQEBB, line, sizeof line);
	snprintf(what, sizeof what, "syndrome %#x of step %s: %s", rig_cqe_synd(cqe),
		chain_step_at(w->img, w->env.slots, q, index, NULL), line);
	return wrong(w, what);
}

static bool take_replies(struct world *w)
{
	const uint8_t *cqe;

	while ((cqe = rig_cq_next(&w->client_rcq))) {
		size_t slot = w->answered % w->t->depth * SLOT;

		if (rig_cqe_op(cqe) != HW_CQE_RESP_WRITE_IMM)
			return wrong(w, "the client's receive failed");
		if (wqe_get(cqe + 36, 4) != (uint32_t)w->answered)
			return wrong(w, "the immediate is not the number of the request");
		if (memcmp(w->slots + slot, w->slots_after + slot, SLOT) != 0)
			return wrong(w, "the reply slot is not what a get means");
		w->answered++;
	}
	while ((cqe = rig_cq_next(&w->client_scq)))
		if (rig_cqe_op(cqe) != HW_CQE_REQ)
			return wrong(w, "the client's send failed");
	while ((cqe = rig_cq_next(&w->cq[0]))) {
		if (rig_cqe_op(cqe) != HW_CQE_REQ)
			return error_of(w, 0, cqe);
		if (strcmp(chain_step_at(w->img, w->env.slots, 0, rig_cqe_idx(cqe), NULL), "done") != 0)
			return wrong(w, "a CQE of a step that is not signalled");
		w->completed++;
		chain_arm(w->img, &w->env, w->armed++);
		post_receives(w);
	}
	/* Nobody polls these. The error is the one CQE that is neither good nor a flushed WQE */
	for (unsigned q = 1; q < w->img->nqueues; q++)
		for (unsigned i = 0; i < 1u << CQ_LOG; i++) {
			cqe = w->cq[q].ring + (size_t)i * 64;
			if (rig_cqe_op(cqe) == HW_CQE_REQ_ERR && rig_cqe_synd(cqe) != HW_SYND_FLUSH)
				return error_of(w, q, cqe);
		}
	return true;
}

static bool serve(struct world *w)
{
	while (w->answered < w->t->requests || w->completed < w->t->requests) {
		bool busy = false;

		/* a slot's old reply must have been compared before it is asked for again */
		if (w->sent < w->t->requests && w->sent - w->answered < w->t->depth && rnd(w, 2))
			send_request(w);
		for (uint64_t n = 1 + rnd(w, 12); n-- > 0;)
			busy |= hw_poll(w->rig.dev);
		if (!take_replies(w))
			return false;
		if (!busy && w->sent > w->answered && !hw_poll(w->rig.dev))
			return take_replies(w) && wrong(w, "no answer");
	}
	rig_run(&w->rig);
	if (memcmp(w->slots, w->slots_after, (size_t)w->t->depth * SLOT) != 0)
		return wrong(w, "a reply slot was written after its reply");
	if (memcmp(w->table_before, w->buckets, (size_t)(w->heap + HEAP - (uint8_t *)w->buckets)) != 0)
		return wrong(w, "the table was written");
	return take_replies(w);
}

/* ---- trials ----------------------------------------------------------------------------- */

static void destroy_cq(struct world *w, struct rig_cq *cq)
{
	assert_int_equal(hw_cq_destroy(w->rig.dev, cq->cq), 0);
}

static bool trial(const struct trial *t, char why[400])
{
	struct world *w = calloc(1, sizeof *w);
	struct hw_config cfg = {.seed = t->seed, .lenient = t->lenient};
	bool ok;

	assert_non_null(w);
	w->t = t;
	w->rng = (t->seed + 1) * 0x9e3779b97f4a7c15;
	for (w->env.slots = 2; w->env.slots < t->depth + 1;)
		w->env.slots *= 2;
	rig_open(&w->rig, &cfg);
	assert_int_equal(
		chain_hash_get(&(struct chain_hash_get){t->parallel, (uint8_t)t->offset_len}, &w->img), 0);
	if (t->damage)
		t->damage(w->img);
	make_table(w);
	make_queues(w);
	make_client(w);
	start(w);
	ok = serve(w);
	memcpy(why, w->why, sizeof w->why);

	rig_destroy(&w->client);
	rig_destroy(&w->boot);
	for (unsigned q = 0; q < w->img->nqueues; q++)
		rig_destroy(&w->queue[q]);
	for (unsigned q = 0; q < w->img->nqueues; q++)
		destroy_cq(w, &w->cq[q]);
	destroy_cq(w, &w->request_cq);
	destroy_cq(w, &w->client_scq);
	destroy_cq(w, &w->client_rcq);
	destroy_cq(w, &w->boot_cq);
	for (unsigned k = 0; k < w->nkeys; k++)
		assert_int_equal(hw_mkey_destroy(w->rig.dev, w->key[k]), 0);
	rig_close(&w->rig);
	chain_free(w->img);
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
	for (unsigned par = 0; par < 2; par++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			assert_false(trial(&(struct trial){.seed = seed,
						   .parallel = par,
						   .depth = 2,
						   .offset_len = 3,
						   .requests = 20,
						   .record_max = 200,
						   .wild = true},
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

/* ---- twins with one thing wrong ----------------------------------------------------------- */

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
	} twins[] = {
		{"compare without fence", false, compare_too_early},
		{"reply enabled before the decision", false, reply_too_early},
		{"body enabled with the head", false, body_too_early},
		{"hits enabled with the reply before", false, hits_too_early},
		{"other queue not awaited", true, other_queue_not_awaited},
	};
	char why[400];

	(void)state;
	for (unsigned i = 0; i < sizeof twins / sizeof twins[0]; i++) {
		unsigned failed = 0, n = 20;

		for (uint64_t seed = 0; seed < n; seed++)
			failed += !trial(&(struct trial){.seed = seed,
						 .parallel = twins[i].parallel,
						 .depth = 2,
						 .offset_len = 2,
						 .requests = 20,
						 .record_max = 200,
						 .damage = twins[i].damage},
				why);
		print_message("%s: %u of %u seeds fail, the last with: %s\n", twins[i].name, failed, n, why);
		if (failed == 0)
			fail_msg("%s passes under every seed", twins[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(friendly_silicon),
		cmocka_unit_test(any_legal_silicon),
		cmocka_unit_test(indices_wrap),
		cmocka_unit_test(outside_the_window),
		cmocka_unit_test(wrong_twins_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
