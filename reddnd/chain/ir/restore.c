/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WRITTEN = 1,
	DEFINED = 2,
	NEEDED = 4,
	SPACES = CHAIN_MAX_QUEUES + 1,
	SCRATCH = CHAIN_MAX_QUEUES,
	REMOTE = CHAIN_MAX_SGE
};

/* Every byte of an instance: the WQEs by queue, then scratch */
struct bytes {
	const struct layout *l;
	uint8_t *of[SPACES];
	uint32_t size[SPACES];
};

static void mark(struct bytes *b, const struct layout_range *r, uint8_t what)
{
	unsigned space = r->sym == CHAIN_SYM_SCRATCH ? SCRATCH : r->index;

	if (r->sym != CHAIN_SYM_SCRATCH && r->sym != CHAIN_SYM_QUEUE)
		return;
	for (uint64_t i = r->offset; i < r->offset + r->len && i < b->size[space]; i++)
		if (what != NEEDED || !(b->of[space][i] & DEFINED))
			b->of[space][i] |= what;
}

static struct layout_range place(const struct bytes *b, const struct chain_place *p, uint32_t len)
{
	struct layout_range r = {.sym = CHAIN_SYM_REGION};

	layout_resolve((struct layout *)b->l, p, len, &(struct chain_error_at){0}, &r);
	return r;
}

static bool fills(const struct chain_place *p, const char *label, unsigned sge)
{
	bool local = p->field == CHAIN_F_LOCAL_ADDR || p->field == CHAIN_F_LOCAL_LEN;

	return p->kind == CHAIN_AT_FIELD && strcmp(p->name, label) == 0 &&
	       (sge == REMOTE ? p->field == CHAIN_F_REMOTE_ADDR : local && p->sge == sge);
}

/* Something fills in the address or length of that place of a step: it may touch other bytes than those it
 * names */
static bool moves(const struct bytes *b, unsigned step, unsigned sge)
{
	const struct chain_desc *d = b->l->d;
	const char *label = d->steps[step].label;

	for (unsigned s = 0; label && s < d->nsteps; s++) {
		if (fills(&d->steps[s].remote, label, sge))
			return true;
		for (unsigned i = 0; i < CHAIN_MAX_SGE; i++)
			if (fills(&d->steps[s].local[i], label, sge))
				return true;
	}
	for (unsigned a = 0; label && a < d->nargs; a++)
		if (fills(&d->args[a], label, sge))
			return true;
	return false;
}

static void touch(struct bytes *b, const struct chain_place *p, uint32_t len, bool write, bool atomic,
	bool sure, bool wanders)
{
	struct layout_range r = place(b, p, len);

	if (wanders && r.sym == CHAIN_SYM_SCRATCH) { /* anywhere in scratch memory */
		r.offset = 0;
		r.len = b->size[SCRATCH];
		sure = false;
	}
	if (!write || atomic)
		mark(b, &r, NEEDED);
	if (write)
		mark(b, &r, sure && !atomic && !wanders ? WRITTEN | DEFINED : WRITTEN);
}

static void execute(struct bytes *b, unsigned s)
{
	const struct layout *l = b->l;
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct layout_range wqe = {.sym = CHAIN_SYM_QUEUE, .index = st->queue};
	bool sure = !(st->flags & CHAIN_DORMANT), wanders = moves(b, s, REMOTE);

	wqe.offset = (uint64_t)l->step[s].at * CHAIN_WQEBB;
	wqe.len = (uint32_t)l->step[s].wqebbs * CHAIN_WQEBB;
	mark(b, &wqe, NEEDED);
	/* What is read before what is written: of a step's own places either may come first */
	if (v->remote && (st->verb == CHAIN_READ || v->atomic_bytes))
		touch(b, &st->remote, layout_step_bytes(l, s), v->atomic_bytes, v->atomic_bytes, sure,
			wanders);
	for (unsigned i = 0; i < l->step[s].nsge; i++)
		touch(b, &st->local[i], st->local[i].len, v->scatters, false, sure, moves(b, s, i));
	if (v->remote && st->verb != CHAIN_READ && !v->atomic_bytes)
		touch(b, &st->remote, layout_step_bytes(l, s), true, false, sure, wanders);
}

/* One run of the instance: layout_check_flow() has found that there is one */
static void run(struct bytes *b)
{
	const struct layout *l = b->l;
	uint32_t enabled[CHAIN_MAX_QUEUES];
	bool done[CHAIN_MAX_STEPS] = {0}, moved = true;

	memcpy(enabled, l->head, sizeof(enabled));
	while (moved) {
		bool stuck[CHAIN_MAX_QUEUES] = {0};

		moved = false;
		for (unsigned s = 0; s < l->d->nsteps; s++) {
			const struct chain_step *st = &l->d->steps[s];
			const struct layout_step *ls = &l->step[s];

			if (done[s] || stuck[st->queue])
				continue;
			if (enabled[st->queue] < (uint32_t)ls->at + ls->wqebbs ||
				(st->verb == CHAIN_WAIT && ls->until != LAYOUT_NONE && !done[ls->until])) {
				stuck[st->queue] = true;
				continue;
			}
			if (st->verb == CHAIN_SEND_EN)
				enabled[st->target] = ls->enables;
			execute(b, s);
			done[s] = moved = true;
		}
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
		for (end = i; end < b->size[space] && (b->of[space][end] & both) == both;)
			end++;
		if (end > i)
			r = add(img, space, i, end - i);
		else
			end++;
	}
	return r;
}

int layout_note_restores(const struct layout *l, struct chain_image *img)
{
	struct bytes b = {.l = l};
	bool all = true;
	int r = 0;

	for (unsigned s = 0; s < SPACES; s++) {
		b.size[s] = s == SCRATCH ? l->scratch_size : l->wqebbs[s] * CHAIN_WQEBB;
		b.of[s] = calloc(1, b.size[s] + 1);
		all = all && b.of[s];
	}
	for (unsigned a = 0; all && a < l->d->nargs; a++) {
		struct layout_range arg = place(&b, &l->d->args[a], l->d->args[a].len);

		mark(&b, &arg, WRITTEN | DEFINED);
	}
	if (all)
		run(&b);
	for (unsigned s = 0; all && s < SPACES && !r; s++)
		r = note(&b, s, img);
	for (unsigned s = 0; s < SPACES; s++)
		free(b.of[s]);
	return all ? r : -ENOMEM;
}
