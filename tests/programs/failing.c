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

/* A slot as it was when its last request was sent, and after each message of the reply */
struct history {
	uint8_t *slot;
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
	assert_non_null(h->slot);
	memcpy(h->slot, was, RUN_SLOT);
	for (unsigned i = 0; i < h->n; i++) {
		uint8_t *to = h->slot + (i + 1) * (size_t)RUN_SLOT;

		memcpy(to, to - RUN_SLOT, RUN_SLOT);
		if (m[i].opcode == WQE_OP_WRITE || m[i].opcode == WQE_OP_WRITE_IMM)
			memcpy(to + m[i].slot_at, r->message_data + m[i].from, m[i].len);
	}
	return true;
}

static bool is_one_of(const struct history *h, const uint8_t *slot, unsigned first)
{
	for (unsigned i = first; i <= h->n; i++)
		if (memcmp(h->slot + i * (size_t)RUN_SLOT, slot, RUN_SLOT) == 0)
			return true;
	return false;
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

	for (uint64_t n = r->c.sent < depth ? 0 : r->c.sent - depth; n < r->c.sent; n++) {
		const struct history *h = &f->history[n % depth];
		const uint8_t *slot = r->slots + n % depth * RUN_SLOT;
		bool lost = n >= r->answered;

		if (!is_one_of(h, slot, lost ? 0 : h->n))
			return run_wrong(r,
				lost ? "a slot has neither what was there nor the reply" : "a reply is gone");
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
	for (unsigned i = 0; i < o->depth; i++)
		free(f.history[i].slot);
	free(f.history);
	run_end(r);
	return good;
}
