/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each rule of strictness has two programs: a wrong one that relies on what no source promises, and a right
 * one that does not. The wrong one fails under some seed; the right one passes under every seed that is
 * tried. Where an option of the device (--lenient, --no-index-check, --no-qpn-check) makes the promise after
 * all, the wrong one always passes.
 *
 * Usage: test-hw-strictness [SEEDS]
 */
#include "softcx/hw/dev.h"
#include "softcx/hw/test-rig.h"
#include "tests/lib/sanitized.h"
#include "util/array.h"

#include <stdlib.h>
#include <string.h>

static unsigned seeds = SANITIZED ? 500 : 10000;

enum { GOAL = 4711, WORDS = 64 };

/*
 * Two queues that software rings and two managed ones, each connected to itself, each with a CQ for its
 * sends. The device and its memory stay from one seed to the next; everything else is new.
 */
struct stage {
	struct rig rig;
	size_t base; /* of rig.used */
	struct rig_cq mcq, pcq, acq, bcq, rcq;
	struct rig_qp m, p, a, b, x; /* x: of a program that needs one more */
	bool has_x;
	uint64_t *word; /* scratch; word[0] is GOAL */
	uint8_t *op;    /* the opcode byte of a WRITE */
};

static struct rig_cq *cq_of(struct stage *s, unsigned i)
{
	struct rig_cq *all[] = {&s->mcq, &s->pcq, &s->acq, &s->bcq, &s->rcq};

	return i < COUNT(all) ? all[i] : NULL;
}

static void set_up(struct stage *s, uint64_t seed)
{
	struct rig *r = &s->rig;
	struct rig_opt managed = {.managed = true, .wqebbs = 16, .rq_wqes = 4};
	struct rig_opt plain = {.wqebbs = 16, .rq_wqes = 4};
	struct rig_cq *cq;

	memset(r->mem.host + s->base, 0, r->used - s->base);
	r->used = s->base;
	hw_dev_seed(r->dev, seed);
	for (unsigned i = 0; (cq = cq_of(s, i)); i++)
		rig_cq_new(r, cq, 4);
	rig_qp_new_with(r, &s->m, &s->mcq, &s->rcq, plain);
	rig_qp_new_with(r, &s->p, &s->pcq, &s->rcq, plain);
	rig_qp_new_with(r, &s->a, &s->acq, &s->rcq, managed);
	rig_qp_new_with(r, &s->b, &s->bcq, &s->rcq, managed);
	rig_connect(&s->m, &s->m);
	rig_connect(&s->p, &s->p);
	rig_connect(&s->a, &s->a);
	rig_connect(&s->b, &s->b);
	s->has_x = false;
	s->word = rig_alloc(r, WORDS * sizeof(*s->word));
	s->word[0] = GOAL;
	s->op = rig_alloc(r, 1);
	*s->op = WQE_OP_WRITE;
}

static void tear_down(struct stage *s)
{
	struct rig_cq *cq;

	rig_destroy(&s->m);
	rig_destroy(&s->p);
	rig_destroy(&s->a);
	rig_destroy(&s->b);
	if (s->has_x)
		rig_destroy(&s->x);
	for (unsigned i = 0; (cq = cq_of(s, i)); i++)
		assert_int_equal(hw_cq_destroy(s->rig.dev, cq->cq), 0);
}

static void add_x(struct stage *s, struct rig_cq *scq, struct rig_opt opt)
{
	opt.wqebbs = 16;
	opt.rq_wqes = 4;
	rig_qp_new_with(&s->rig, &s->x, scq, &s->rcq, opt);
	s->has_x = true;
}

static void go(struct stage *s, struct rig_qp *q)
{
	rig_ring(q);
	rig_run(&s->rig);
}

static uint8_t *write_word(struct rig_qp *q, struct stage *s, unsigned from, unsigned to, uint8_t flags)
{
	return wqe_rdma(q, WQE_OP_WRITE, s->word + from, 8, s->word + to, flags, 0);
}

static uint8_t *read_word(struct rig_qp *q, struct stage *s, unsigned from, unsigned to, uint8_t flags)
{
	return wqe_rdma(q, WQE_OP_READ, s->word + to, 8, s->word + from, flags, 0);
}

static void wait_for(struct rig_qp *q, const struct rig_cq *cq, uint32_t index)
{
	wqe_wait(q, hw_cqn(cq->cq), index, 0);
}

static void enable(struct rig_qp *q, const struct rig_qp *target, uint32_t index, uint8_t flags)
{
	wqe_enable(q, WQE_OP_SEND_EN, hw_qpn(target->qp), index, flags);
}

/* A NOP that copies the goal to word[1] once it is patched into a WRITE. Returns its opcode byte. */
static uint8_t *sleeper(struct rig_qp *q, struct stage *s)
{
	uint8_t *w = write_word(q, s, 0, 1, SIG);

	w[3] = WQE_OP_NOP;
	return w + 3;
}

static bool reached(const struct stage *s)
{
	return s->word[1] == GOAL;
}

/* ---- fetching --------------------------------------------------------------------------- */

static bool patched_after_enable(struct stage *s, bool right)
{
	uint8_t *opcode = sleeper(&s->a, s);

	if (!right)
		enable(&s->m, &s->a, 1, 0);
	wqe_rdma(&s->m, WQE_OP_WRITE, s->op, 1, opcode, SIG, 0);
	wait_for(&s->m, &s->mcq, 0);
	if (right)
		enable(&s->m, &s->a, 1, 0);
	go(s, &s->m);
	return reached(s);
}

/* A queue that patches itself and enables its own next WQE. */
static bool patched_own_queue(struct stage *s, bool right)
{
	wqe_rdma(&s->a, WQE_OP_WRITE, s->op, 1, s->a.sq + 3 * 64 + 3, SIG, 0);
	wait_for(&s->a, &s->acq, 0);
	enable(&s->a, &s->a, 4, 0);
	sleeper(&s->a, s);
	enable(&s->m, &s->a, right ? 3 : 4, 0);
	go(s, &s->m);
	return reached(s);
}

/* A WAIT holds the execution of what follows it, not its fetch. */
static bool patched_behind_wait(struct stage *s, bool right)
{
	uint8_t *opcode;

	wait_for(&s->p, &s->mcq, 0);
	if (right)
		enable(&s->p, &s->a, 1, 0);
	opcode = sleeper(right ? &s->a : &s->p, s);
	go(s, &s->p);
	wqe_rdma(&s->m, WQE_OP_WRITE, s->op, 1, opcode, SIG, 0);
	go(s, &s->m);
	return reached(s);
}

/* RECVs are fetched ahead as well: the second is patched before or after it is posted. */
static bool patched_recv(struct stage *s, bool right)
{
	uint8_t *second = s->m.rq + 64;

	rig_recv(&s->m, 1, s->word + 8, 8);
	if (!right)
		rig_recv(&s->m, 1, s->word + 8, 8);
	wqe_send(&s->m, WQE_OP_SEND, s->word, 8, 0, 0);
	go(s, &s->m);
	if (right)
		rig_recv(&s->m, 1, s->word + 8, 8);
	put_seg(second, s->word + 1, 8, s->rig.key);
	wqe_send(&s->m, WQE_OP_SEND, s->word, 8, 0, 0);
	go(s, &s->m);
	return reached(s);
}

/* ---- landing ---------------------------------------------------------------------------- */

static bool read_then_enable(struct stage *s, bool right)
{
	wqe_rdma(&s->m, WQE_OP_READ, sleeper(&s->a, s), 1, s->op, right ? SIG : 0, 0);
	if (right)
		wait_for(&s->m, &s->mcq, 0);
	enable(&s->m, &s->a, 1, 0);
	go(s, &s->m);
	return reached(s);
}

/* Its CQE changes nothing without a WAIT for it. */
static bool signalled_read_then_enable(struct stage *s, bool right)
{
	wqe_rdma(&s->m, WQE_OP_READ, sleeper(&s->a, s), 1, s->op, SIG, 0);
	enable(&s->m, &s->a, 1, right ? FENCE : 0);
	go(s, &s->m);
	return reached(s);
}

static bool read_then_use(struct stage *s, bool right)
{
	read_word(&s->m, s, 0, 8, 0);
	write_word(&s->m, s, 8, 1, SIG | (right ? WQE_FM_FENCE << WQE_FM_SHIFT : 0));
	go(s, &s->m);
	return reached(s);
}

/* The small fence is for what UMRs change, not for data. */
static bool small_fence(struct stage *s, bool right)
{
	read_word(&s->m, s, 0, 8, 0);
	write_word(&s->m, s, 8, 1,
		(uint8_t)(SIG | (right ? WQE_FM_SMALL_AND_FENCE : WQE_FM_SMALL) << WQE_FM_SHIFT));
	go(s, &s->m);
	return reached(s);
}

/* The old value of an atomic comes as late as the data of a READ. */
static bool atomic_then_use(struct stage *s, bool right)
{
	wqe_atomic(&s->m, WQE_OP_FETCH_ADD, s->word + 8, s->word, 1, 0, 0);
	write_word(&s->m, s, 8, 1, SIG | (right ? FENCE : 0));
	go(s, &s->m);
	return reached(s);
}

static bool masked_atomic_then_use(struct stage *s, bool right)
{
	wqe_masked_cas8(&s->m, s->word + 8, s->word, 1, GOAL, UINT64_MAX, UINT64_MAX, 0);
	write_word(&s->m, s, 8, 1, SIG | (right ? FENCE : 0));
	go(s, &s->m);
	return reached(s);
}

static bool write_then_enable(struct stage *s, bool right)
{
	wqe_rdma(&s->m, WQE_OP_WRITE, s->op, 1, sleeper(&s->a, s), SIG, 0);
	if (right)
		wait_for(&s->m, &s->mcq, 0);
	enable(&s->m, &s->a, 1, 0);
	go(s, &s->m);
	return reached(s);
}

/* A fence waits for READs and atomics, not for WRITEs; strong ordering does. */
static bool write_then_fenced_enable(struct stage *s, bool right)
{
	wqe_rdma(&s->m, WQE_OP_WRITE, s->op, 1, sleeper(&s->a, s), 0, 0);
	enable(&s->m, &s->a, 1, right ? WQE_FM_STRONG << WQE_FM_SHIFT : FENCE);
	go(s, &s->m);
	return reached(s);
}

/* A WRITE of one queue is seen by a READ of another only after its CQE. */
static bool write_then_other_queue(struct stage *s, bool right)
{
	write_word(&s->m, s, 0, 8, right ? SIG : 0);
	if (right)
		wait_for(&s->m, &s->mcq, 0);
	read_word(&s->a, s, 8, 1, SIG);
	enable(&s->m, &s->a, 1, 0);
	go(s, &s->m);
	return reached(s);
}

/* Two segments of one scatter list that overlap: the order is not defined. */
static bool recv_overlaps(struct stage *s, bool right)
{
	s->word[8] = 1;
	s->word[9] = GOAL;
	rig_recv(&s->m, 2, right ? s->word + 2 : s->word + 1, 8, s->word + 1, 8);
	wqe_send(&s->m, WQE_OP_SEND, s->word + 8, 16, SIG, 0);
	go(s, &s->m);
	return reached(s);
}

static bool read_overlaps(struct stage *s, bool right)
{
	uint8_t *w;

	s->word[8] = 1;
	s->word[9] = GOAL;
	w = wqe_raw(&s->m, WQE_OP_READ, 0, 4, 0, 0);
	put64(w + 16, (uintptr_t)(s->word + 8));
	put32(w + 24, s->rig.key);
	put_seg(w + 32, right ? s->word + 2 : s->word + 1, 8, s->rig.key);
	put_seg(w + 48, s->word + 1, 8, s->rig.key);
	wqe_nop(&s->m, 1, SIG);
	go(s, &s->m);
	return reached(s);
}

/* ---- completions and turns -------------------------------------------------------------- */

/* Two queues complete into one CQ: its first CQE need not be that of the queue which was first to run. */
static bool shared_cq(struct stage *s, bool right)
{
	add_x(s, &s->mcq, (struct rig_opt){.managed = true});
	rig_connect(&s->x, &s->x);
	read_word(&s->m, s, 0, 8, SIG);
	enable(&s->m, &s->x, 1, 0);
	wqe_nop(&s->x, 1, SIG);
	wait_for(&s->p, &s->mcq, right ? 1 : 0);
	write_word(&s->p, s, 8, 1, SIG);
	rig_ring(&s->p);
	go(s, &s->m);
	return reached(s);
}

/* Which of two enabled queues runs first is the device's choice. */
static bool order_of_queues(struct stage *s, bool right)
{
	write_word(&s->a, s, 0, 8, SIG);
	if (right)
		wait_for(&s->b, &s->acq, 0);
	read_word(&s->b, s, 8, 1, SIG);
	enable(&s->m, &s->a, 1, 0);
	enable(&s->m, &s->b, 2, 0);
	go(s, &s->m);
	return reached(s);
}

/* Which of two doorbells is heard first, too. */
static bool order_of_doorbells(struct stage *s, bool right)
{
	write_word(&s->m, s, 0, 8, SIG);
	if (right)
		wait_for(&s->p, &s->mcq, 0);
	read_word(&s->p, s, 8, 1, SIG);
	rig_ring(&s->m);
	rig_ring(&s->p);
	rig_run(&s->rig);
	return reached(s);
}

/* The index of a WAIT is inclusive: the n-th CQE has number n - 1. */
static bool wait_for_one_less(struct stage *s, bool right)
{
	write_word(&s->m, s, 1, 1, SIG);
	wqe_rdma(&s->m, WQE_OP_WRITE, s->op, 1, sleeper(&s->a, s), SIG, 0);
	wait_for(&s->m, &s->mcq, right ? 1 : 0);
	enable(&s->m, &s->a, 1, 0);
	go(s, &s->m);
	return reached(s);
}

/* The index of a SEND_EN is exclusive and counts WQEBBs, not WQEs. */
static bool enable_counts_wqes(struct stage *s, bool right)
{
	wqe_nop(&s->a, 8, 0);
	write_word(&s->a, s, 0, 1, SIG);
	enable(&s->m, &s->a, right ? 3 : 2, 0);
	go(s, &s->m);
	return reached(s);
}

/* Success without a CQE counts for no WAIT. */
static bool wait_for_unsignalled(struct stage *s, bool right)
{
	write_word(&s->m, s, 0, 8, right ? SIG : 0);
	wait_for(&s->p, &s->mcq, 0);
	read_word(&s->p, s, 8, 1, SIG);
	rig_ring(&s->p);
	go(s, &s->m);
	return reached(s);
}

/* ---- checks ----------------------------------------------------------------------------- */

/* The second lap of a ring needs new indices. */
static bool second_lap(struct stage *s, bool right)
{
	for (unsigned i = 0; i < 15; i++)
		wqe_nop(&s->a, 1, 0);
	write_word(&s->a, s, 0, 1, SIG);
	enable(&s->m, &s->a, 16, 0);
	wait_for(&s->m, &s->acq, 0);
	go(s, &s->m);
	s->word[1] = 0;
	for (unsigned i = 0; right && i < 16; i++)
		put32(s->a.sq + 64 * i, (16 + i) << 8 | s->a.sq[64 * i + 3]);
	enable(&s->m, &s->a, 32, 0);
	go(s, &s->m);
	return reached(s);
}

/* A key in the bits of the queue number, as if it were not checked. */
static bool operand_in_qpn(struct stage *s, bool right)
{
	uint8_t *w = write_word(&s->m, s, 0, 1, SIG);

	if (!right)
		put32(w + 4, 0xabcdef00u | w[7]);
	go(s, &s->m);
	return reached(s);
}

/* A byte count of 0 is 2^31 bytes, not none. */
static bool empty_segment(struct stage *s, bool right)
{
	uint8_t *w = wqe_raw(&s->m, WQE_OP_WRITE, 0, right ? 3 : 4, SIG, 0);

	put64(w + 16, (uintptr_t)(s->word + 1));
	put32(w + 24, s->rig.key);
	put_seg(w + 32, s->word, 8, s->rig.key);
	if (!right)
		put_seg(w + 48, s->word, 0, s->rig.key);
	go(s, &s->m);
	return reached(s);
}

/* A bit of the opmod left over from an operand asks for a calculation, which there may not be. */
static bool operand_in_opmod(struct stage *s, bool right)
{
	uint8_t *w = write_word(&s->m, s, 0, 1, SIG);

	w[0] = right ? 0 : WQE_CALC_XOR + 1;
	go(s, &s->m);
	return reached(s);
}

static bool wait_without_master(struct stage *s, bool right)
{
	add_x(s, &s->pcq, (struct rig_opt){.no_master = !right});
	rig_connect(&s->x, &s->x);
	wait_for(&s->x, &s->mcq, 0);
	write_word(&s->x, s, 0, 1, SIG);
	wqe_nop(&s->m, 1, SIG);
	rig_ring(&s->x);
	go(s, &s->m);
	return reached(s);
}

static bool enable_of_unmanaged(struct stage *s, bool right)
{
	if (!right)
		enable(&s->m, &s->p, 1, 0);
	write_word(&s->p, s, 0, 1, SIG);
	write_word(&s->m, s, 0, 8, SIG);
	rig_ring(&s->p);
	go(s, &s->m);
	return reached(s) && s->word[8] == GOAL;
}

/* SEND_EN may name queues of its own PD only. */
static bool enable_across_pds(struct stage *s, bool right)
{
	uint32_t own = s->rig.pdn, pdn = own;

	if (!right)
		assert_int_equal(hw_pd_alloc(s->rig.dev, &pdn), 0);
	s->rig.pdn = pdn;
	add_x(s, &s->acq, (struct rig_opt){.managed = true});
	s->rig.pdn = own;
	rig_connect(&s->x, &s->x);
	wqe_nop(&s->x, 1, SIG);
	enable(&s->m, &s->x, 1, 0);
	wait_for(&s->m, &s->acq, 0);
	write_word(&s->m, s, 0, 1, SIG);
	go(s, &s->m);
	if (pdn != own) {
		rig_destroy(&s->x);
		s->has_x = false;
		assert_int_equal(hw_pd_free(s->rig.dev, pdn), 0);
	}
	return reached(s);
}

/* Packets that do not carry the number that the other side expects are lost. */
static bool other_psn(struct stage *s, bool right)
{
	struct hw_qp_mod mod;

	add_x(s, &s->pcq, (struct rig_opt){0});
	rig_default_mod(&mod);
	mod.dest_qpn = hw_qpn(s->x.qp);
	mod.timeout = 1;
	mod.retry_cnt = 0;
	mod.rq_psn = right ? mod.sq_psn : mod.sq_psn + 1;
	rig_qp_to(&s->x, HW_INIT);
	assert_int_equal(hw_qp_modify(s->rig.dev, s->x.qp, HW_RTR, &mod), 0);
	rig_qp_to(&s->x, HW_RTS);
	write_word(&s->x, s, 0, 1, SIG);
	go(s, &s->x);
	return reached(s);
}

/* More READs at a time than the responder has resources for. */
static bool too_many_reads(struct stage *s, bool right)
{
	struct hw_qp_mod mod = {.mask = HW_QP_RD_ATOMIC | HW_QP_DEST_RD_ATOMIC,
		.max_rd_atomic = right ? 1 : 16,
		.max_dest_rd_atomic = 1};

	assert_int_equal(hw_qp_modify(s->rig.dev, s->m.qp, HW_RTS, &mod), 0);
	read_word(&s->m, s, 0, 8, 0);
	read_word(&s->m, s, 0, 1, SIG);
	go(s, &s->m);
	return reached(s);
}

/* Up to 32 bytes stay in the CQE, whatever the RECV has, unless the QP was made without that. */
static bool scatter_to_cqe(struct stage *s, bool right)
{
	add_x(s, &s->pcq, (struct rig_opt){.cs_res = right ? 0 : 1});
	rig_connect(&s->x, &s->x);
	rig_recv(&s->x, 1, s->word + 1, 8);
	wqe_send(&s->x, WQE_OP_SEND, s->word, 8, SIG, 0);
	go(s, &s->x);
	return reached(s);
}

/* ---- the table -------------------------------------------------------------------------- */

enum option { NEVER, LENIENT, NO_INDEX_CHECK, NO_QPN_CHECK, OPTIONS };

static const struct rule {
	const char *name;
	bool (*program)(struct stage *s, bool right);
	bool always;          /* the wrong one fails under every seed */
	enum option forgives; /* where it always succeeds */
} rules[] = {
	{"an enabled WQE may have been fetched", patched_after_enable, false, LENIENT},
	{"so may the next one of the own queue", patched_own_queue, false, LENIENT},
	{"a WAIT does not hold back a fetch", patched_behind_wait, false, LENIENT},
	{"a posted RECV may have been fetched", patched_recv, false, LENIENT},
	{"the data of a READ are late", read_then_enable, false, LENIENT},
	{"also those of a signalled READ", signalled_read_then_enable, false, LENIENT},
	{"a WQE does not wait for an earlier READ", read_then_use, false, LENIENT},
	{"the small fence is no fence for data", small_fence, false, LENIENT},
	{"the old value of an atomic is late", atomic_then_use, false, LENIENT},
	{"so is that of a masked atomic", masked_atomic_then_use, false, LENIENT},
	{"a WRITE is placed late", write_then_enable, false, LENIENT},
	{"a fence does not wait for WRITEs", write_then_fenced_enable, false, LENIENT},
	{"other queues see a WRITE after its CQE", write_then_other_queue, false, LENIENT},
	{"a RECV is filled in any order", recv_overlaps, false, LENIENT},
	{"a READ response too", read_overlaps, false, LENIENT},
	{"a CQE is late", shared_cq, false, LENIENT},
	{"enabled queues run in any order", order_of_queues, false, LENIENT},
	{"so do rung ones", order_of_doorbells, false, NEVER},
	{"a WAIT is inclusive", wait_for_one_less, false, LENIENT},
	{"SEND_EN counts WQEBBs", enable_counts_wqes, true, NEVER},
	{"only CQEs count for a WAIT", wait_for_unsignalled, true, NEVER},
	{"the WQE index is checked", second_lap, true, NO_INDEX_CHECK},
	{"the queue number is checked", operand_in_qpn, true, NO_QPN_CHECK},
	{"a byte count of 0 is not none", empty_segment, true, LENIENT},
	{"the opmod is looked at", operand_in_opmod, true, NEVER},
	{"a WAIT needs cd_master", wait_without_master, true, LENIENT},
	{"SEND_EN needs a managed queue", enable_of_unmanaged, true, LENIENT},
	{"SEND_EN stays in its PD", enable_across_pds, true, LENIENT},
	{"PSNs must agree", other_psn, true, LENIENT},
	{"READs need the responder's resources", too_many_reads, false, LENIENT},
	{"short messages stay in the CQE", scatter_to_cqe, true, NEVER},
};

static void open_stage(struct stage *s, enum option option)
{
	struct hw_config cfg = {.lenient = option == LENIENT,
		.no_index_check = option == NO_INDEX_CHECK,
		.no_qpn_check = option == NO_QPN_CHECK};

	rig_open(&s->rig, &cfg);
	s->base = s->rig.used;
}

static bool play(struct stage *s, const struct rule *rule, uint64_t seed, bool right)
{
	bool ok;

	set_up(s, seed);
	ok = rule->program(s, right);
	tear_down(s);
	return ok;
}

static void strict(void **state)
{
	struct stage s;

	open_stage(&s, NEVER);
	for (size_t i = 0; i < COUNT(rules); i++) {
		const struct rule *rule = &rules[i];
		unsigned bad = 0, first = 0;

		for (unsigned seed = 0; seed < seeds; seed++) {
			if (!play(&s, rule, seed, true))
				fail_msg("%s: the right program fails under seed %u", rule->name, seed);
			if (!play(&s, rule, seed, false) && !bad++)
				first = seed;
		}
		print_message("%-42s wrong: fails under %5u of %u seeds, first %u\n", rule->name, bad, seeds,
			first);
		if (rule->always)
			assert_int_equal(bad, seeds);
		else
			assert_in_range(bad, seeds / 200, seeds - 1);
	}
	rig_close(&s.rig);
}

static void forgiven(void **state)
{
	for (enum option option = LENIENT; option < OPTIONS; option++) {
		struct stage s;

		open_stage(&s, option);
		for (size_t i = 0; i < COUNT(rules); i++)
			for (unsigned seed = 0; seed < seeds / 100; seed++) {
				const struct rule *rule = &rules[i];

				if (!play(&s, rule, seed, true))
					fail_msg("%s: right, fails under option %d", rule->name, option);
				if (rule->forgives == option && !play(&s, rule, seed, false))
					fail_msg("%s: wrong, fails under option %d", rule->name, option);
			}
		rig_close(&s.rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict),
		cmocka_unit_test(forgiven),
	};

	if (argc > 1)
		seeds = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
