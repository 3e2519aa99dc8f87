/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session of an unknown offload consists of is put together from its slot, and only if nothing is
 * missing. */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/foreign.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/session.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { NUMBER = 7, SLOTS = 128, STRIDE = 64, PROGRESS = 0x20040, LOG = 0x20080 };

static struct ledger_object cq(unsigned part, uint64_t offset)
{
	return (struct ledger_object){.type = LEDGER_CQ,
		.offset = offset,
		.db_off = part * 128,
		.entries = 64,
		.cookie = NUMBER << SESSION_COOKIE_BITS | part};
}

static struct ledger_object qp(unsigned part, uint64_t offset)
{
	return (struct ledger_object){.type = LEDGER_QP,
		.offset = offset,
		.db_off = part * 128 + 64,
		.entries = part ? 256 : 4 * SLOTS,
		.rq_entries = part ? 0 : SLOTS,
		.rq_stride = part ? 0 : STRIDE,
		.cookie = NUMBER << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | part};
}

/* Two queues, with what renews them */
static struct ledger_slot complete(void)
{
	struct ledger_slot slot = {.state = LEDGER_LIVE, .kind = LEDGER_SESSION, .block = {0, 0x30000}};
	const struct ledger_object objects[] = {{.type = LEDGER_UMEM}, cq(0, 0x1000), cq(1, 0x2000),
		cq(SESSION_RECYCLER, 0x3000), cq(SESSION_REPLIES, 0x4000), qp(0, 0x6000), qp(1, 0x10000),
		qp(SESSION_RECYCLER, 0x18000)};

	memcpy(slot.object, objects, sizeof(objects));
	slot.session = (struct ledger_session){.number = NUMBER,
		.slots = SLOTS,
		.recycled = 1,
		.offload = "gone",
		.recycler = {.progress = PROGRESS,
			.recv_en = {1, 2, 3, 4, 5, 6, 7, 255},
			.request_bytes = 18,
			.reply_bytes = 200,
			.wqes = 12,
			.log = LOG,
			.reply_wqebbs = 4,
			.nmessages = 2,
			.messages = {
				{.wqebb = 1, .segments = 1, .conditional = 1}, {.wqebb = 3, .segments = 2}}}};
	return slot;
}

static void whole(void **state)
{
	const struct ledger_slot slot = complete();
	const struct queue_layout *l;
	struct foreign *f;

	assert_int_equal(foreign_new(&f, &slot, NULL, "it is gone"), 0);
	l = &f->layout;
	assert_string_equal(f->why, "it is gone");
	assert_string_equal(f->offload.conf->name, "gone");
	assert_int_equal(f->offload.conf->on_error[VERDICT_STEP].action, VERDICT_TERMINATE);
	assert_int_equal(f->offload.img->nqueues, 2);
	assert_int_equal(f->offload.img->arg_len, 18);
	assert_int_equal(f->offload.outcome.longest, 200);
	assert_int_equal(f->offload.outcome.wqes, 12);
	assert_int_equal(layouts_bytes(&f->offload, l), 0x30000);
	assert_int_equal(l->lanes_off + l->recycling.progress, PROGRESS);
	assert_int_equal(l->lanes_off + l->recycling.log, LOG);
	assert_int_equal(l->recycling.recv_en[7], 255);
	assert_int_equal(l->rq_stride, STRIDE);
	assert_int_equal(l->queue[0].ring_off, 0x6000 + SLOTS * STRIDE);
	assert_int_equal(l->queue[1].cqes_off, 0x2000);
	assert_int_equal(l->queue[1].qp_db_off, 192);
	assert_int_equal(l->recycler.ring_wqebbs, 256);
	assert_int_equal(l->replies.cq_log_size, 6);
	foreign_free(f);
}

/* Whatever is missing, or is of something else */
static void damaged(void **state)
{
	struct foreign *f;

	for (unsigned i = 1; i < 8; i++) {
		struct ledger_slot slot = complete();

		slot.object[i].type = LEDGER_NONE;
		assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
		slot = complete();
		slot.object[i].cookie += 1 << SESSION_COOKIE_BITS;
		assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
		slot = complete();
		slot.object[i].cookie ^= SESSION_COOKIE_QP;
		assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
		slot = complete();
		slot.object[i].cookie |= 0x7f;
		assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	}
	for (unsigned i = 0; i < 8; i++) {
		struct ledger_slot slot = complete();

		slot.session.recycler.recv_en[i] = 256;
		assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	}
}

/* The lengths of replies, where the ring or the log has them */
static void lengths(void **state)
{
	struct ledger_slot slot = complete();
	uint8_t replies[SLOTS * 4 * 64] = {0}, *second = replies + (7 * 4 + 1) * 64,
				    *last = replies + (7 * 4 + 3) * 64;
	struct outcome out;
	struct foreign *f;

	assert_int_equal(foreign_new(&f, &slot, NULL, ""), 0);
	last[WQE_OPCODE] = WQE_OP_WRITE;
	wqe_put32(last + WQE_RDMA_SGE + WQE_SGE_LEN, 5);
	wqe_put32(last + WQE_RDMA_SGE + WQE_DS + WQE_SGE_LEN, 6);
	out = outcome_read(&f->offload.outcome, replies, 7);
	assert_false(out.hit);
	assert_int_equal(out.bytes, 11);
	second[WQE_OPCODE] = WQE_OP_WRITE;
	wqe_put32(second + WQE_RDMA_SGE + WQE_SGE_LEN, 100);
	out = outcome_read(&f->offload.outcome, replies, 7);
	assert_true(out.hit);
	assert_int_equal(out.bytes, 111);
	foreign_free(f);

	slot.session.recycler.sends = 1 << 1;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), 0);
	last[WQE_OPCODE] = WQE_OP_SEND;
	wqe_put32(last + WQE_SEND_SGE + WQE_SGE_LEN, 4);
	assert_int_equal(outcome_read(&f->offload.outcome, replies, 7).bytes, 109);
	foreign_free(f);
}

/* No place outside of the block, nor of an instance */
static void wrong_lengths(void **state)
{
	struct ledger_slot slot = complete();
	struct ledger_recycler *r = &slot.session.recycler;
	const struct ledger_recycler right = *r;
	struct foreign *f;

	r->nmessages = LEDGER_MESSAGES + 1;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->reply_wqebbs = 5; /* the ring has 256 */
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->log = slot.block.size - SLOTS * 4 * 64 + 1;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	r->log = UINT64_MAX - 100;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->messages[1].wqebb = 4;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->messages[1].segments = 3;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->messages[0].conditional = 2;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->reply_bytes = 0; /* requests would cost nothing */
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	*r = right;
	r->sends = 1 << 1; /* the segments of a SEND begin earlier: one more fits, and no two */
	r->messages[1].segments = 4;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), -EBADMSG);
	r->messages[1].segments = 3;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), 0);
	foreign_free(f);
	*r = right;
	r->nmessages = 0; /* what is in the others does not matter */
	r->log = UINT32_MAX;
	assert_int_equal(foreign_new(&f, &slot, NULL, ""), 0);
	foreign_free(f);
}

/* Of its program the next daemon knows the queues, and not the steps */
static void blamed_by_queue(void **state)
{
	const struct rnic_cqe cqe = {.error = true, .syndrome = CQE_SYND_LOCAL_PROT, .vendor = 0x51};
	struct ledger_slot slot = complete();
	struct session s = {0};
	struct verdict v;

	slot.object[8] = cq(2, 0x5000);
	slot.object[9] = qp(2, 0x14000);
	assert_int_equal(foreign_new(&s.foreign, &slot, NULL, ""), 0);
	s.offload = &s.foreign->offload;
	session_fault(&s, 1, &cqe, &v);
	assert_string_equal(v.text, "a step in queue 1 failed: local protection error (0x51)");
	session_fault(&s, 2, &cqe, &v);
	assert_string_equal(v.text, "a step in queue 2 failed: local protection error (0x51)");
	foreign_free(s.foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(damaged),
		cmocka_unit_test(lengths), cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(blamed_by_queue)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
