/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/access.h"

#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>

enum { PER_STEP = CHAIN_MAX_SGE + 2 };

struct collector {
	struct layout *l;
	struct access_list *list;
};

static uint32_t longest(const struct chain_place *p)
{
	return p->max > p->len ? p->max : p->len;
}

static uint32_t remote_bytes(struct collector *c, unsigned s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < c->l->step[s].nsge; i++)
		bytes += longest(&c->l->d->steps[s].local[i]);
	return (uint32_t)chain_remote_bytes(chain_verb_info(c->l->d->steps[s].verb), bytes);
}

/* A place whose address is replaced can be anywhere in its symbol */
static void widen(struct layout_range *r)
{
	r->offset = 0;
	r->len = LAYOUT_ALL;
}

/* How far data goes whose length is replaced, only the key bounds; of the reply, what is declared */
static bool has_an_end(const struct collector *c, unsigned s, unsigned sge)
{
	return c->l->d->steps[s].queue == 0 || !(c->l->step[s].len_written >> sge & 1);
}

static void add(struct collector *c, struct access a)
{
	c->list->all[c->list->n++] = a;
}

/* A run of the loop: whatever it does in a region, anywhere there */
static void add_call(struct collector *c, struct access a)
{
	const struct chain_desc *d = c->l->d;
	bool touched[UINT8_MAX + 1] = {0}, written[UINT8_MAX + 1] = {0};

	touched[d->shared] = written[d->shared] = true;
	for (unsigned s = 0; d->loop && s < d->loop->nsteps; s++) {
		const struct chain_step *st = &d->loop->steps[s];
		const struct chain_verb_info *v = chain_verb_info(st->verb);

		for (unsigned i = 0; v->data && i < CHAIN_MAX_SGE; i++)
			if (st->local[i].kind == CHAIN_AT_REGION) {
				touched[st->local[i].index] = true;
				written[st->local[i].index] |= v->scatters;
			}
		if (v->remote && st->remote.kind == CHAIN_AT_REGION) {
			touched[st->remote.index] = true;
			written[st->remote.index] |= st->verb != CHAIN_READ;
		}
	}
	a.when = ACCESS_REMOTE;
	for (unsigned i = 0; i < d->nregions && i < CHAIN_MAX_WINDOWS; i++) {
		if (!touched[i])
			continue;
		a.r = (struct layout_range){.sym = CHAIN_SYM_REGION, .index = (uint8_t)i, .len = LAYOUT_ALL};
		a.write = written[i];
		add(c, a);
	}
}

static void add_step(struct collector *c, unsigned s)
{
	struct layout *l = c->l;
	const struct chain_step *st = &l->d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct access a = {
		.r = {.sym = CHAIN_SYM_QUEUE,
			.index = st->queue,
			.step = (uint16_t)s,
			.offset = (uint64_t)l->step[s].at * CHAIN_WQEBB,
			.len = (uint32_t)l->step[s].wqebbs * CHAIN_WQEBB},
		.step = (uint16_t)s,
		.when = ACCESS_FETCH,
	};
	bool ends = true;

	add(c, a);
	c->list->may_rest[s] = st->flags & CHAIN_DORMANT || l->step[s].opcode_written;
	a.when = v->scatters ? ACCESS_SCATTER : ACCESS_GATHER;
	a.write = v->scatters;
	for (unsigned i = 0; i < l->step[s].nsge; i++) {
		a.r = layout_place(l, &st->local[i], longest(&st->local[i]));
		if (!v->atomic_bytes && !has_an_end(c, s, i)) {
			a.r.len = LAYOUT_ALL;
			ends = false;
		}
		if (l->step[s].addr_written >> i & 1)
			widen(&a.r);
		add(c, a);
	}
	if (st->flags & CHAIN_CALL)
		add_call(c, a);
	if (!v->remote)
		return;
	a.when = ACCESS_REMOTE;
	a.write = st->verb != CHAIN_READ;
	a.atomic = v->atomic_bytes;
	a.r = layout_place(l, &st->remote, remote_bytes(c, s));
	if (!ends)
		a.r.len = LAYOUT_ALL;
	if (l->step[s].remote_written)
		widen(&a.r);
	add(c, a);
}

static int by_place(const void *x, const void *y)
{
	const struct access *a = x, *b = y;

	if (a->r.sym != b->r.sym)
		return a->r.sym < b->r.sym ? -1 : 1;
	if (a->r.index != b->r.index)
		return a->r.index < b->r.index ? -1 : 1;
	return a->r.offset < b->r.offset ? -1 : a->r.offset > b->r.offset;
}

int access_collect(struct layout *l, struct access_list *list)
{
	struct collector c = {.l = l, .list = list};

	*list = (struct access_list){
		.all = calloc((size_t)l->d->nsteps * PER_STEP + CHAIN_MAX_RECV_SGE, sizeof(*list->all))};
	if (!list->all)
		return -ENOMEM;
	for (unsigned i = 0; i < l->d->nargs; i++)
		add(&c, (struct access){.r = layout_place(l, &l->d->args[i], l->d->args[i].len),
				.step = LAYOUT_NONE,
				.when = ACCESS_REQUEST,
				.write = true});
	if (l->d->payload.max) /* whichever extent it is */
		add(&c, (struct access){.r = {.sym = CHAIN_SYM_REGION,
						.index = l->d->payload.region,
						.step = LAYOUT_NONE,
						.len = LAYOUT_ALL},
				.step = LAYOUT_NONE,
				.when = ACCESS_REQUEST,
				.write = true});
	for (unsigned s = 0; s < l->d->nsteps; s++)
		add_step(&c, s);
	qsort(list->all, list->n, sizeof(*list->all), by_place);
	return 0;
}

void access_free(struct access_list *list)
{
	free(list->all);
}

int access_conflicts(const struct access_list *list,
	int (*pair)(void *arg, const struct access *a, const struct access *b), void *arg)
{
	int r = 0;

	for (unsigned i = 0; i < list->n && !r; i++) {
		const struct access *a = &list->all[i];

		for (unsigned j = i + 1; j < list->n && !r; j++) {
			const struct access *b = &list->all[j];

			if (b->r.sym != a->r.sym || b->r.index != a->r.index ||
				b->r.offset >= a->r.offset + a->r.len)
				break; /* and so is all that follows */
			if (a->step == b->step || !(a->write || b->write) || !layout_overlap(&a->r, &b->r))
				continue;
			r = a->when == ACCESS_REQUEST || (b->when != ACCESS_REQUEST && a->step < b->step)
				    ? pair(arg, a, b)
				    : pair(arg, b, a);
		}
	}
	return r;
}

bool access_in_turn(const struct layout *l, const struct access *a, const struct access *b)
{
	const struct chain_step *sa = &l->d->steps[a->step], *sb = &l->d->steps[b->step];

	if (a->when == ACCESS_FETCH || b->when == ACCESS_FETCH || sa->queue != sb->queue)
		return false;
	/* to the end of what @a does it must have been executed, no more; and @b must not begin before that
	 */
	if (a->when == ACCESS_SCATTER || b->when == ACCESS_GATHER)
		return false;
	return !chain_verb_info(sa->verb)->scatters ||
	       (chain_verb_info(sa->verb)->atomic_bytes && chain_verb_info(sb->verb)->atomic_bytes);
}

bool access_writes_opcode(const struct layout *l, const struct access *a, unsigned s)
{
	uint64_t at = (uint64_t)l->step[s].at * CHAIN_WQEBB + WQE_OPCODE;

	return a->write && a->r.sym == CHAIN_SYM_QUEUE && a->r.index == l->d->steps[s].queue &&
	       a->r.offset <= at && at < a->r.offset + a->r.len;
}
