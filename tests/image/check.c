/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/image/check.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/endless.h"
#include "tests/image/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	QPNS = 0x100, /* number of queue 0; of a CQ likewise */
	CQNS = 0x200,
	REQUEST_CQ = 0x2ff,
	LOOP_QUEUE = 0x40, /* what other queues see of what it does */
	LAPS = 4000,
};

struct check {
	const struct program *p;
	struct nic nic;
	struct space *queue[CHAIN_MAX_QUEUES], *scratch, *slot, *cqe, *region[CHAIN_MAX_WINDOWS], *shared;
	struct nic_publish publish;
	struct space *ring, *lanes, *loop_scratch;
	struct word *memory; /* of all spaces of the chain's own */
	size_t nmemory, used;
	uint8_t *image[CHAIN_MAX_QUEUES]; /* with its relocations */
	/* the schedule */
	uint32_t enabled[CHAIN_MAX_QUEUES], at[CHAIN_MAX_QUEUES], cqes[CHAIN_MAX_QUEUES];
	uint8_t *bytes;                                   /* of the loop's ring */
	const struct chain_step **step[CHAIN_MAX_QUEUES]; /* by WQEBB */
};

static struct pool_of_cases *cases;

void image_check_done(void)
{
	cases_pool_free(cases);
	cases = NULL;
}

static bool fail(struct check *c, const char *what)
{
	if (!*c->nic.why)
		snprintf(c->nic.why, c->nic.size, "%s", what);
	return false;
}

static struct space *own(struct check *c, const char *name, uint64_t size)
{
	struct space s = {.kind = SPACE_OWN, .size = (size + 7) / 8 * 8};

	snprintf(s.name, sizeof(s.name), "%s", name);
	s.words = c->memory + c->used;
	c->used += s.size / 8;
	return nic_add(&c->nic, &s);
}

/* ---- an instance ------------------------------------------------------------------------------ */

static struct space *symbol(const struct check *c, const struct chain_reloc *r)
{
	switch ((enum chain_sym_kind)r->sym) {
	case CHAIN_SYM_QUEUE:
		return c->queue[r->index];
	case CHAIN_SYM_SCRATCH:
		return c->scratch;
	case CHAIN_SYM_REGION:
		return c->region[r->index];
	case CHAIN_SYM_SLOT:
		return c->slot;
	case CHAIN_SYM_CQE:
		return c->cqe;
	case CHAIN_SYM_EXTENT:
		break;
	}
	return NULL;
}

/* Numbers of queues and CQs that the schedule below understands; of a CQE or an enable the part that the
 * instance has */
static bool relocate(struct check *c, const struct chain_reloc *r)
{
	const struct chain_queue *q = &c->p->image->queue[r->where];
	uint8_t *to = c->image[r->where] + r->offset;

	if (r->where >= c->p->image->nqueues || r->offset + 8u > q->wqebbs * CHAIN_WQEBB + 4u)
		return fail(c, "a relocation beyond its queue");
	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_ADDR64:
		if (!symbol(c, r))
			return fail(c, "an address of nothing");
		wqe_put64(to, symbol(c, r)->base + (uint64_t)r->addend);
		return true;
	case CHAIN_REL_LKEY32:
	case CHAIN_REL_RKEY32:
		if (!symbol(c, r))
			return fail(c, "a key of nothing");
		wqe_put32(to, symbol(c, r)->key);
		return true;
	case CHAIN_REL_QPN24:
		wqe_put32(to, (QPNS + r->index) << 8 | to[3]);
		return r->index == r->where || fail(c, "a WQE of another queue");
	case CHAIN_REL_QPN32:
		wqe_put32(to, QPNS + r->index);
		return true;
	case CHAIN_REL_CQN32:
		wqe_put32(to, r->index == CHAIN_CQ_RECV ? REQUEST_CQ : CQNS + r->index);
		return true;
	case CHAIN_REL_INDEX16:
		wqe_put16(to, (uint16_t)(r->offset / CHAIN_WQEBB));
		return true;
	case CHAIN_REL_ENABLE:
	case CHAIN_REL_WAIT:
	case CHAIN_REL_SEQ32:
		wqe_put32(to, (uint32_t)r->addend);
		return true;
	}
	return fail(c, "a relocation of no kind");
}

static bool fill(struct check *c)
{
	const struct chain_image *img = c->p->image;
	uint8_t *scratch = calloc(1, img->scratch_size + 8);

	if (!scratch)
		abort();
	for (unsigned q = 0; q < img->nqueues; q++)
		memcpy(c->image[q], img->queue[q].wqes, img->queue[q].wqebbs * CHAIN_WQEBB);
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (!relocate(c, &img->relocs[i])) {
			free(scratch);
			return false;
		}
	for (unsigned q = 0; q < img->nqueues; q++)
		nic_fill(&c->nic, c->queue[q], c->image[q]);
	memcpy(scratch, img->scratch_init, img->scratch_size);
	nic_fill(&c->nic, c->scratch, scratch);
	free(scratch);
	return true;
}

static struct nic_wqe wqe_at(struct check *c, unsigned q, uint32_t wqebb)
{
	return (struct nic_wqe){.in = c->queue[q],
		.at = wqebb * CHAIN_WQEBB,
		.ds = c->image[q][wqebb * CHAIN_WQEBB + WQE_DSCOUNT],
		.by.queue = (uint8_t)q,
		.reply = q == 0,
		.local = c->step[q][wqebb] ? c->step[q][wqebb]->local : NULL,
		.publish = c->p->image->publish.there ? &c->publish : NULL};
}

static bool each_wqe(struct check *c, bool (*f)(struct check *, const struct nic_wqe *))
{
	const struct chain_image *img = c->p->image;

	for (unsigned q = 0; q < img->nqueues; q++)
		for (uint32_t w = 0; w < img->queue[q].wqebbs; w++) {
			struct nic_wqe wqe = wqe_at(c, q, w);

			if (!img->queue[q].starts[w])
				continue;
			if (!wqe.ds || wqe.at + wqe.ds * WQE_DS > img->queue[q].wqebbs * CHAIN_WQEBB)
				return fail(c, "a WQE that is longer than its queue");
			if (!f(c, &wqe))
				return false;
		}
	return true;
}

static bool mark_keys(struct check *c, const struct nic_wqe *w)
{
	nic_mark_keys(&c->nic, w);
	return true;
}

static bool check_wqe(struct check *c, const struct nic_wqe *w)
{
	return nic_check(&c->nic, w);
}

/* What a request may reach: bytes that no NIC takes for anything but data, and the low ones of an address */
static bool receive(struct check *c)
{
	const struct chain_image *img = c->p->image;

	for (unsigned i = 0; i < img->nrecv; i++) {
		const struct chain_recv_sge *r = &img->recv[i];
		struct space *s = r->sym == CHAIN_SYM_QUEUE ? c->queue[r->index] : c->scratch;

		if (r->sym == CHAIN_SYM_EXTENT) {
			if (i + 1 < img->nrecv || r->len != img->payload.max || r->offset != img->arg_len ||
				c->region[img->payload.region]->writable)
				return fail(
					c, "a payload that is not behind the arguments, or not alone there");
			continue;
		}
		if (r->sym != CHAIN_SYM_QUEUE && r->sym != CHAIN_SYM_SCRATCH)
			return fail(c, "a request that is scattered elsewhere");
		if (r->offset + r->len > s->size || !r->len)
			return fail(c, "a request that is scattered too far");
		nic_receive(&c->nic, s, r->offset, r->len, FROM_CLIENT);
	}
	return true;
}

/* What an instance is armed with besides */
static bool arm_publish(struct check *c)
{
	const struct chain_publish *p = &c->p->image->publish;

	if (!p->there)
		return c->p->image->payload.max == 0 || fail(c, "a payload that is not published");
	if (p->queue == 0 || p->queue >= c->p->image->nqueues || p->region >= c->p->nregions ||
		p->was + 8u > c->p->image->scratch_size ||
		p->offset + WQE_ATOMIC + 16u > c->p->image->queue[p->queue].wqebbs * CHAIN_WQEBB)
		return fail(c, "a publish that is nowhere");
	for (unsigned i = 0; i < 8; i++)
		if (c->p->image->scratch_init[p->was + i] != 0xff)
			return fail(c, "a publish that seems to have found a word before it runs");
	c->publish = (struct nic_publish){.in = c->queue[p->queue],
		.scratch = c->scratch,
		.words = c->region[p->region],
		.at = p->offset,
		.was = p->was,
		.extent = p->extent};
	if (p->extent)
		nic_receive(&c->nic, c->queue[p->queue], p->offset + WQE_ATOMIC, 8, FROM_EXTENT);
	return true;
}

/* ---- its run ---------------------------------------------------------------------------------- */

/* A WAIT that is not over; an enable takes effect. What may be something else, too, is refused when it is
 * executed */
static bool must_wait(struct check *c, const struct nic_wqe *w)
{
	struct bytes ops = nic_opcodes(w);
	uint32_t value = nic_get32(w, WQE_SYNC_INDEX), object = nic_get32(w, WQE_SYNC_OBJECT);

	if (bytes_only(ops, WQE_OP_WAIT) && object != REQUEST_CQ)
		return object - CQNS >= CHAIN_MAX_QUEUES || c->cqes[object - CQNS] <= value;
	if (bytes_have(ops, WQE_OP_SEND_EN) && object - QPNS < CHAIN_MAX_QUEUES &&
		c->enabled[object - QPNS] < value)
		c->enabled[object - QPNS] = value;
	return false;
}

/* What queue @q does as far as it can. False: something is wrong */
static bool run_queue(struct check *c, unsigned q, bool *moved)
{
	const struct chain_queue *iq = &c->p->image->queue[q];

	while (c->at[q] < iq->wqebbs) {
		struct nic_wqe w = wqe_at(c, q, c->at[q]);
		uint32_t end = c->at[q] + (w.ds + 3u) / 4;

		if (c->enabled[q] < end || (w.ds >= 2 && must_wait(c, &w)))
			return true;
		if (!nic_execute(&c->nic, &w))
			return false;
		c->cqes[q] += (c->image[q][w.at + WQE_FLAGS] & WQE_SIGNALLED) == WQE_SIGNALLED;
		c->at[q] = end;
		*moved = true;
	}
	return true;
}

/* The chain from the request to the end. What calls a loop goes on when that has been left */
static bool run_chain(struct check *c)
{
	const struct chain_image *img = c->p->image;
	bool moved = true, left = false;

	memset(c->at, 0, sizeof(c->at));
	memset(c->cqes, 0, sizeof(c->cqes));
	for (unsigned q = 0; q < img->nqueues; q++)
		c->enabled[q] = img->queue[q].head_wqebbs;
	while (moved) {
		moved = false;
		for (unsigned q = 0; q < img->nqueues; q++)
			if (!run_queue(c, q, &moved))
				return false;
		if (!moved && c->p->loop && !left) {
			left = moved = true;
			for (unsigned q = 1; q < img->nqueues; q++)
				c->enabled[q] = c->enabled[q] ? img->queue[q].wqebbs : 0;
		}
	}
	for (unsigned q = 0; q < img->nqueues; q++)
		if (c->at[q] < img->queue[q].wqebbs)
			return fail(c, "a queue that does not come to its end");
	return true;
}

/* ---- a loop ----------------------------------------------------------------------------------- */

static void name_space(struct ring_values *v, unsigned symbol, const struct space *s)
{
	v->of[symbol].iova = s->base;
	v->of[symbol].lkey = v->of[symbol].rkey = s->key;
}

static void lay_out_loop(struct check *c)
{
	const struct program *p = c->p;
	struct ring_values v = {0};

	name_space(&v, RING_SELF, c->ring);
	name_space(&v, RING_LANES, c->lanes);
	name_space(&v, RING_SCRATCH, c->loop_scratch);
	for (unsigned i = 0; i < p->image->nregions; i++)
		name_space(&v, RING_REGION + i, c->region[i]);
	v.of[RING_SELF].qpn = QPNS;
	v.of[RING_SELF].cqn = CQNS;
	v.of[CHAIN_LOOP_CALLER].qpn = QPNS + 1;
	v.of[CHAIN_LOOP_CALLER].cqn = CQNS + 1;
	v.of[RING_CREDITS].cqn = CQNS + 2;
	c->bytes = calloc(1, c->ring->size);
	v.of[RING_SELF].mem = c->bytes;
	v.of[RING_LANES].mem = calloc(1, c->lanes->size);
	v.of[RING_SCRATCH].mem = calloc(1, c->loop_scratch->size + 8);
	if (!v.of[RING_SELF].mem || !v.of[RING_LANES].mem || !v.of[RING_SCRATCH].mem)
		abort();
	chain_loop_write(p->loop_image, p->loop, &p->loop_info, &v);
	nic_fill(&c->nic, c->ring, v.of[RING_SELF].mem);
	nic_fill(&c->nic, c->lanes, v.of[RING_LANES].mem);
	nic_fill(&c->nic, c->loop_scratch, v.of[RING_SCRATCH].mem);
	free(v.of[RING_LANES].mem);
	free(v.of[RING_SCRATCH].mem);
}

/* Every WQE of the ring, in turn */
static bool each_of_ring(struct check *c, bool (*f)(struct nic *, const struct nic_wqe *))
{
	const struct chain_desc *d = c->p->loop;

	for (uint32_t at = 0; at < c->ring->size;) {
		unsigned s =
			chain_loop_step(d, &c->p->loop_info, c->p->loop_ring, (uint16_t)(at / CHAIN_WQEBB));
		struct nic_wqe w = {.in = c->ring,
			.local = s < d->nsteps ? d->steps[s].local : NULL,
			.at = at,
			.ds = c->bytes[at + WQE_DSCOUNT],
			.by = {.queue = LOOP_QUEUE, .alone = true},
			.renewed = true};

		if (!w.ds || at + w.ds * WQE_DS > c->ring->size)
			return fail(c, "a WQE that is longer than the ring");
		if (!f(&c->nic, &w))
			return false;
		at += (w.ds + 3u) / 4 * CHAIN_WQEBB;
	}
	return true;
}

static bool mark_ring_keys(struct nic *n, const struct nic_wqe *w)
{
	nic_mark_keys(n, w);
	return true;
}

/* All memory as it is now and as it was in @was. True if that is more */
static bool join(struct check *c, const struct word *was)
{
	bool more = false;

	for (size_t i = 0; i < c->used; i++)
		more |= word_join(c->nic.pool, &c->memory[i], &was[i]);
	return more;
}

/* Laps, until none leaves anything new */
static bool run_loop(struct check *c, struct word *was)
{
	bool more = true;

	for (unsigned lap = 0; more; lap++) {
		if (lap == LAPS)
			return fail(c, "a loop without an end of what it can leave");
		memcpy(was, c->memory, c->used * sizeof(*was));
		if (!each_of_ring(c, nic_execute))
			return false;
		more = join(c, was);
	}
	return each_of_ring(c, nic_check);
}

/* The instance afresh; what is shared, and the loop, as they have become */
static bool one_call(struct check *c, struct word *was)
{
	if (!fill(c) || !each_wqe(c, mark_keys) || !arm_publish(c) || !receive(c) || !run_chain(c) ||
		!each_wqe(c, check_wqe))
		return false;
	return !c->p->loop || run_loop(c, was);
}

static bool calls(struct check *c)
{
	size_t first = c->p->loop ? (size_t)(c->shared->words - c->memory) : 0;
	struct word *was = malloc((c->used + 1) * sizeof(*was)),
		    *before = malloc((c->used + 1) * sizeof(*was));
	bool more = c->p->loop, fine;

	if (!was || !before)
		abort();
	do {
		memcpy(before, c->memory, c->used * sizeof(*before));
		fine = one_call(c, was);
		more = false;
		/* shared memory and the loop come last */
		for (size_t i = first; fine && c->p->loop && i < c->used; i++)
			more |= word_join(c->nic.pool, &c->memory[i], &before[i]);
	} while (fine && more);
	free(was);
	free(before);
	return fine;
}

/* ---- a program -------------------------------------------------------------------------------- */

static void add_regions(struct check *c)
{
	const struct program *p = c->p;

	for (unsigned i = 0; i < p->nregions; i++) {
		struct space s = {.kind = SPACE_REGION,
			.writable = p->regions[i].writable,
			.steered = p->regions[i].steered,
			.size = p->regions[i].size};

		snprintf(s.name, sizeof(s.name), "%s", p->regions[i].name);
		c->region[i] = nic_add(&c->nic, &s);
	}
	c->slot = nic_add(&c->nic, &(struct space){.kind = SPACE_SLOT, .size = p->reply_max, .name = "slot"});
	c->cqe = nic_add(&c->nic, &(struct space){.kind = SPACE_CQE, .size = 64, .name = "the CQE"});
}

/* The steps that the WQEs of queue @q were made of, for what is declared of their lengths */
static void find_steps(struct check *c, unsigned q)
{
	const struct chain_queue *iq = &c->p->image->queue[q];
	const struct chain_desc *d = c->p->desc;
	unsigned s = 0;

	c->step[q] = calloc(iq->wqebbs + 1u, sizeof(*c->step[q]));
	if (!c->step[q])
		abort();
	for (uint32_t w = 0; w < iq->wqebbs; w++) {
		if (!iq->starts[w])
			continue;
		while (s < d->nsteps && d->steps[s].queue != q)
			s++;
		c->step[q][w] = s < d->nsteps ? &d->steps[s++] : NULL;
	}
}

static void add_own(struct check *c)
{
	const struct chain_image *img = c->p->image;
	char name[16];

	for (unsigned q = 0; q < img->nqueues; q++) {
		snprintf(name, sizeof(name), "queue %u", q);
		c->queue[q] = own(c, name, img->queue[q].wqebbs * CHAIN_WQEBB);
		c->image[q] = malloc(img->queue[q].wqebbs * CHAIN_WQEBB + 8u);
		if (!c->image[q])
			abort();
		find_steps(c, q);
	}
	c->scratch = own(c, "scratch", img->scratch_size);
	if (!c->p->loop)
		return;
	c->shared = own(c, "shared memory", c->p->shared_bytes);
	c->shared->shared = true;
	c->region[c->p->nregions] = c->shared;
	c->ring = own(c, "the ring", (uint64_t)c->p->loop_ring * CHAIN_WQEBB);
	c->lanes = own(c, "lanes", c->p->loop_info.lanes);
	c->loop_scratch = own(c, "the loop's scratch", c->p->loop_info.scratch);
}

static size_t words_needed(const struct program *p)
{
	size_t n = p->image->scratch_size;

	for (unsigned q = 0; q < p->image->nqueues; q++)
		n += p->image->queue[q].wqebbs * CHAIN_WQEBB;
	if (p->loop)
		n += p->shared_bytes + p->loop_ring * CHAIN_WQEBB + p->loop_info.lanes + p->loop_info.scratch;
	return n / 8 + 16;
}

static bool fill_shared(struct check *c)
{
	uint8_t *init;

	if (!c->p->loop)
		return true;
	init = calloc(1, c->shared->size + 8);
	if (!init)
		abort();
	memcpy(init, c->p->shared_init, c->p->shared_bytes);
	nic_fill(&c->nic, c->shared, init);
	free(init);
	lay_out_loop(c);
	return each_of_ring(c, mark_ring_keys);
}

bool image_check(const struct program *p, const struct program_target *target, char *why, size_t size)
{
	struct check c = {.p = p,
		.nic = {.ignores_index = target->ignores_index,
			.swapped_old = target->swapped_old,
			.why = why,
			.size = size}};
	bool fine;

	*why = '\0';
	if (!cases)
		cases = cases_pool_new();
	if (!cases)
		abort();
	cases_pool_reset(cases);
	c.nic.pool = cases;
	c.memory = calloc(words_needed(p), sizeof(*c.memory));
	if (!c.memory)
		abort();
	add_regions(&c);
	add_own(&c);
	fine = fill_shared(&c) && calls(&c);
	for (unsigned q = 0; q < p->image->nqueues; q++) {
		free(c.image[q]);
		free(c.step[q]);
	}
	free(c.memory);
	free(c.bytes);
	return fine;
}
