/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/failing.h"
#include "tests/programs/values.h"

#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"

#include <stdlib.h>
#include <string.h>

enum {
	PASSES = 8,         /* of the silicon, in which one request may be executed */
	PATIENCE = 1 << 16, /* passes until what is enabled has run */
};

/* A slot as it was when its last request was sent, and after each of the n messages of the reply */
struct history {
	uint8_t *slot;
	struct {
		uint32_t at, len; /* what it writes in the slot */
	} * message;
	unsigned n;
};

struct failing {
	struct run *r;
	struct history *history;
	bool failed;
};

static bool send_next(struct failing *f)
{
	struct run *r = f->r;
	struct history *h = &f->history[r->c.sent % r->o->depth];
	const uint8_t *before = r->slots_after + r->c.sent % r->o->depth * RUN_SLOT;
	uint8_t was[RUN_SLOT];
	const struct executor_message *m;

	memcpy(was, before, RUN_SLOT);
	if (!run_send(r))
		return false;
	if (r->enough) /* it was not sent */
		return true;
	m = executor_messages(r->executor, &h->n);
	h->slot = realloc(h->slot, (h->n + 1) * (size_t)RUN_SLOT);
	h->message = realloc(h->message, (h->n + 1) * sizeof(*h->message));
	assert_non_null(h->slot);
	assert_non_null(h->message);
	memcpy(h->slot, was, RUN_SLOT);
	for (unsigned i = 0; i < h->n; i++) {
		uint8_t *to = h->slot + (i + 1) * (size_t)RUN_SLOT;
		const bool writes = m[i].opcode == WQE_OP_WRITE || m[i].opcode == WQE_OP_WRITE_IMM;

		h->message[i].at = m[i].slot_at;
		h->message[i].len = writes ? m[i].len : 0;
		memcpy(to, to - RUN_SLOT, RUN_SLOT);
		memcpy(to + h->message[i].at, r->message_data + m[i].from, h->message[i].len);
	}
	return true;
}

static const uint8_t *slot_after(const struct history *h, unsigned messages)
{
	return h->slot + messages * (size_t)RUN_SLOT;
}

static bool first_ones_landed(const struct history *h, const uint8_t *slot)
{
	for (unsigned i = 0; i <= h->n; i++)
		if (memcmp(slot_after(h, i), slot, RUN_SLOT) == 0)
			return true;
	return false;
}

/*
 * Some messages have landed, each of them whole, and in their order. With several queues of code one that has
 * failed leaves out what its conditions decide, and what others decide goes on. From the last message to the
 * first: one whose bytes are there, but for those that a later one has covered, may have landed, and to take
 * it for one that has leaves less to be explained.
 */
static bool some_landed(const struct history *h, const uint8_t *slot)
{
	bool covered[RUN_SLOT] = {false};

	for (unsigned i = h->n; i-- > 0;) {
		const uint8_t *is = slot_after(h, i + 1);
		const uint32_t from = h->message[i].at, to = from + h->message[i].len;
		bool landed = true;

		for (uint32_t at = from; at < to; at++)
			landed &= covered[at] || slot[at] == is[at];
		for (uint32_t at = from; landed && at < to; at++)
			covered[at] = true;
	}
	for (uint32_t at = 0; at < RUN_SLOT; at++)
		if (!covered[at] && slot[at] != h->slot[at])
			return false;
	return true;
}

/* What the daemon does until it sees the failure, and what the client gets until its own queue pair fails */
static bool take(struct failing *f)
{
	struct run *r = f->r;
	const uint8_t *cqe;
	char ignored[360];
	bool good = chain_rig_serve(&r->c, ignored, sizeof(ignored));

	if (!good && !f->failed)
		return run_wrong(r, ignored);
	while ((cqe = rig_cq_next(&r->c.client_rcq))) {
		if (f->failed && rig_cqe_op(cqe) == CQE_OP_RESP_ERR)
			return true;
		if (!run_take_reply(r, cqe))
			return false;
	}
	return true;
}

static bool check_slots(struct failing *f)
{
	struct run *r = f->r;
	const uint64_t depth = r->o->depth;
	const bool several = r->p->image->nqueues > 2;

	for (uint64_t n = r->c.sent < depth ? 0 : r->c.sent - depth; n < r->c.sent; n++) {
		const struct history *h = &f->history[n % depth];
		const uint8_t *slot = r->slots + n % depth * RUN_SLOT;

		if (n < r->answered && memcmp(slot_after(h, h->n), slot, RUN_SLOT) != 0)
			return run_wrong(r, "a reply is gone");
		if (n >= r->answered && !(several ? some_landed(h, slot) : first_ones_landed(h, slot)))
			return run_wrong(r, "a slot has neither what was there nor the reply");
	}
	return true;
}

/* A chain that goes on with RECVs that are flushed must come to an end */
static bool rest(struct run *r)
{
	unsigned passes = 0;

	while (hw_poll(r->c.rig.dev))
		if (++passes > PATIENCE)
			return run_wrong(r, "it goes on and on");
	return true;
}

static bool go(struct failing *f, unsigned requests)
{
	struct run *r = f->r;
	const uint64_t when = run_random(r, (uint64_t)requests * PASSES);
	const uint64_t victim = run_random(r, r->c.img->nqueues);

	for (uint64_t passes = 0; passes < when && !r->enough; passes++) {
		if (r->c.sent < requests && r->c.sent - r->answered < r->o->depth && run_random(r, 2) &&
			!send_next(f))
			return false;
		hw_poll(r->c.rig.dev);
		if (!take(f))
			return false;
	}
	f->failed = true;
	rig_qp_to(&r->c.queue[victim], HW_ERR);
	for (unsigned i = 0; i < 4; i++) { /* and all that the daemon arms meanwhile */
		if (!rest(r) || !take(f))
			return false;
	}
	return check_slots(f);
}

bool failing_run(const struct run_offload *o, struct program *p, uint64_t seed, unsigned slots,
	unsigned requests, struct failing_counts *counts, char why[400])
{
	struct failing f = {
		.r = run_begin(o, p, seed, slots, 0), .history = calloc(o->depth, sizeof(*f.history))};
	struct run *r = f.r;
	bool good;

	assert_non_null(f.history);
	r->seed = seed;
	good = go(&f, requests);
	for (unsigned i = 0; good && i < p->nregions; i++)
		good = run_same(r, r->region[i], r->model[i], o->region_bytes[i], "a region");
	counts->runs++;
	counts->answered += r->answered;
	counts->lost += r->c.sent - r->answered;
	memcpy(why, r->why, sizeof(r->why));
	for (unsigned i = 0; i < o->depth; i++) {
		free(f.history[i].slot);
		free(f.history[i].message);
	}
	free(f.history);
	run_end(r);
	return good;
}
