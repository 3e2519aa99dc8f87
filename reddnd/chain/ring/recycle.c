/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/recycle.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/instance.h"
#include "reddnd/chain/ring/lap-check.h"
#include "reddnd/chain/ring/lap-end.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_SECTIONS = CHAIN_RECYCLE_MAX_SECTIONS,
	MIN_SECTIONS = 4,
	SECTION_SLOTS = 16, /* or more, where there are more sections than MIN_SECTIONS */
	HEAD = 64           /* bytes before log and lanes: progress, and its old value */
};

struct recycler {
	const struct chain_image *img;
	const struct chain_env *env;
	struct lap *lap;
	bool dry; /* no addresses, no memory */
	/* Per byte of a queue's image: 1 + the relocation that fills it in; 0: none does */
	uint16_t *filled[CHAIN_MAX_QUEUES];
};

unsigned chain_recycle_sections(unsigned slots)
{
	unsigned sections = slots / SECTION_SLOTS;

	return sections < MIN_SECTIONS ? MIN_SECTIONS : sections > MAX_SECTIONS ? MAX_SECTIONS : sections;
}

unsigned chain_recycle_together(unsigned slots)
{
	return slots / chain_recycle_sections(slots);
}

uint32_t chain_recycle_ring(const struct chain_image *img, unsigned q, unsigned slots)
{
	uint32_t ring = chain_ring_wqebbs(&img->queue[q], slots);

	if (q == 0 && chain_has_lap_end(img) && ring == chain_pad_at(img, q, slots))
		ring = ring < CHAIN_MAX_RING ? 2 * ring : 0;
	return ring && ring < CHAIN_RECYCLE_MIN_RING ? CHAIN_RECYCLE_MIN_RING : ring;
}

/* ---- what an instance needs ---------------------------------------------------------------------- */

/* The value that a relocation will have a lap of the slots later, and how it goes on from there. @in: that
 * instance */
static void refresh_reloc(struct recycler *k, const struct chain_reloc *r, const struct chain_instance *in)
{
	const struct chain_image *img = k->img;
	const struct chain_env *env = k->env;
	uint64_t addr = in->queue[r->where].addr + r->offset, cqes;
	uint32_t key = chain_lkey(in, CHAIN_SYM_QUEUE, r->where);

	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_INDEX16:
		lap_refresh(k->lap, addr, key, 2,
			chain_enable_index(img, env, r->where, in->seq, r->offset / CHAIN_WQEBB),
			env->queue[r->where].ring_wqebbs);
		return;
	case CHAIN_REL_ENABLE:
		lap_refresh(k->lap, addr + 2, key, 2, chain_recycled_index(img, env, r, in->seq),
			env->queue[r->index].ring_wqebbs);
		return;
	case CHAIN_REL_WAIT:
		cqes = r->index == CHAIN_CQ_RECV ? 1 : img->queue[r->index].cqes;
		lap_refresh(k->lap, addr + 1, key, 3, chain_cqe_number(in, r->index) + (uint64_t)r->addend,
			env->slots * cqes);
		return;
	case CHAIN_REL_SEQ32:
		lap_refresh(k->lap, addr, key, 4, in->seq + (uint64_t)r->addend, env->slots);
		return;
	case CHAIN_REL_ADDR64:
	case CHAIN_REL_LKEY32:
	case CHAIN_REL_RKEY32:
	case CHAIN_REL_QPN24:
	case CHAIN_REL_QPN32:
	case CHAIN_REL_CQN32:
		return; /* the same in every lap */
	}
	assert(!"relocation kind");
}

static void forget_relocs(struct recycler *k)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		free(k->filled[q]);
}

static int note_relocs(struct recycler *k)
{
	const struct chain_image *img = k->img;

	for (unsigned q = 0; q < img->nqueues; q++) {
		k->filled[q] = calloc((size_t)img->queue[q].wqebbs * CHAIN_WQEBB, sizeof(*k->filled[q]));
		if (!k->filled[q])
			return -ENOMEM;
	}
	for (unsigned i = 0; i < img->nrelocs; i++)
		for (unsigned b = 0; b < chain_reloc_bytes(&img->relocs[i]); b++)
			k->filled[img->relocs[i].where][img->relocs[i].offset + b] = (uint16_t)(i + 1);
	return 0;
}

/* A byte of a number that is renewed from lap to lap; its low bytes may be the same in all of them */
static bool is_renewed(const struct recycler *k, const struct chain_reloc *r, uint32_t byte)
{
	return r && r->kind == CHAIN_REL_SEQ32 && k->env->slots % (1ull << 8 * (r->offset + 4 - byte));
}

/*
 * What relocations fill in is not known yet when the size is asked for (dry). The layout must be the same
 * when it is: so such bytes have a tag. Low bytes of a region's address are known, those that a client or the
 * chain chooses: its IOVA has zeros there.
 */
static uint32_t tag_of(const struct recycler *k, const struct chain_reloc *r, uint32_t at, unsigned slot)
{
	uint32_t tag = (uint32_t)(r - k->img->relocs), of_slot = k->img->nrelocs * (slot + 1) + tag;

	at -= r->offset;
	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_LKEY32:
	case CHAIN_REL_RKEY32:
	case CHAIN_REL_QPN24:
	case CHAIN_REL_QPN32:
	case CHAIN_REL_CQN32:
		break;
	case CHAIN_REL_ADDR64:
		if (r->sym != CHAIN_SYM_REGION)
			tag = of_slot;
		else if (8 * (8 - at) <= k->img->region_bits[r->index])
			return 0;
		break;
	case CHAIN_REL_INDEX16:
	case CHAIN_REL_ENABLE:
	case CHAIN_REL_WAIT:
	case CHAIN_REL_SEQ32:
		tag = of_slot;
		break;
	}
	return tag * 8 + at + 1;
}

/* Bytes @at to @at + @n, which all come from the image, or all from relocation @from */
static void restore_run(struct recycler *k, unsigned q, uint32_t at, unsigned n, unsigned from,
	const struct chain_instance *in)
{
	const struct chain_queue *queue = &k->img->queue[q];
	const struct chain_reloc *r = from ? &k->img->relocs[from - 1] : NULL;
	const uint8_t *bytes = queue->wqes + at;
	uint8_t low[8];

	for (; n && is_renewed(k, r, at); n--)
		at++;
	if (!n)
		return;
	for (unsigned i = 0; r && i < n; i++)
		low[i] = (uint8_t)((uint64_t)r->addend >> 8 * ((r->offset + 7 - at - i) & 7));
	if (!k->dry)
		bytes = in->queue[q].wqes + at;
	else if (r)
		bytes = low;
	lap_restore(k->lap, in->queue[q].addr + at, chain_lkey(in, CHAIN_SYM_QUEUE, q), bytes, n,
		r ? tag_of(k, r, at, in->slot) : 0);
}

static void restore_wqes(struct recycler *k, const struct chain_restore *r, const struct chain_instance *in)
{
	const uint16_t *filled = k->filled[r->index];
	unsigned n;

	for (uint32_t at = r->offset; at < r->offset + r->len; at += n) {
		for (n = 1; n < 8 && at + n < r->offset + r->len && filled[at + n] == filled[at];)
			n++;
		restore_run(k, r->index, at, n, filled[at], in);
	}
}

static void restore(struct recycler *k, const struct chain_restore *r, const struct chain_instance *in)
{
	if (r->sym == CHAIN_SYM_QUEUE) {
		restore_wqes(k, r, in);
		return;
	}
	for (uint32_t at = r->offset; at < r->offset + r->len; at += 8)
		lap_restore(k->lap, in->scratch + at, k->env->scratch.lkey, k->img->scratch_init + at,
			r->offset + r->len - at < 8 ? r->offset + r->len - at : 8, 0);
}

static void refresh_slot(struct recycler *k, unsigned slot)
{
	struct chain_instance in;

	chain_locate(&in, k->img, k->env, k->env->first + slot + k->env->slots);
	for (unsigned i = 0; i < k->img->nrelocs; i++)
		refresh_reloc(k, &k->img->relocs[i], &in);
	for (unsigned i = 0; i < k->img->nrestores; i++)
		restore(k, &k->img->restores[i], &in);
}

static void refresh_pad_index(struct recycler *k, unsigned q, uint32_t w)
{
	const struct chain_env *env = k->env;
	uint32_t ring = env->queue[q].ring_wqebbs;

	lap_refresh(k->lap, env->queue[q].iova + (uint64_t)w * CHAIN_WQEBB + WQE_INDEX, env->queue[q].lkey, 2,
		env->first / env->slots * ring + w, ring);
}

/* What it has beside a pad: the number of its SEND_EN, and the index of the NOP behind it */
static void refresh_lap_end(struct recycler *k)
{
	const struct chain_env *env = k->env;
	const uint32_t at = chain_lap_end_at(k->img, env);

	lap_refresh(k->lap, env->queue[0].iova + (uint64_t)at * CHAIN_WQEBB + WQE_SYNC_INDEX + 2,
		env->queue[0].lkey, 2, chain_lap_end_index(k->img, env, env->first / env->slots),
		env->queue[chain_start_queue(k->img)].ring_wqebbs);
	if (at + 1 < env->queue[0].ring_wqebbs)
		refresh_pad_index(k, 0, at + 1);
}

/* The pad at the end of a lap has run when the first instance of the next lap is over */
static void refresh_pads(struct recycler *k)
{
	const struct chain_env *env = k->env;

	for (unsigned q = 0; q < k->img->nqueues; q++) {
		uint32_t ring = env->queue[q].ring_wqebbs, w = chain_pad_at(k->img, q, env->slots);

		for (; w < ring; w += chain_pad_nop(k->img, ring - w))
			refresh_pad_index(k, q, w);
	}
	if (chain_has_lap_end(k->img))
		refresh_lap_end(k);
}

/* ---- the recycler's lap ------------------------------------------------------------------------------ */

/* One 64-bit word, so that who looks at it sees a number that was there */
static void count(struct recycler *k, unsigned requests)
{
	uint8_t *w = lap_bytes(k->lap, lap_add(k->lap, CHAIN_FETCH_ADD, 1, 0));
	uint8_t *old = w + WQE_ATOMIC + 16;

	wqe_put64(w + WQE_RADDR, k->env->lanes.iova);
	wqe_put32(w + WQE_RKEY, k->env->lanes.rkey);
	wqe_put64(w + WQE_ATOMIC, requests);
	wqe_put32(old + WQE_SGE_LEN, 8);
	wqe_put32(old + WQE_SGE_LKEY, k->env->lanes.lkey);
	wqe_put64(old + WQE_SGE_ADDR, k->env->lanes.iova + 8);
}

/* Of the slots of a section. What restores them comes later in the same queue: the responder reads for one
 * READ before it answers the next, so nothing is restored before it is copied. */
static uint32_t log_bytes(const struct recycler *k)
{
	return chain_recycle_together(k->env->slots) * k->img->queue[0].wqebbs * CHAIN_WQEBB;
}

static void log_replies(struct recycler *k, unsigned g)
{
	uint32_t len = log_bytes(k);
	uint64_t from = k->env->queue[0].iova + (uint64_t)g * len;
	uint8_t *w = lap_bytes(k->lap, lap_add(k->lap, CHAIN_READ, 1, 0));

	wqe_put64(w + WQE_RADDR, from);
	wqe_put32(w + WQE_RKEY, k->env->queue[0].rkey);
	wqe_put32(w + WQE_RDMA_SGE + WQE_SGE_LEN, len);
	wqe_put32(w + WQE_RDMA_SGE + WQE_SGE_LKEY, k->env->lanes.lkey);
	wqe_put64(w + WQE_RDMA_SGE + WQE_SGE_ADDR, k->env->lanes.iova + HEAD + (uint64_t)g * len);
}

/*
 * All instances before number @end of the slots are over. The last CQE of a reply would do, if it were that
 * of a reply. But when the client's queue pair fails, what is enabled of the replies is flushed, and that may
 * be while a chain that answers ahead is still at work: so for the last CQEs of the code queues as well.
 */
static void await_instances(struct recycler *k, unsigned end)
{
	const struct chain_env *env = k->env;

	for (unsigned q = k->img->nqueues; q-- > 0;) {
		uint64_t cqes = k->img->queue[q].cqes;
		unsigned wait;

		if (!cqes)
			continue;
		wait = lap_add(k->lap, CHAIN_WAIT, 0, 0);
		lap_number(k->lap, wait, WQE_SYNC_INDEX + 1, 3, (env->first + end) * cqes - 1,
			env->slots * cqes);
		wqe_put32(lap_bytes(k->lap, wait) + WQE_SYNC_OBJECT, env->queue[q].cqn);
	}
}

static void add_section(
	struct recycler *k, unsigned g, unsigned enables[MAX_SECTIONS], unsigned recv_en[MAX_SECTIONS])
{
	const struct chain_env *env = k->env;
	unsigned slots = chain_recycle_together(k->env->slots), end = (g + 1) * slots;
	bool last = end == env->slots;
	uint64_t after = env->first + end;
	unsigned mark, landed, recvs;

	await_instances(k, end);
	log_replies(k, g);
	for (unsigned s = g * slots; s < end; s++)
		refresh_slot(k, s);
	if (g == 0)
		refresh_pads(k);
	lap_renew(k->lap);
	if (last)
		lap_advance(k->lap);
	mark = lap_add(k->lap, CHAIN_NOP, 0, WQE_SIGNALLED);
	landed = lap_add(k->lap, CHAIN_WAIT, 0, 0);
	lap_await(k->lap, landed, mark);
	count(k, slots);
	recvs = recv_en[g] = lap_add(k->lap, CHAIN_RECV_EN, 0, 0);
	lap_number(k->lap, recvs, WQE_SYNC_INDEX + 2, 2, env->slots + after - 1, env->slots);
	wqe_put32(lap_bytes(k->lap, recvs) + WQE_SYNC_OBJECT, env->queue[0].qpn);
	enables[g] = lap_add(k->lap, CHAIN_SEND_EN, 0, 0);
	if (!last)
		lap_next_section(k->lap);
}

static int make(struct recycler *k, uint32_t ring, struct chain_recycle *size)
{
	const struct chain_env *env = k->env;
	const unsigned sections = chain_recycle_sections(env->slots);
	const uint32_t head = HEAD + sections * log_bytes(k);
	const struct lap_env lap = {
		.qpn = env->recycler.qpn,
		.cqn = env->recycler.cqn,
		.wqebbs = ring,
		.lkey = env->recycler.lkey,
		.lanes_lkey = env->lanes.lkey,
		.lanes_rkey = env->lanes.rkey,
		.ring = k->dry ? NULL : env->recycler.ring,
		.iova = env->recycler.iova,
		.lanes = k->dry ? NULL : env->lanes.mem + head,
		.lanes_iova = env->lanes.iova + head,
		.lanes_size = env->lanes.size - head,
		.first_cqe = (uint32_t)env->first,
		.group = k->img->fetch_group,
	};
	unsigned enables[MAX_SECTIONS], recv_en[MAX_SECTIONS];
	int r = lap_new(&k->lap, &lap, sections);

	if (r < 0)
		return r;
	for (unsigned g = 0; g < sections; g++)
		add_section(k, g, enables, recv_en);
	for (unsigned g = 0; g < sections; g++)
		lap_enable(k->lap, enables[g], enables[(g + 1) % sections]);
	r = lap_finish(k->lap, &size->lap);
	if (r == 0) {
		size->ring_wqebbs = ring;
		size->lanes = size->lap.lanes + head;
		size->start = lap_index_after(k->lap, enables[0]);
		size->recvs = (uint16_t)(env->first + env->slots - 1);
		size->progress = 0;
		size->log = HEAD;
		for (unsigned g = 0; g < sections; g++)
			size->recv_en[g] = (uint16_t)(lap_index_of(k->lap, recv_en[g]) & (ring - 1));
	}
	lap_free(k->lap);
	if (r == 0 && !k->dry) {
		struct lap_env made = lap;
		struct chain_error err;

		made.lanes_size = size->lap.lanes;
		r = lap_check(&made, size->start, &err);
		assert(r <= 0 && "the recycler is not in order");
	}
	return r;
}

/* A control segment that the chain changes, as in the direct form of conditions, would have to be put back
 * over the index that is being renewed */
static bool changes_indices(const struct chain_image *img)
{
	for (unsigned i = 0; i < img->nrestores; i++) {
		const struct chain_restore *r = &img->restores[i];

		for (uint32_t b = r->offset; r->sym == CHAIN_SYM_QUEUE && b < r->offset + r->len; b++)
			if (img->queue[r->index].starts[b / CHAIN_WQEBB] && b % CHAIN_WQEBB >= WQE_INDEX &&
				b % CHAIN_WQEBB < WQE_OPCODE)
				return true;
	}
	return false;
}

/* The recycler sees by its CQEs when each code queue is through with a slot */
static bool counts_code(const struct chain_image *img)
{
	for (unsigned q = 1; q < img->nqueues; q++)
		if (!img->queue[q].cqes)
			return false;
	return true;
}

int chain_recycle_size(const struct chain_image *img, const struct chain_env *env, struct chain_recycle *size)
{
	struct recycler k = {.img = img, .env = env, .dry = true};
	int r = -E2BIG;

	assert(env->slots >= CHAIN_RECYCLE_MIN_SLOTS && env->slots % chain_recycle_sections(env->slots) == 0);
	*size = (struct chain_recycle){0};
	if (img->publish.there || changes_indices(img) || (chain_has_lap_end(img) && !counts_code(img)))
		return -EOPNOTSUPP;
	if (note_relocs(&k) < 0)
		r = -ENOMEM;
	for (uint32_t ring = LAP_MIN_RING; r == -E2BIG && ring <= CHAIN_MAX_RING; ring *= 2)
		r = make(&k, ring, size);
	forget_relocs(&k);
	return r;
}

void chain_recycle_arm(const struct chain_image *img, const struct chain_env *env)
{
	for (unsigned slot = 0; slot < env->slots; slot++) {
		chain_arm(img, env, env->first + slot);
		chain_format_recv(img, env, slot);
	}
	for (unsigned q = 0; q < img->nqueues; q++)
		chain_write_pad(img, env, q, env->first / env->slots);
	if (chain_has_lap_end(img))
		chain_write_lap_end(img, env, env->first / env->slots);
}

int chain_recycle(const struct chain_image *img, const struct chain_env *env, struct chain_recycle *made)
{
	struct recycler k = {.img = img, .env = env};
	int r;

	assert(env->slots % env->slot_count == 0 && env->recycler.ring_wqebbs == made->ring_wqebbs);
	chain_recycle_arm(img, env);
	memset(env->lanes.mem, 0, HEAD);
	r = note_relocs(&k);
	if (r == 0)
		r = make(&k, made->ring_wqebbs, made);
	forget_relocs(&k);
	return r;
}
