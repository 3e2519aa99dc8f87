/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WRITTEN = 1, /* so far in the run */
	NEEDED = 2,  /* as it was before the instance */
	SPACES = CHAIN_MAX_QUEUES + 1,
	SCRATCH = CHAIN_MAX_QUEUES,
	REMOTE = CHAIN_MAX_SGE,
	STEP_WORDS = CHAIN_MAX_STEPS / 64,
};

struct byte {
	uint8_t marks;
	bool defined; /* for certain, if step `by` has succeeded */
	uint16_t by;
};

/* Every byte of an instance: the WQEs by queue, then scratch */
struct bytes {
	const struct layout *l;
	struct byte *of[SPACES];
	uint32_t size[SPACES];
	uint16_t last[CHAIN_MAX_QUEUES];             /* step of each queue that was executed last */
	uint16_t enabler[CHAIN_MAX_STEPS];           /* SEND_EN that lets a step be executed */
	uint64_t after[CHAIN_MAX_STEPS][STEP_WORDS]; /* the steps that have succeeded if it is executed */
};

/* The bytes of a range in the instance, *@n of them: none of what is elsewhere */
static struct byte *bytes_at(const struct bytes *b, const struct layout_range *r, uint32_t *n)
{
	unsigned space = r->sym == CHAIN_SYM_SCRATCH ? SCRATCH : r->index;

	*n = 0;
	if ((r->sym != CHAIN_SYM_SCRATCH && r->sym != CHAIN_SYM_QUEUE) || r->offset >= b->size[space])
		return NULL;
	*n = b->size[space] - (uint32_t)r->offset;
	if (r->len < *n)
		*n = r->len;
	return b->of[space] + r->offset;
}

static void mark(struct bytes *b, const struct layout_range *r, uint8_t what)
{
	uint32_t n;
	struct byte *at = bytes_at(b, r, &n);

	for (uint32_t i = 0; i < n; i++)
		at[i].marks |= what;
}

static bool comes_after(const struct bytes *b, unsigned step, unsigned other)
{
	return b->after[step][other / 64] >> other % 64 & 1;
}

static void need(struct bytes *b, const struct layout_range *r, unsigned step)
{
	uint32_t n;
	struct byte *at = bytes_at(b, r, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!at[i].defined || !comes_after(b, step, at[i].by))
			at[i].marks |= NEEDED;
}

static void define(struct bytes *b, const struct layout_range *r, unsigned step)
{
	uint32_t n;
	struct byte *at = bytes_at(b, r, &n);

	mark(b, r, WRITTEN);
	for (uint32_t i = 0; i < n; i++) {
		at[i].defined = true;
		at[i].by = (uint16_t)step;
	}
}

/* Something fills in the address or the length of that place of a step: it may touch other bytes than those
 * it names, or fewer */
static bool moves(const struct layout *l, unsigned step, unsigned sge)
{
	const struct layout_step *ls = &l->step[step];

	if (sge != REMOTE)
		return (ls->addr_written | ls->len_written) >> sge & 1;
	return ls->remote_written || ls->len_written & ((1u << ls->nsge) - 1);
}

static void touch(struct bytes *b, unsigned step, const struct chain_place *p, uint32_t len, bool write,
	bool atomic, bool sure, bool wanders)
{
	struct layout_range r = layout_place(b->l, p, len);

	if (wanders && r.sym == CHAIN_SYM_SCRATCH) { /* anywhere in scratch memory */
		r.offset = 0;
		r.len = b->size[SCRATCH];
		sure = false;
	}
	if (!write || atomic)
		need(b, &r, step);
	if (write && sure && !atomic && !wanders)
		define(b, &r, step);
	else if (write)
		mark(b, &r, WRITTEN);
}

static void succeeds(struct bytes *b, unsigned step, unsigned before)
{
	for (unsigned i = 0; i < STEP_WORDS; i++)
		b->after[step][i] |= b->after[before][i];
	b->after[step][before / 64] |= 1ull << before % 64;
}

/* A queue stops at a step that fails, so that nothing behind it is executed, and nothing that a SEND_EN there
 * would enable. A WAIT goes on, because it counts CQEs in error, too. */
static void note_order(struct bytes *b, unsigned s)
{
	const struct layout *l = b->l;
	const struct chain_step *st = &l->d->steps[s];

	if (b->last[st->queue] != LAYOUT_NONE)
		succeeds(b, s, b->last[st->queue]);
	if (b->enabler[s] != LAYOUT_NONE)
		succeeds(b, s, b->enabler[s]);
	b->last[st->queue] = (uint16_t)s;
	for (unsigned t = 0; st->verb == CHAIN_SEND_EN && t < l->d->nsteps; t++)
		if (l->d->steps[t].queue == st->target && b->enabler[t] == LAYOUT_NONE &&
			(uint32_t)l->step[t].at + l->step[t].wqebbs > l->head[st->target] &&
			(uint32_t)l->step[t].at + l->step[t].wqebbs <= l->step[s].enables)
			b->enabler[t] = (uint16_t)s;
}

static void execute(struct bytes *b, unsigned s)
{
	const struct layout *l = b->l;
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct layout_range wqe = {.sym = CHAIN_SYM_QUEUE, .index = st->queue};
	bool wanders = moves(l, s, REMOTE);
	/* a step that may be, or may become, a NOP writes nothing for certain */
	bool sure = !(st->flags & CHAIN_DORMANT) && !l->step[s].opcode_written;

	wqe.offset = (uint64_t)l->step[s].at * CHAIN_WQEBB;
	wqe.len = (uint32_t)l->step[s].wqebbs * CHAIN_WQEBB;
	note_order(b, s);
	need(b, &wqe, s);
	/* What is read before what is written: of a step's own places either may come first */
	if (v->remote && (st->verb == CHAIN_READ || v->atomic_bytes))
		touch(b, s, &st->remote, layout_step_bytes(l, s), v->atomic_bytes, v->atomic_bytes, sure,
			wanders);
	for (unsigned i = 0; i < l->step[s].nsge; i++)
		touch(b, s, &st->local[i], st->local[i].len, v->scatters, false, sure, moves(l, s, i));
	if (v->calc) { /* only the number is written for certain */
		struct chain_place behind = st->remote;

		behind.from += CHAIN_CALC_BYTES / 2;
		touch(b, s, &st->remote, CHAIN_CALC_BYTES / 2, true, false, sure, wanders);
		touch(b, s, &behind, CHAIN_CALC_BYTES / 2, true, false, false, wanders);
	} else if (v->remote && st->verb != CHAIN_READ && !v->atomic_bytes) {
		touch(b, s, &st->remote, layout_step_bytes(l, s), true, false, sure, wanders);
	}
}

static int add(struct chain_image *img, unsigned space, uint32_t offset, uint32_t len)
{
	struct chain_restore *more = reallocarray(img->restores, img->nrestores + 1, sizeof(*img->restores));

	if (!more)
		return -ENOMEM;
	img->restores = more;
	more[img->nrestores++] = (struct chain_restore){
		.sym = space == SCRATCH ? CHAIN_SYM_SCRATCH : CHAIN_SYM_QUEUE,
		.index = space == SCRATCH ? 0 : (uint8_t)space,
		.offset = offset,
		.len = len,
	};
	return 0;
}

static int note(const struct bytes *b, unsigned space, struct chain_image *img)
{
	const uint8_t both = WRITTEN | NEEDED;
	int r = 0;

	for (uint32_t i = 0, end; i < b->size[space] && !r; i = end) {
		for (end = i; end < b->size[space] && (b->of[space][end].marks & both) == both;)
			end++;
		if (end > i)
			r = add(img, space, i, end - i);
		else
			end++;
	}
	return r;
}

static void free_bytes(struct bytes **b)
{
	for (unsigned s = 0; *b && s < SPACES; s++)
		free((*b)->of[s]);
	free(*b);
}

/* ---- relocations -------------------------------------------------------------------------------- */

enum order { STAYS, AGAIN, INDEX };

static bool is_restored(const struct chain_image *img, const struct chain_reloc *reloc)
{
	uint32_t end = reloc->offset + chain_reloc_bytes(reloc);

	for (unsigned i = 0; i < img->nrestores; i++) {
		const struct chain_restore *r = &img->restores[i];

		if (r->sym == CHAIN_SYM_QUEUE && r->index == reloc->where && r->offset < end &&
			reloc->offset < r->offset + r->len)
			return true;
	}
	return false;
}

static enum order order_of(const struct chain_image *img, const struct chain_reloc *r)
{
	switch ((enum chain_reloc_kind)r->kind) {
	case CHAIN_REL_INDEX16:
		return INDEX;
	case CHAIN_REL_ENABLE:
	case CHAIN_REL_WAIT:
	case CHAIN_REL_SEQ32:
		return AGAIN;
	case CHAIN_REL_ADDR64:
		if (r->sym == CHAIN_SYM_SLOT) /* the client has another number of slots */
			return AGAIN;
		break;
	case CHAIN_REL_LKEY32:
	case CHAIN_REL_RKEY32:
	case CHAIN_REL_QPN24:
	case CHAIN_REL_QPN32:
	case CHAIN_REL_CQN32:
		break;
	}
	return is_restored(img, r) ? AGAIN : STAYS;
}

/* Arming goes through them for each request: what is alike in a row is done without a mispredicted branch */
static int by_field(const void *a, const void *b)
{
	const struct chain_reloc *x = a, *y = b;
	int keys[][2] = {{x->kind, y->kind}, {x->sym, y->sym}, {x->where, y->where}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Brings those of @order to @first, sorted. Returns where they end */
static unsigned gather(struct chain_image *img, unsigned first, enum order order)
{
	struct chain_reloc *relocs = img->relocs;
	unsigned end = first;

	for (unsigned i = first; i < img->nrelocs; i++)
		if (order_of(img, &relocs[i]) == order) {
			struct chain_reloc found = relocs[i];

			relocs[i] = relocs[end];
			relocs[end++] = found;
		}
	qsort(relocs + first, end - first, sizeof(*relocs), by_field);
	return end;
}

static void order_relocs(struct chain_image *img)
{
	img->again_reloc = gather(img, 0, STAYS);
	img->index_reloc = gather(img, img->again_reloc, AGAIN);
	gather(img, img->index_reloc, INDEX);
}

int layout_note_restores(const struct layout *l, struct chain_image *img)
{
	__attribute__((cleanup(free_bytes))) struct bytes *b = calloc(1, sizeof(*b));
	int r = 0;

	if (!b)
		return -ENOMEM;
	b->l = l;
	memset(b->last, 0xff, sizeof(b->last));
	memset(b->enabler, 0xff, sizeof(b->enabler));

	for (unsigned s = 0; s < SPACES; s++) {
		b->size[s] = s == SCRATCH ? l->scratch_size : l->wqebbs[s] * CHAIN_WQEBB;
		b->of[s] = calloc(b->size[s] + 1, sizeof(*b->of[s]));
		if (!b->of[s])
			return -ENOMEM;
	}
	/* A request may be shorter than it should be: no byte of it is certain */
	for (unsigned a = 0; a < l->d->nargs; a++) {
		struct layout_range arg = layout_place(l, &l->d->args[a], l->d->args[a].len);

		mark(b, &arg, WRITTEN);
	}
	for (unsigned i = 0; i < l->d->nsteps; i++)
		execute(b, l->order[i]);
	for (unsigned s = 0; s < SPACES && !r; s++)
		r = note(b, s, img);
	if (r == 0)
		order_relocs(img);
	return r;
}
