/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/cqe-numbers.h"

#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>

enum { BYTES = 3 /* of a CQE number */, IN_WAIT = WQE_SYNC_INDEX + 1 };

/* Which CQ: of replies and code queues, and two more */
enum { OF_RECVS = CHAIN_MAX_QUEUES, OF_RECYCLER, NO_CQ };

struct number {
	uint32_t at;     /* in the ring of the recycler, or in its lanes */
	uint32_t value;  /* all bytes of it */
	uint8_t of;      /* CQ */
	uint8_t lane;    /* bytes that are in a lane, the upper ones of the value; 0: in the ring */
	bool with_other; /* that lane has something else, too */
};

struct cqe_numbers {
	struct number *number;
	size_t n, room;
};

/* A WAIT's index in a ring, of which a READ writes the last bytes */
struct target {
	const uint8_t *index; /* NULL: it writes something else */
	uint8_t of, bytes;    /* up to the byte that it writes */
};

struct search {
	struct cqe_numbers *found;
	const struct chain_image *img;
	const struct chain_env *env;
	uint8_t *other; /* by byte of the lanes: something is made from it that is no CQE number */
	bool nomem;
};

/* ---- finding them ---- */

static void add(struct search *s, struct number number)
{
	struct cqe_numbers *f = s->found;
	size_t want = f->room ? 2 * f->room : 256;
	struct number *more;

	if (f->n == f->room) {
		more = realloc(f->number, want * sizeof(*more));
		if (!more) {
			s->nomem = true;
			return;
		}
		f->number = more;
		f->room = want;
	}
	f->number[f->n++] = number;
}

static unsigned cq_of_reloc(const struct chain_reloc *r)
{
	return r->index == CHAIN_CQ_RECV ? OF_RECVS : r->index;
}

static unsigned cq_of_wait(const struct chain_env *env, const uint8_t *wait)
{
	uint32_t cqn = wqe_get32(wait + WQE_SYNC_OBJECT);
	unsigned q = 0;

	if (cqn == env->recycler.cqn)
		return OF_RECYCLER;
	while (q < CHAIN_MAX_QUEUES && env->queue[q].cqn != cqn)
		q++;
	return q == CHAIN_MAX_QUEUES ? NO_CQ : q;
}

/* Byte @at of the ring of queue @q */
static struct target in_ring(const struct search *s, unsigned q, uint64_t at)
{
	uint32_t in = (uint32_t)(at % (s->img->queue[q].wqebbs * CHAIN_WQEBB));

	if (at >= (uint64_t)chain_pad_at(s->img, q, s->env->slots) * CHAIN_WQEBB)
		return (struct target){0};
	for (const struct chain_reloc *r = s->img->relocs; r < s->img->relocs + s->img->nrelocs; r++)
		if (r->kind == CHAIN_REL_WAIT && r->where == q && in > r->offset && in <= r->offset + BYTES)
			return (struct target){.index = s->env->queue[q].ring + (at - in) + r->offset + 1,
				.of = (uint8_t)cq_of_reloc(r),
				.bytes = (uint8_t)(in - r->offset)};
	return (struct target){0};
}

/* The same of the recycler, whose WQEs have their operations at the start of a WQEBB */
static struct target in_recycler(const struct search *s, uint64_t at)
{
	const uint8_t *wqe = s->env->recycler.ring + at / CHAIN_WQEBB * CHAIN_WQEBB;
	uint64_t in = at % CHAIN_WQEBB;
	unsigned cq = wqe[WQE_OPCODE] == WQE_OP_WAIT ? cq_of_wait(s->env, wqe) : NO_CQ;

	if (cq == NO_CQ || in < IN_WAIT || in >= IN_WAIT + BYTES)
		return (struct target){0};
	return (struct target){
		.index = wqe + IN_WAIT, .of = (uint8_t)cq, .bytes = (uint8_t)(in - IN_WAIT + 1)};
}

static struct target find_target(const struct search *s, uint64_t addr)
{
	const struct chain_env *env = s->env;

	for (unsigned q = 0; q < s->img->nqueues; q++)
		if (addr - env->queue[q].iova < (uint64_t)env->queue[q].ring_wqebbs * CHAIN_WQEBB)
			return in_ring(s, q, addr - env->queue[q].iova);
	if (addr - env->recycler.iova < (uint64_t)env->recycler.ring_wqebbs * CHAIN_WQEBB)
		return in_recycler(s, addr - env->recycler.iova);
	return (struct target){0};
}

/* The lane has the number of the next lap, or of a later one; the bytes that no lap changes are in the WQE */
static void add_lane(struct search *s, uint32_t at, const struct target *to)
{
	uint32_t value = 0;

	for (unsigned i = to->bytes; i-- > 0;)
		value = value << 8 | s->env->lanes.mem[at + i];
	for (unsigned i = to->bytes; i < BYTES; i++)
		value = value << 8 | to->index[i];
	add(s, (struct number){.at = at, .value = value, .of = to->of, .lane = to->bytes});
}

/* Bytes of a lane come in turn, the last one of the number first */
static void look_at_read(struct search *s, const uint8_t *wqe)
{
	const struct chain_env *env = s->env;
	const uint8_t *end = wqe + (size_t)wqe[WQE_DSCOUNT] * WQE_DS;
	uint64_t at = wqe_get64(wqe + WQE_RADDR) - env->lanes.iova, next = 0;

	for (const uint8_t *sge = wqe + WQE_RDMA_SGE; sge < end && at < env->lanes.size; sge += WQE_DS) {
		uint64_t addr = wqe_get64(sge + WQE_SGE_ADDR);
		uint32_t len = wqe_get32(sge + WQE_SGE_LEN);
		struct target to = find_target(s, addr);

		if (to.index && addr != next)
			add_lane(s, (uint32_t)at, &to);
		else if (!to.index && addr - env->lanes.iova >= env->lanes.size)
			s->other[at] = 1;
		next = to.index && to.bytes > 1 ? addr - 1 : 0;
		at += len;
	}
}

static void look_at_ring(struct search *s)
{
	const struct chain_env *env = s->env;

	for (uint32_t at = 0, wqebbs; at < env->recycler.ring_wqebbs && !s->nomem; at += wqebbs) {
		const uint8_t *wqe = env->recycler.ring + (size_t)at * CHAIN_WQEBB;

		wqebbs = (wqe[WQE_DSCOUNT] * WQE_DS + CHAIN_WQEBB - 1) / CHAIN_WQEBB;
		if (wqe[WQE_OPCODE] == WQE_OP_WAIT)
			add(s, (struct number){.at = at * CHAIN_WQEBB + IN_WAIT,
				       .value = (uint32_t)wqe_get(wqe + IN_WAIT, BYTES),
				       .of = (uint8_t)cq_of_wait(env, wqe)});
		else if (wqe[WQE_OPCODE] == WQE_OP_READ)
			look_at_read(s, wqe);
	}
}

static int compare(const void *a, const void *b)
{
	const struct number *x = a, *y = b;

	if (!x->lane != !y->lane)
		return x->lane ? 1 : -1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

int cqe_numbers_find(struct cqe_numbers **out, const struct chain_image *img, const struct chain_env *env)
{
	struct search s = {.found = calloc(1, sizeof(*s.found)),
		.img = img,
		.env = env,
		.other = calloc(env->lanes.size, 1)};

	s.nomem = !s.found || !s.other;
	if (!s.nomem)
		look_at_ring(&s);
	for (size_t i = 0; !s.nomem && i < s.found->n; i++)
		s.found->number[i].with_other = s.found->number[i].lane && s.other[s.found->number[i].at];
	free(s.other);
	if (s.nomem) {
		cqe_numbers_free(s.found);
		return -ENOMEM;
	}
	if (s.found->n)
		qsort(s.found->number, s.found->n, sizeof(*s.found->number), compare);
	*out = s.found;
	return 0;
}

void cqe_numbers_free(struct cqe_numbers *n)
{
	if (!n)
		return;
	free(n->number);
	free(n);
}

/* ---- letting them begin later ---- */

static uint32_t had(const struct chain_env *env, const struct number *n)
{
	return n->of == OF_RECVS      ? env->recv_before
	       : n->of == OF_RECYCLER ? env->recycler.before
				      : env->queue[n->of].before;
}

/* What is stored of it */
static uint32_t stored(const struct chain_env *env, const struct number *n)
{
	uint32_t value = (n->value + had(env, n)) & 0xffffff;

	return n->lane ? value >> 8 * (BYTES - n->lane) : value;
}

bool cqe_numbers_fit(const struct cqe_numbers *numbers, const struct chain_env *env)
{
	const struct number *end = numbers->number + numbers->n;

	for (const struct number *n = numbers->number; n < end; n++) {
		if (n->with_other && had(env, n))
			return false;
		if (n + 1 < end && n->lane && n[1].lane && n->at == n[1].at &&
			stored(env, n) != stored(env, n + 1))
			return false;
	}
	return true;
}

void cqe_numbers_write(const struct cqe_numbers *numbers, const struct chain_env *env)
{
	for (const struct number *n = numbers->number; n < numbers->number + numbers->n; n++) {
		uint32_t value = stored(env, n);
		uint8_t *p = (n->lane ? env->lanes.mem : env->recycler.ring) + n->at;

		for (unsigned i = 0; i < (n->lane ? n->lane : BYTES); i++)
			p[n->lane ? i : BYTES - 1 - i] = (uint8_t)(value >> 8 * i);
	}
}
