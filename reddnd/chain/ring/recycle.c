/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/recycle.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/verbs.h"
#include "reddnd/chain/ring/arm.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- where laps end ---- */

bool chain_has_lap_end(const struct chain_image *img)
{
	return chain_start_queue(img) > 0;
}

uint32_t chain_lap_end_at(const struct chain_image *img, const struct chain_env *env)
{
	return chain_pad_at(img, 0, env->slots);
}

uint16_t chain_lap_end_index(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	return chain_enable_index(
		img, env, chain_start_queue(img), (lap + 1) * env->slots, chain_start_index(img));
}

/* It enables the head of the next lap, too */
static bool crosses(
	const struct chain_image *img, const struct chain_env *env, const struct chain_reloc *r, uint64_t seq)
{
	return chain_has_lap_end(img) && r->index == chain_start_queue(img) &&
	       seq % env->slots + 1 == env->slots && r->addend > img->queue[r->index].wqebbs;
}

uint16_t chain_recycled_index(
	const struct chain_image *img, const struct chain_env *env, const struct chain_reloc *r, uint64_t seq)
{
	if (crosses(img, env, r, seq))
		return chain_enable_index(img, env, r->index, seq + 1, 0);
	return chain_enable_index(img, env, r->index, seq, (uint32_t)r->addend);
}

/* A WQE in WQEBB @at of queue 0, with an index of lap @lap */
static uint8_t *write_wqe(
	const struct chain_env *env, uint64_t lap, uint32_t at, enum chain_verb verb, unsigned ds)
{
	uint8_t *w = env->queue[0].ring + (size_t)at * CHAIN_WQEBB;

	memset(w, 0, CHAIN_WQEBB);
	wqe_put16(w + WQE_INDEX, (uint16_t)(lap * env->queue[0].ring_wqebbs + at));
	w[WQE_OPCODE] = chain_verb_info(verb)->opcode;
	wqe_put32(w + WQE_QPN_DS, env->queue[0].qpn << 8 | ds);
	return w;
}

/* The first NOP of the pad makes room for it */
static void write_end_pad(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	const uint32_t at = chain_lap_end_at(img, env);
	const uint32_t nop = chain_pad_nop(img, env->queue[0].ring_wqebbs - at);
	uint8_t *w = write_wqe(env, lap, at, CHAIN_SEND_EN, chain_wqe_ds(CHAIN_SEND_EN, 0));

	wqe_put32(w + WQE_SYNC_INDEX, chain_lap_end_index(img, env, lap));
	wqe_put32(w + WQE_SYNC_OBJECT, env->queue[chain_start_queue(img)].qpn);
	if (nop > 1)
		write_wqe(env, lap, at + 1, CHAIN_NOP, (nop - 1) * (CHAIN_WQEBB / WQE_DS));
}

static void write_last_instance(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	struct chain_instance in;

	chain_locate(&in, img, env, seq);
	for (const struct chain_reloc *r = img->relocs; r < img->relocs + img->nrelocs; r++)
		if (r->kind == CHAIN_REL_ENABLE && crosses(img, env, r, seq))
			wqe_put32(
				in.queue[r->where].wqes + r->offset, chain_recycled_index(img, env, r, seq));
}

void chain_write_lap_end(const struct chain_image *img, const struct chain_env *env, uint64_t lap)
{
	write_last_instance(img, env, (lap + 1) * env->slots - 1);
	write_end_pad(img, env, lap);
}

enum {
	MAX_SECTIONS = CHAIN_RECYCLE_MAX_SECTIONS,
	MIN_SECTIONS = 4,
	SECTION_SLOTS = 16 /* or more, where there are more sections than MIN_SECTIONS */
};

struct recycler {
	const struct chain_image *img;
	struct chain_env env; /* sizes, and addresses of the image */
	struct lap *lap;
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

/*
 * The WQEs of section s are renewed by section s - n / 2, which counts itself when the READs that do it have
 * landed: its FETCH_ADD stands behind a WAIT for the CQE of a NOP that follows them (add_section()), CQEs of
 * a queue are in order, and a WQE behind a WAIT starts when that is over. So whoever sees that s - n / 2 was
 * counted may let the NIC fetch s. The first n / 2 are as they were written; the others of the first lap get
 * the same bytes again, and wait for that as well.
 */
uint64_t chain_recycle_may_give(unsigned slots, uint64_t recycled)
{
	return recycled / chain_recycle_together(slots) + chain_recycle_sections(slots) / 2;
}

uint16_t chain_recycle_index(const struct chain_recycle *k, unsigned slots, uint64_t given)
{
	const unsigned sections = chain_recycle_sections(slots);

	return given ? (uint16_t)((given - 1) / sections * k->ring_wqebbs + k->end[(given - 1) % sections])
		     : 0;
}

/* Numbers of sections that differ by less than two laps have different indices, and those that are possible
 * differ by less than one */
int chain_recycle_given(
	const struct chain_recycle *k, unsigned slots, uint64_t recycled, uint16_t index, uint64_t *given)
{
	const uint64_t most = chain_recycle_may_give(slots, recycled);

	for (*given = recycled / chain_recycle_together(slots); *given <= most; (*given)++)
		if (chain_recycle_index(k, slots, *given) == index)
			return 0;
	return -EBADMSG;
}

uint32_t chain_recycle_ring(const struct chain_image *img, unsigned q, unsigned slots)
{
	uint32_t ring = chain_ring_wqebbs(&img->queue[q], slots);

	if (q == 0 && chain_has_lap_end(img) && ring == chain_pad_at(img, q, slots))
		ring = ring < CHAIN_MAX_RING ? 2 * ring : 0;
	return ring && ring < CHAIN_RECYCLE_MIN_RING ? CHAIN_RECYCLE_MIN_RING : ring;
}

/* The daemon rings for each section */
static bool is_rung(const struct recycler *k)
{
	return k->img->payload.max;
}

/* ---- what an instance needs ---------------------------------------------------------------------- */

/* The value that a relocation will have a lap of the slots later, and how it goes on from there. @in: that
 * instance */
static void refresh_reloc(struct recycler *k, const struct chain_reloc *r, const struct chain_instance *in)
{
	const struct chain_image *img = k->img;
	const struct chain_env *env = &k->env;
	uint64_t addr = in->queue[r->where].addr + r->offset, cqes;

	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_INDEX16:
		lap_refresh(k->lap, addr, 2,
			chain_enable_index(img, env, r->where, in->seq, r->offset / CHAIN_WQEBB),
			env->queue[r->where].ring_wqebbs);
		return;
	case CHAIN_REL_ENABLE:
		lap_refresh(k->lap, addr + 2, 2, chain_recycled_index(img, env, r, in->seq),
			env->queue[r->index].ring_wqebbs);
		return;
	case CHAIN_REL_WAIT:
		cqes = r->index == CHAIN_CQ_RECV ? 1 : img->queue[r->index].cqes;
		lap_refresh(k->lap, addr + 1, 3, chain_cqe_number(in, r->index) + (uint64_t)r->addend,
			env->slots * cqes);
		return;
	case CHAIN_REL_SEQ32:
		lap_refresh(k->lap, addr, 4, in->seq + (uint64_t)r->addend, env->slots);
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
	return r && r->kind == CHAIN_REL_SEQ32 && k->env.slots % (1ull << 8 * (r->offset + 4 - byte));
}

/*
 * What relocations fill in differs from session to session: such bytes have a tag. Low bytes of a region's
 * address are known, those that a client or the chain chooses: its IOVA has zeros there.
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
	const struct chain_reloc *r = from ? &k->img->relocs[from - 1] : NULL;
	uint8_t low[8];

	for (; n && is_renewed(k, r, at); n--)
		at++;
	if (!n)
		return;
	for (unsigned i = 0; r && i < n; i++)
		low[i] = (uint8_t)((uint64_t)r->addend >> 8 * ((r->offset + 7 - at - i) & 7));
	lap_restore(k->lap, in->queue[q].addr + at, r ? low : k->img->queue[q].wqes + at, n,
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
		lap_restore(k->lap, in->scratch + at, k->img->scratch_init + at,
			r->offset + r->len - at < 8 ? r->offset + r->len - at : 8, 0);
}

static void refresh_slot(struct recycler *k, unsigned slot)
{
	struct chain_instance in;

	chain_locate(&in, k->img, &k->env, k->env.first + slot + k->env.slots);
	for (unsigned i = 0; i < k->img->nrelocs; i++)
		refresh_reloc(k, &k->img->relocs[i], &in);
	for (unsigned i = 0; i < k->img->nrestores; i++)
		restore(k, &k->img->restores[i], &in);
}

static void refresh_pad_index(struct recycler *k, unsigned q, uint32_t w)
{
	const struct chain_env *env = &k->env;
	uint32_t ring = env->queue[q].ring_wqebbs;

	lap_refresh(k->lap, env->queue[q].iova + (uint64_t)w * CHAIN_WQEBB + WQE_INDEX, 2,
		env->first / env->slots * ring + w, ring);
}

/* What it has beside a pad: the number of its SEND_EN, and the index of the NOP behind it */
static void refresh_lap_end(struct recycler *k)
{
	const struct chain_env *env = &k->env;
	const uint32_t at = chain_lap_end_at(k->img, env);

	lap_refresh(k->lap, env->queue[0].iova + (uint64_t)at * CHAIN_WQEBB + WQE_SYNC_INDEX + 2, 2,
		chain_lap_end_index(k->img, env, env->first / env->slots),
		env->queue[chain_start_queue(k->img)].ring_wqebbs);
	if (at + 1 < env->queue[0].ring_wqebbs)
		refresh_pad_index(k, 0, at + 1);
}

/* The pad at the end of a lap has run when the first instance of the next lap is over */
static void refresh_pads(struct recycler *k)
{
	const struct chain_env *env = &k->env;

	for (unsigned q = 0; q < k->img->nqueues; q++) {
		uint32_t ring = env->queue[q].ring_wqebbs, w = chain_pad_at(k->img, q, env->slots);

		for (; w < ring; w += chain_pad_nop(k->img, ring - w))
			refresh_pad_index(k, q, w);
	}
	if (chain_has_lap_end(k->img))
		refresh_lap_end(k);
}

/* ---- the recycler's lap ------------------------------------------------------------------------------ */

/* Of the slots of a section. What restores them comes later in the same queue: the responder reads for one
 * READ before it answers the next, so nothing is restored before it is copied. */
static uint32_t log_bytes(const struct recycler *k)
{
	return chain_recycle_together(k->env.slots) * k->img->queue[0].wqebbs * CHAIN_WQEBB;
}

static void log_replies(struct recycler *k, unsigned g)
{
	const uint32_t len = log_bytes(k), at = g * len;
	unsigned id = lap_add(k->lap, CHAIN_READ, 1, 0);

	wqe_put32(lap_bytes(k->lap, id) + WQE_RDMA_SGE + WQE_SGE_LEN, len);
	lap_name(k->lap, id, WQE_RADDR, RING_REMOTE, ring_at(RING_QUEUE, at));
	lap_name(k->lap, id, WQE_RDMA_SGE, RING_SEGMENT, ring_at(RING_LANES, LAP_HEAD + at));
}

/*
 * All instances before number @end of the slots are over. The last CQE of a reply would do, if it were that
 * of a reply. But when the client's queue pair fails, what is enabled of the replies is flushed, and that may
 * be while a chain that answers ahead is still at work: so for the last CQEs of the code queues as well.
 */
static void await_instances(struct recycler *k, unsigned end)
{
	const struct chain_env *env = &k->env;

	for (unsigned q = k->img->nqueues; q-- > 0;) {
		uint64_t cqes = k->img->queue[q].cqes;
		unsigned wait;

		if (!cqes)
			continue;
		wait = lap_add(k->lap, CHAIN_WAIT, 0, 0);
		lap_number(k->lap, wait, WQE_SYNC_INDEX + 1, 3, (env->first + end) * cqes - 1,
			env->slots * cqes);
		lap_name(k->lap, wait, WQE_SYNC_OBJECT, RING_CQN, ring_at(RING_QUEUE + q, 0));
	}
}

/* Returns its last WQE */
static unsigned add_section(struct recycler *k, unsigned g, unsigned recv_en[MAX_SECTIONS])
{
	const struct chain_env *env = &k->env;
	unsigned slots = chain_recycle_together(k->env.slots), end = (g + 1) * slots;
	bool last = end == env->slots;
	uint64_t after = env->first + end;
	unsigned mark, landed, final;

	/* Otherwise the daemon has seen that they are over. What it has written of their extents no chain
	 * changes, and nothing here restores */
	if (!is_rung(k))
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
	lap_count(k->lap, slots);
	final = recv_en[g] = lap_add(k->lap, CHAIN_RECV_EN, 0, 0);
	lap_number(k->lap, final, WQE_SYNC_INDEX + 2, 2, env->slots + after - 1, env->slots);
	lap_name(k->lap, final, WQE_SYNC_OBJECT, RING_QPN, ring_at(RING_QUEUE, 0));
	if (!is_rung(k))
		final = lap_add(k->lap, CHAIN_SEND_EN, 0, 0);
	if (!last)
		lap_next_section(k->lap);
	return final;
}

static struct lap_doorbell doorbell_of(const struct recycler *k, const struct chain_recycle *size)
{
	struct lap_doorbell d = {.sections = chain_recycle_sections(k->env.slots),
		.count = chain_recycle_together(k->env.slots)};

	memcpy(d.end, size->end, sizeof(d.end));
	return d;
}

static int make(struct recycler *k, uint32_t ring, struct chain_recycle *size, struct ring_image **image)
{
	const struct chain_env *env = &k->env;
	const unsigned sections = chain_recycle_sections(env->slots);
	const struct lap_env lap = {
		.wqebbs = ring,
		.lanes_at = LAP_HEAD + sections * log_bytes(k),
		.first_cqe = (uint32_t)env->first,
		/* No NIC uses what it has fetched of an SQ that is not managed before a doorbell covers it */
		.group = is_rung(k) ? 0 : k->img->fetch_group,
	};
	unsigned ends[MAX_SECTIONS], recv_en[MAX_SECTIONS];
	int r = lap_new(&k->lap, &lap, sections);

	if (r < 0)
		return r;
	for (unsigned g = 0; g < sections; g++)
		ends[g] = add_section(k, g, recv_en);
	for (unsigned g = 0; g < sections && !is_rung(k); g++)
		lap_enable(k->lap, ends[g], ends[(g + 1) % sections]);
	r = lap_finish(k->lap, &size->lap, image);
	if (r == 0) {
		size->ring_wqebbs = ring;
		size->lanes = size->lap.lanes + lap.lanes_at;
		size->recvs = (uint16_t)(env->first + env->slots - 1);
		size->progress = 0;
		size->log = LAP_HEAD;
		for (unsigned g = 0; g < sections; g++) {
			size->end[g] = lap_index_after(k->lap, ends[g]);
			size->recv_en[g] = (uint16_t)(lap_index_of(k->lap, recv_en[g]) & (ring - 1));
		}
	}
	lap_free(k->lap);
	if (r == 0 && image) {
		const struct lap_doorbell doorbell = doorbell_of(k, size);
		const struct lap_proof proof = {.start = size->end[0],
			.doorbell = is_rung(k) ? &doorbell : NULL,
			.shared = CHAIN_MAX_WINDOWS};
		struct chain_error err;

		r = lap_prove(*image, &lap, &proof, &err);
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

static int begin(struct recycler *k, const struct chain_image *img, const struct chain_env *sizes)
{
	*k = (struct recycler){.img = img, .env.slots = sizes->slots, .env.first = sizes->first};
	for (unsigned q = 0; q < img->nqueues; q++) {
		k->env.queue[q].ring_wqebbs = sizes->queue[q].ring_wqebbs;
		k->env.queue[q].iova = ring_at(RING_QUEUE + q, 0);
	}
	k->env.scratch.iova = ring_at(RING_SCRATCH, 0);
	return note_relocs(k);
}

int chain_recycle_size(const struct chain_image *img, const struct chain_env *env, struct chain_recycle *size)
{
	struct recycler k;
	int r;

	assert(env->slots >= CHAIN_RECYCLE_MIN_SLOTS && env->slots % chain_recycle_sections(env->slots) == 0);
	*size = (struct chain_recycle){0};
	if ((img->publish.there && !img->payload.max) || changes_indices(img) ||
		(chain_has_lap_end(img) && !counts_code(img)))
		return -EOPNOTSUPP;
	r = begin(&k, img, env) < 0 ? -ENOMEM : -E2BIG;
	for (uint32_t ring = LAP_MIN_RING; r == -E2BIG && ring <= CHAIN_MAX_RING; ring *= 2)
		r = make(&k, ring, size, NULL);
	forget_relocs(&k);
	return r;
}

int chain_recycle_new(struct ring_image **recycler, const struct chain_image *img,
	const struct chain_env *env, const struct chain_recycle *size)
{
	struct ring_image *image = NULL;
	struct chain_recycle made = {0};
	struct recycler k;
	int r = begin(&k, img, env);

	if (r == 0)
		r = make(&k, size->ring_wqebbs, &made, &image);
	forget_relocs(&k);
	if (r < 0) {
		ring_free(image);
		return r;
	}
	assert(memcmp(&made, size, sizeof(made)) == 0);
	*recycler = image;
	return 0;
}

/* ---- a session's ---- */

static void arm(const struct chain_image *img, const struct chain_writer *writer, const struct chain_env *env)
{
	chain_arm(writer, env, env->first, env->first + env->slots);
	for (unsigned slot = 0; slot < env->slots; slot++)
		chain_format_recv(img, env, slot);
	for (unsigned q = 0; q < img->nqueues; q++)
		chain_write_pad(img, env, q, env->first / env->slots);
	if (chain_has_lap_end(img))
		chain_write_lap_end(img, env, env->first / env->slots);
}

static void find_values(const struct chain_env *env, struct ring_values *v)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++) {
		v->of[RING_QUEUE + q].iova = env->queue[q].iova;
		v->of[RING_QUEUE + q].lkey = env->queue[q].lkey;
		v->of[RING_QUEUE + q].rkey = env->queue[q].rkey;
		v->of[RING_QUEUE + q].qpn = env->queue[q].qpn;
		v->of[RING_QUEUE + q].cqn = env->queue[q].cqn;
		v->of[RING_QUEUE + q].mem = env->queue[q].ring;
	}
	v->of[RING_SELF].iova = env->recycler.iova;
	v->of[RING_SELF].lkey = v->of[RING_SELF].rkey = env->recycler.lkey;
	v->of[RING_SELF].qpn = env->recycler.qpn;
	v->of[RING_SELF].cqn = env->recycler.cqn;
	v->of[RING_SELF].mem = env->recycler.ring;
	v->of[RING_SCRATCH].iova = env->scratch.iova;
	v->of[RING_SCRATCH].lkey = env->scratch.lkey;
	v->of[RING_SCRATCH].rkey = env->scratch.rkey;
	v->of[RING_LANES].iova = env->lanes.iova;
	v->of[RING_LANES].lkey = env->lanes.lkey;
	v->of[RING_LANES].rkey = env->lanes.rkey;
	v->of[RING_LANES].mem = env->lanes.mem;
}

void chain_recycle_write(const struct ring_image *recycler, const struct chain_image *img,
	const struct chain_writer *writer, const struct chain_env *env)
{
	struct ring_values v = {0};

	assert(env->slots % env->slot_count == 0 && env->recycler.ring_wqebbs == recycler->wqebbs);
	assert(env->lanes.size >= recycler->lanes_at + recycler->lanes_bytes);
	arm(img, writer, env);
	find_values(env, &v);
	ring_fill(recycler, &v);
}
