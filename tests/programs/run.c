/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/run.h"
#include "tests/programs/values.h"

#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"
#include "tests/programs/in-parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASS = 40 }; /* WQEs that the silicon executes before the next request may come: some of its chain */

bool run_recycled;
bool run_overlap;
unsigned run_fetch_group;
bool run_swapped;
struct chain_rig_recycler *run_shared;

bool run_recycles(const struct chain_image *img)
{
	struct chain_env env = {.slots = 8};
	struct chain_recycle size;
	int r;

	for (unsigned q = 0; q < img->nqueues; q++)
		env.queue[q].ring_wqebbs = chain_recycle_ring(img, q, env.slots);
	r = chain_recycle_size(img, &env, &size);
	assert_true(r == 0 || r == -EOPNOTSUPP);
	return r == 0;
}

struct program *run_compile(const struct run_offload *o)
{
	static char text[PROGRAM_MAX_SOURCE];
	char path[300], *messages;
	struct program_source src = {.name = o->file, .text = text};
	struct program_target target = {.masked_atomics = !o->no_masks,
		.calc = o->no_calc ? 0 : PROGRAM_CALC,
		.ignores_index = o->direct,
		.fenced_enables = o->fenced,
		.swapped_old = o->swapped || run_swapped,
		.overlap = run_overlap,
		.pad_wqebbs = run_overlap ? CHAIN_LONGEST_PAD : 0,
		.fetch_group = run_fetch_group};
	struct program *p;
	unsigned n = 0;
	FILE *f;

	if (o->file) {
		snprintf(path, sizeof(path), "%s%s", *o->file == '/' ? "" : PROGRAMS "/", o->file);
		f = fopen(path, "r");
		if (!f)
			fail_msg("%s is not there", path);
		src.len = fread(text, 1, sizeof(text), f);
		fclose(f);
	} else {
		src = (struct program_source){.name = o->name, .text = o->text, .len = strlen(o->text)};
	}
	while (n < RUN_SETTINGS && o->settings[n].name)
		n++;
	if (program_compile(&src, o->settings, n, &target, &p, &messages))
		fail_msg("%s", messages);
	return p;
}

/* ---- one client ------------------------------------------------------------------------------- */

static void make_extents(struct run *r)
{
	const uint32_t bytes = r->o->region_bytes[r->p->payload.region];
	const uint32_t size = (r->c.img->arg_len + r->p->payload.max + 63) / 64 * 64;

	assert_true(size * r->c.env.slots <= bytes);
	chain_rig_extents(&r->c, r->region[r->p->payload.region], bytes);
	for (unsigned s = 0; s < r->c.env.slots; s++)
		r->c.extent[s] = bytes - (s + 1) * size;
}

uint64_t run_extent(const struct run *r)
{
	return r->c.extent[r->c.sent & (r->c.env.slots - 1)];
}

static void make_memory(struct run *r)
{
	for (unsigned i = 0; i < r->p->nregions; i++) {
		unsigned access = r->p->regions[i].writable ? CHAIN_RIG_ALL_RIGHTS : HW_REMOTE_READ;
		uint32_t bytes = r->o->region_bytes[i];

		assert_true(bytes > 0);
		r->region[i] = rig_alloc(&r->c.rig, bytes);
		r->model[i] = malloc(bytes);
		assert_non_null(r->model[i]);
		r->c.env.region[i].iova = (uint64_t)(i + 1) << 57;
		r->c.env.region[i].lkey = r->c.env.region[i].rkey =
			chain_rig_key(&r->c, r->region[i], bytes, r->c.env.region[i].iova, access);
	}
	if (r->p->payload.max)
		make_extents(r);
	r->o->setup(r);
	for (unsigned i = 0; i < r->p->nregions; i++)
		memcpy(r->model[i], r->region[i], r->o->region_bytes[i]);
	r->slots = rig_alloc(&r->c.rig, (size_t)r->o->depth * RUN_SLOT);
	r->slots_after = malloc((size_t)r->o->depth * RUN_SLOT);
	assert_non_null(r->slots_after);
	run_fill(r, r->slots, (size_t)r->o->depth * RUN_SLOT);
	memcpy(r->slots_after, r->slots, (size_t)r->o->depth * RUN_SLOT);
	r->inbox = rig_alloc(&r->c.rig, (size_t)r->o->depth * RUN_SLOT);
	r->inbox_after = calloc(r->o->depth, RUN_SLOT);
	r->answer = calloc(r->o->depth, sizeof(*r->answer));
	assert_non_null(r->inbox_after);
	assert_non_null(r->answer);
}

struct run_answer *run_answer(struct run *r)
{
	return &r->answer[r->c.sent % r->o->depth];
}

uint8_t *run_inbox(struct run *r)
{
	return r->inbox_after + r->c.sent % r->o->depth * RUN_SLOT;
}

uint32_t run_wire(const struct run *r, uint8_t wire[CHAIN_MAX_ARG])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < r->p->npieces; i++) {
		const struct program_piece *p = &r->p->pieces[i];

		for (unsigned k = 0; k < p->len; k++) {
			unsigned at = p->first + (p->reversed ? p->len - 1u - k : k);

			wire[n++] = r->arg[p->arg][at] ^ (p->inverted ? 0xff : 0);
		}
	}
	assert_int_equal(n, r->c.img->arg_len);
	return n;
}

bool run_wrong(struct run *r, const char *what)
{
	if (!r->why[0])
		snprintf(r->why, sizeof(r->why), "seed %lu, request %lu: %s", (unsigned long)r->seed,
			(unsigned long)r->answered, what);
	return false;
}

bool run_same(struct run *r, const uint8_t *is, const uint8_t *should, size_t n, const char *what)
{
	char text[200];
	size_t i = 0;

	if (memcmp(is, should, n) == 0)
		return true;
	while (is[i] == should[i])
		i++;
	snprintf(text, sizeof(text), "byte %zu of %s is %#x, not %#x", i, what, is[i], should[i]);
	return run_wrong(r, text);
}

/* ---- the same by the CPU ---------------------------------------------------------------------- */

enum { ENDLESS = 1 << 24 }; /* steps of the silicon or of the CPU for one answer */

static void make_executor(struct run *r)
{
	struct executor_parts parts = {.slot_size = RUN_SLOT, .data_size = (uint32_t)executor_bytes(r->p)};

	for (unsigned i = 0; i < r->p->nregions; i++) {
		/* the last word is read whole */
		r->executed[i] = malloc(r->o->region_bytes[i] + sizeof(uint64_t));
		assert_non_null(r->executed[i]);
		memcpy(r->executed[i], r->region[i], r->o->region_bytes[i]);
		parts.region[i] = (struct executor_region){
			r->executed[i], r->o->region_bytes[i], r->p->regions[i].writable};
	}
	r->message_data = malloc(parts.data_size + 1u);
	assert_non_null(r->message_data);
	assert_int_equal(executor_new(&r->executor, r->p, &parts), 0);
	r->in_parts = in_parts_new(r->p, &parts);
}

static void free_executor(struct run *r)
{
	in_parts_free(r->in_parts);
	executor_free(r->executor);
	free(r->message_data);
	for (unsigned i = 0; i < r->p->nregions; i++)
		free(r->executed[i]);
}

/* What the CPU sends becomes what the client should get */
static void expect_messages(struct run *r, uint8_t *slot)
{
	struct run_answer *a = run_answer(r);
	const struct executor_message *m;
	unsigned n;

	m = executor_messages(r->executor, &n);
	for (unsigned i = 0; i < n; i++) {
		bool sends = m[i].opcode == WQE_OP_SEND || m[i].opcode == WQE_OP_SEND_IMM;

		memcpy(sends ? run_inbox(r) : slot + m[i].slot_at, r->message_data + m[i].from, m[i].len);
		if (m[i].opcode != WQE_OP_WRITE)
			*a = (struct run_answer){.sends = sends, .has_imm = true, .imm = m[i].imm};
	}
	for (unsigned i = 0; i < r->p->nregions; i++)
		memcpy(r->model[i], r->executed[i], r->o->region_bytes[i]);
}

/* The messages of a request, as the client would get them: the last one, and no other, brings it an answer */
static bool check_messages(struct run *r, uint8_t *slot, uint8_t *inbox)
{
	const struct run_answer *a = run_answer(r);
	const struct executor_message *m;
	unsigned n, answers = 0;

	m = executor_messages(r->executor, &n);
	for (unsigned i = 0; i < n; i++) {
		bool sends = m[i].opcode == WQE_OP_SEND || m[i].opcode == WQE_OP_SEND_IMM;

		memcpy(sends ? inbox : slot + m[i].slot_at, r->message_data + m[i].from, m[i].len);
		if (m[i].opcode == WQE_OP_WRITE)
			continue;
		answers++;
		if (sends != a->sends || (!sends && m[i].imm != (a->has_imm ? a->imm : (uint32_t)r->c.sent)))
			return run_wrong(r, "the CPU answers by another message, or with another immediate");
	}
	return (answers == 1 || run_wrong(r, "the CPU does not answer once")) &&
	       run_same(r, inbox, run_inbox(r), RUN_SLOT, "what the CPU sends");
}

static bool fault(struct run *r, enum executor_result result)
{
	const struct executor_fault *f = executor_fault(r->executor);
	char text[100];

	snprintf(text, sizeof(text), "the CPU: result %u, queue %u, WQEBB %u, syndrome %#x", result, f->queue,
		f->wqebb, f->syndrome);
	return run_wrong(r, text);
}

/* After .request has made the models what it means; @slot and @inbox are as they were before */
static bool execute(struct run *r, const uint8_t *wire, uint8_t *slot, uint8_t *inbox, uint8_t *after)
{
	enum executor_result result;
	const char *differs;
	char text[100];

	executor_begin(r->executor, r->c.sent, wire, r->message_data);
	if (r->p->payload.max)
		in_parts_receive(r->executor, r->p, r->executed[r->p->payload.region], run_extent(r), wire,
			r->c.img->arg_len - r->lacks + r->payload_bytes);
	result = executor_run(r->executor, ENDLESS);
	differs = in_parts_differs(r->in_parts, r->executor, result, r->c.sent, wire,
		r->c.img->arg_len - r->lacks + r->payload_bytes, run_extent(r), ENDLESS, r->message_data);
	if (differs) {
		snprintf(text, sizeof(text), "by the CPU, in parts, %s is another one", differs);
		return run_wrong(r, text);
	}
	if (result == EXECUTOR_DONE && r->o->by_executor)
		expect_messages(r, after);
	else if (r->o->by_executor)
		r->enough = true;
	else if (result != EXECUTOR_DONE)
		return fault(r, result);
	for (unsigned i = 0; r->enough && i < r->p->nregions; i++)
		memcpy(r->executed[i], r->model[i], r->o->region_bytes[i]);
	if (r->enough)
		in_parts_follow(r->in_parts);
	return r->o->by_executor || (check_messages(r, slot, inbox) &&
					    run_same(r, slot, after, RUN_SLOT, "the slot, by the CPU,"));
}

bool run_send(struct run *r)
{
	uint8_t *after = r->slots_after + r->c.sent % r->o->depth * RUN_SLOT;
	uint8_t wire[CHAIN_MAX_ARG + RUN_PAYLOAD], slot[RUN_SLOT], inbox[RUN_SLOT];
	uint32_t bytes;

	memcpy(slot, after, RUN_SLOT);
	memcpy(inbox, run_inbox(r), RUN_SLOT);
	*run_answer(r) = (struct run_answer){0};
	r->o->request(r, after);
	if (r->enough || r->why[0])
		return !r->why[0];
	bytes = run_wire(r, wire) - r->lacks;
	memset(wire + bytes, 0xee, r->lacks);
	program_complete(r->p, wire, bytes);
	memcpy(wire + bytes + r->lacks, r->payload, r->payload_bytes);
	if (!execute(r, wire, slot, inbox, after))
		return false;
	if (!r->enough)
		chain_rig_send(&r->c, wire, bytes + r->payload_bytes,
			r->inbox + r->c.sent % r->o->depth * RUN_SLOT, RUN_SLOT);
	return true;
}

static bool is_answer(struct run *r, const uint8_t *cqe)
{
	const struct run_answer *a = &r->answer[r->answered % r->o->depth];

	if (rig_cqe_op(cqe) != (a->sends ? CQE_OP_RESP_SEND : CQE_OP_RESP_WRITE_IMM))
		return run_wrong(r, "the client's receive failed");
	if (!a->sends && wqe_get(cqe + 36, 4) != (a->has_imm ? a->imm : (uint32_t)r->answered))
		return run_wrong(r, a->has_imm ? "the immediate is another one"
					       : "the immediate is not the number of the request");
	return true;
}

bool run_take_reply(struct run *r, const uint8_t *cqe)
{
	size_t slot = r->answered % r->o->depth * RUN_SLOT;

	if (!is_answer(r, cqe) ||
		!run_same(r, r->inbox + slot, r->inbox_after + slot, RUN_SLOT, "what was sent") ||
		!run_same(r, r->slots + slot, r->slots_after + slot, RUN_SLOT, "the slot"))
		return false;
	r->answered++;
	return true;
}

static bool take_replies(struct run *r)
{
	const uint8_t *cqe;
	char why[360];

	while ((cqe = rig_cq_next(&r->c.client_rcq)))
		if (!run_take_reply(r, cqe))
			return false;
	while ((cqe = rig_cq_next(&r->c.client_scq)))
		if (rig_cqe_op(cqe) != CQE_OP_REQ)
			return run_wrong(r, "the client's send failed");
	return chain_rig_serve(&r->c, why, sizeof(why)) || run_wrong(r, why);
}

static void note_busy(struct run *r)
{
	uint64_t n = r->busy - r->busy_before;

	r->busy_before = r->busy;
	if (r->n.least == 0 || n < r->n.least)
		r->n.least = n;
	if (n > r->n.most)
		r->n.most = n;
}

/* Until that many have been answered, and nothing is left to do */
static bool serve(struct run *r, uint64_t requests)
{
	uint64_t noted = r->c.completed, polls = 0, before = r->c.completed;

	while (r->answered < requests || r->c.completed < requests) {
		bool busy = false;

		/* of a chain that answers before it is over, the rest goes on beside the next requests, but
		 * for depth 1 */
		if (r->c.sent < requests && r->c.sent - r->answered < r->o->depth &&
			(r->o->depth > 1 || r->c.completed == r->c.sent) && run_random(r, 2) && !run_send(r))
			return false;
		if (r->enough)
			requests = r->c.sent;
		for (uint64_t n = 1 + run_random(r, 12); n-- > 0; polls++)
			busy |= hw_poll(r->c.rig.dev);
		if (!take_replies(r))
			return false;
		if (r->o->depth == 1 && r->c.completed > noted) {
			rig_run(&r->c.rig);
			note_busy(r);
			noted++;
		}
		if (!busy && r->c.sent > r->answered && !hw_poll(r->c.rig.dev) &&
			hw_next_timer(r->c.rig.dev) == UINT64_MAX)
			return take_replies(r) && run_wrong(r, "no answer");
		if (r->c.completed > before)
			polls = 0;
		before = r->c.completed;
		if (polls > ENDLESS)
			return run_wrong(r, "it goes on and on");
	}
	rig_run(&r->c.rig);
	return take_replies(r);
}

static bool serve_seeds(struct run *r, uint64_t seed, unsigned seeds, unsigned requests)
{
	for (unsigned i = 0; i < seeds && !r->enough; i++) {
		r->seed = seed + i;
		if (i)
			chain_rig_seed(&r->c, r->seed);
		if (!serve(r, (uint64_t)(i + 1) * requests))
			return false;
	}
	for (unsigned i = 0; i < r->p->nregions; i++)
		if (!run_same(r, r->region[i], r->model[i], r->o->region_bytes[i], r->p->regions[i].name) ||
			!run_same(r, r->executed[i], r->model[i], r->o->region_bytes[i],
				"a region, by the CPU,"))
			return false;
	return run_same(
		r, r->slots, r->slots_after, (size_t)r->o->depth * RUN_SLOT, "the slots, in the end,");
}

/* ---- counting --------------------------------------------------------------------------------- */

/* Between two runs of its first WQE lie whole laps of a ring */
static void count_loop(struct run *r, const struct hw_trace *t)
{
	const struct chain_verb_info *v = chain_verb_info(chain_verb_of(t->opcode, t->opmod));

	if ((t->idx & (r->c.loop_image->wqebbs - 1)) == 0) {
		if (r->n.laps++ == 0)
			memcpy(r->first_lap, r->n.loop, sizeof(r->first_lap));
		for (unsigned k = 0; k <= RUN_NOPS; k++)
			r->n.lap[k] = r->n.loop[k] - r->first_lap[k];
	}
	r->n.loop[v->opcode ? v->class : RUN_NOPS]++;
}

static void count(void *arg, const struct hw_trace *t)
{
	struct run *r = arg;

	if (r->p->loop && t->kind == HW_TRACE_WQE && t->qpn == r->c.loop_values.of[RING_SELF].qpn &&
		!t->syndrome) {
		count_loop(r, t);
		return;
	}

	for (unsigned q = 0; q < r->c.img->nqueues; q++) {
		uint32_t at;
		enum chain_verb verb = chain_verb_of(t->opcode, t->opmod);

		if (t->kind != HW_TRACE_WQE || t->qpn != r->c.env.queue[q].qpn || t->syndrome)
			continue;
		at = t->idx & (r->c.env.queue[q].ring_wqebbs - 1);
		if (at >= chain_pad_at(r->c.img, q, r->c.env.slots))
			return;
		r->busy += verb != CHAIN_NOP;
		r->n.nops += verb == CHAIN_NOP;
		/* a dormant one is counted as what it was posted for, which is what the compiler counts */
		r->n.copy += verb != CHAIN_NOP && chain_verb_info(verb)->class == CHAIN_CLASS_COPY;
		r->n.atomic += chain_verb_info(verb)->class == CHAIN_CLASS_ATOMIC;
		r->n.sync += chain_verb_info(verb)->class == CHAIN_CLASS_SYNC;
	}
}

static void add_counts(const struct run *r, struct run_counts *to)
{
	to->requests += r->answered;
	to->copy += r->n.copy;
	to->atomic += r->n.atomic;
	to->sync += r->n.sync;
	to->nops += r->n.nops;
	for (unsigned k = 0; k <= RUN_NOPS; k++) {
		to->loop[k] += r->n.loop[k];
		to->lap[k] += r->n.lap[k];
	}
	to->laps += r->n.laps ? r->n.laps - 1 : 0;
	if (to->least == 0 || r->n.least < to->least)
		to->least = r->n.least;
	if (r->n.most > to->most)
		to->most = r->n.most;
}

struct run *run_begin(
	const struct run_offload *o, struct program *p, uint64_t seed, unsigned slots, uint64_t first)
{
	struct run *r = calloc(1, sizeof(*r));
	struct hw_config cfg = {.seed = seed,
		.lenient = seed == 0,
		.no_index_check = o->direct,
		.no_qpn_check = o->direct,
		.no_sync_fence = !o->fenced,
		.pass = (o->meets || run_overlap) && o->depth > 1 && seed ? 1 + (unsigned)(seed % PASS) : 0};
	struct chain_error err;
	struct chain_image *img;

	assert_non_null(r);
	r->o = o;
	r->p = p;
	r->device = *profile_default();
	if (p->image->fetch_group)
		r->device.value[PROFILE_FETCH_GROUP] = p->image->fetch_group * CHAIN_WQEBB;
	r->device.value[PROFILE_HOST_ATOMICS] = !p->desc->swapped_old;
	cfg.profile = &r->device;
	assert_int_equal(chain_build(p->desc, &img, &err), 0);
	chain_rig_open(&r->c, &cfg, img, o->depth);
	if (slots)
		chain_rig_recycle(&r->c, slots);
	r->c.shared = run_shared;
	chain_rig_first(&r->c, first);
	make_memory(r);
	make_executor(r);
	if (p->loop)
		chain_rig_loop(&r->c, p->loop, p->loop_image, &p->loop_info, p->shared_init, p->shared_bytes);
	hw_set_trace(r->c.rig.dev, count, r);
	chain_rig_start(&r->c, r->slots, RUN_SLOT, o->depth);
	return r;
}

void run_end(struct run *r)
{
	chain_rig_close(&r->c);
	free_executor(r);
	for (unsigned i = 0; i < r->p->nregions; i++)
		free(r->model[i]);
	free(r->slots_after);
	free(r->inbox_after);
	free(r->answer);
	free(r);
}

bool run_offload(const struct run_offload *o, uint64_t seed, unsigned seeds, unsigned requests,
	struct run_counts *counts, char why[400])
{
	struct program *p = run_compile(o);
	bool ok = run_program(o, p, seed, seeds, requests, counts, why);

	program_free(p);
	return ok;
}

bool run_program(const struct run_offload *o, struct program *p, uint64_t seed, unsigned seeds,
	unsigned requests, struct run_counts *counts, char why[400])
{
	unsigned slots = o->depth > 2 ? 4 * o->depth : 8;
	struct run *r = run_begin(o, p, seed, run_recycled ? slots : 0, 0);
	bool ok = serve_seeds(r, seed, seeds, requests);

	memcpy(why, r->why, sizeof(r->why));
	if (ok && counts)
		add_counts(r, counts);
	run_end(r);
	return ok;
}
