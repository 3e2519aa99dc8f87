/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on demand: each kind, what triggers it, how often it strikes, and what goes on afterwards. */
#include "softcx/hw/fault.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "softcx/hw/turns.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

struct pair {
	struct rig rig;
	struct rig_cq scq[2], rcq[2];
	struct rig_qp q[2];
	uint8_t *src, *dst;
	struct hw_dev_watch watch;
	int events[8];
	unsigned nevents;
};

static void on_event(void *arg, int event)
{
	struct pair *p = arg;

	assert_true(p->nevents < 8);
	p->events[p->nevents++] = event;
}

/* @wire: by the address of the device, through its port; else inside the NIC. */
static void open_pair(struct pair *p, uint64_t seed, bool wire)
{
	struct hw_config cfg = {.seed = seed};
	uint8_t gid[16] = {0xfe, 0x80, [15] = 7};

	rig_open_gid(&p->rig, &cfg, 7);
	for (int i = 0; i < 2; i++) {
		rig_cq_new(&p->rig, &p->scq[i], 6);
		rig_cq_new(&p->rig, &p->rcq[i], 6);
		rig_qp_new(&p->rig, &p->q[i], &p->scq[i], &p->rcq[i]);
	}
	for (int i = 0; i < 2; i++)
		rig_qp_connect_to(&p->q[i], hw_qpn(p->q[1 - i].qp), wire ? gid : NULL);
	p->src = rig_alloc(&p->rig, 4096);
	p->dst = rig_alloc(&p->rig, 4096);
	p->nevents = 0;
	p->watch = (struct hw_dev_watch){.on_event = on_event, .arg = p};
	hw_dev_watch(p->rig.dev, &p->watch);
}

static void close_pair(struct pair *p)
{
	hw_dev_unwatch(&p->watch);
	for (int i = 0; i < 2; i++)
		rig_destroy(&p->q[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hw_cq_destroy(p->rig.dev, p->scq[i].cq), 0);
		assert_int_equal(hw_cq_destroy(p->rig.dev, p->rcq[i].cq), 0);
	}
	rig_close(&p->rig);
}

static void go(struct pair *p)
{
	rig_ring(&p->q[0]);
	rig_run(&p->rig);
}

static void add(struct pair *p, struct hw_fault f)
{
	static uint32_t id;

	f.id = ++id;
	assert_int_equal(hw_fault_add(p->rig.dev, &f), 0);
}

static uint64_t struck(const struct pair *p)
{
	return hw_fault_next(p->rig.dev, NULL)->struck;
}

static void write_one(struct pair *p)
{
	wqe_rdma(&p->q[0], WQE_OP_WRITE, p->src, 8, p->dst, SIG, 0);
}

static void drop(void **state)
{
	struct pair p;

	open_pair(&p, 1, false);
	add(&p, (struct hw_fault){.kind = HW_FAULT_DROP, .opcode = -1, .at = 2, .count = 2});
	wqe_nop(&p.q[0], 1, SIG); /* no packet: not counted */
	write_one(&p);
	write_one(&p);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_null(rig_cq_next(&p.scq[0]));
	rig_settle(&p.rig); /* lost twice, and the retry count of the rig is 2 */
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(struck(&p), 2);
	close_pair(&p);

	open_pair(&p, 1, false);
	add(&p, (struct hw_fault){.kind = HW_FAULT_DROP, .opcode = WQE_OP_WRITE, .at = 1, .count = 3});
	memset(p.src, 1, 8);
	write_one(&p);
	write_one(&p);
	go(&p);
	rig_settle(&p.rig);
	rig_expect_error(&p.scq[0], CQE_SYND_RETRY);
	rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
	assert_int_equal(p.dst[0], 0);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_RTS);
	close_pair(&p);
}

/* Losses depend only on the seed. */
static uint32_t losses(uint64_t seed)
{
	struct hw_qp_mod mod = {.mask = HW_QP_RETRY, .retry_cnt = 7};
	uint32_t lost = 0;
	struct pair p;

	open_pair(&p, seed, false);
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
	assert_int_equal(hw_fault_add(p.rig.dev,
				 &(struct hw_fault){
					 .id = 5, .kind = HW_FAULT_DROP, .opcode = -1, .probability = 0.25}),
		0);
	for (int i = 0; i < 32; i++) {
		uint64_t before = struck(&p);

		write_one(&p);
		go(&p);
		rig_settle(&p.rig);
		rig_expect(&p.scq[0], CQE_OP_REQ);
		lost |= (uint32_t)(struck(&p) > before) << i;
	}
	close_pair(&p);
	return lost;
}

static void chance(void **state)
{
	uint32_t one = losses(1);

	assert_int_not_equal(one, 0);
	assert_int_not_equal(one, UINT32_MAX);
	assert_int_equal(one, losses(1));
	assert_int_not_equal(one, losses(2));
}

static void delay(void **state)
{
	struct pair p;

	open_pair(&p, 1, false);
	add(&p, (struct hw_fault){
			.kind = HW_FAULT_DELAY, .opcode = -1, .at = 1, .count = 1, .delay_ns = 300000000});
	wqe_nop(&p.q[0], 1, SIG);
	write_one(&p);
	go(&p);
	assert_null(rig_cq_next(&p.scq[0]));
	/* a fault that is gone has begun its pause all the same, and the next one starts afresh */
	assert_int_equal(hw_fault_clear(p.rig.dev, 0), 1);
	rig_settle(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	add(&p, (struct hw_fault){
			.kind = HW_FAULT_DELAY, .opcode = -1, .at = 1, .count = 0, .delay_ns = 1000});
	write_one(&p);
	write_one(&p);
	go(&p);
	rig_settle(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(struck(&p), 2);
	close_pair(&p);
}

enum { WORDS = 64, BLOCK = 8 * WORDS };

/* Reads one block of words of one value, and another value takes their place in the middle. Returns a bit for
 * each word that arrives with the second. */
static uint64_t split_block(uint64_t seed, uint8_t opcode, uint32_t offset)
{
	uint64_t before, after, word, seen = 0;
	struct pair p;

	open_pair(&p, seed, false);
	/* the test ends the pause */
	add(&p, (struct hw_fault){.kind = HW_FAULT_SPLIT,
			.opcode = opcode,
			.at = 1,
			.count = 1,
			.delay_ns = 60000000000});
	memset(p.src, 1, BLOCK + offset);
	memcpy(&before, p.src, 8);
	wqe_nop(&p.q[0], 1, SIG);
	if (opcode == WQE_OP_SEND) {
		rig_recv(&p.q[1], 1, p.dst, BLOCK);
		wqe_send(&p.q[0], WQE_OP_SEND, p.src + offset, BLOCK, SIG, 0);
	} else if (opcode == WQE_OP_READ) {
		wqe_rdma(&p.q[0], WQE_OP_READ, p.dst, BLOCK, p.src + offset, SIG, 0);
	} else {
		wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src + offset, BLOCK, p.dst, SIG, 0);
	}
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_null(rig_cq_next(&p.scq[0]));
	memset(p.src, 2, BLOCK + offset);
	memcpy(&after, p.src, 8);
	hw_qp_resume(p.q[0].qp);
	rig_run(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(struck(&p), 1);
	for (int i = 0; i < WORDS; i++) {
		memcpy(&word, p.dst + 8 * i, 8);
		if (offset % 8 == 0)
			assert_true(word == before || word == after);
		seen |= (uint64_t)(word != before) << i;
	}
	/* the next one is read at once */
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, BLOCK, p.dst, SIG, 0);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_memory_equal(p.dst, p.src, BLOCK);
	close_pair(&p);
	return seen;
}

static void split(void **state)
{
	static const uint8_t opcodes[] = {WQE_OP_READ, WQE_OP_SEND, WQE_OP_WRITE};

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		uint64_t some = 0, all = UINT64_MAX;
		unsigned lines = 0; /* bits: of the first moment, of both, of the second */

		for (uint64_t seed = 1; seed <= 32; seed++) {
			uint64_t seen = split_block(seed, opcodes[i], 0);

			assert_int_equal(seen, split_block(seed, opcodes[i], 0));
			some |= seen;
			all &= seen;
			for (int line = 0; line < WORDS; line += 8)
				lines |= 1u
					 << (seen >> line & 0xff ? 1 + ((seen >> line & 0xff) == 0xff) : 0);
		}
		assert_int_equal(some, UINT64_MAX);
		assert_int_equal(all, 0);
		assert_int_equal(lines, 7);
		split_block(1, opcodes[i], 3);
	}
}

/* A queue that is reset in the middle of a READ begins afresh */
static void split_and_reset(void **state)
{
	struct pair p;

	open_pair(&p, 1, false);
	add(&p, (struct hw_fault){
			.kind = HW_FAULT_SPLIT, .opcode = -1, .at = 1, .count = 1, .delay_ns = 60000000000});
	memset(p.src, 1, 64);
	wqe_rdma(&p.q[0], WQE_OP_READ, p.dst, 64, p.src, SIG, 0);
	go(&p);
	assert_null(rig_cq_next(&p.scq[0]));
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RST, &(struct hw_qp_mod){0}), 0);
	rig_settle(&p.rig);
	assert_null(rig_cq_next(&p.scq[0]));
	assert_int_equal(p.dst[0], 0);
	close_pair(&p);
}

static void rnr(void **state)
{
	struct hw_qp_mod mod = {.mask = HW_QP_RNR_RETRY, .rnr_retry = 1};

	for (int exhausted = 0; exhausted < 2; exhausted++) {
		struct pair p;

		open_pair(&p, 1, false);
		assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
		add(&p, (struct hw_fault){
				.kind = HW_FAULT_RNR, .opcode = -1, .at = 1, .count = exhausted ? 2 : 1});
		rig_recv(&p.q[1], 1, p.dst, 8);
		write_one(&p); /* takes no RECV: not counted */
		wqe_send(&p.q[0], WQE_OP_SEND, p.src, 8, SIG, 0);
		go(&p);
		rig_expect(&p.scq[0], CQE_OP_REQ);
		rig_settle(&p.rig);
		if (exhausted) {
			rig_expect_error(&p.scq[0], CQE_SYND_RNR_RETRY);
			assert_null(rig_cq_next(&p.rcq[1]));
		} else {
			rig_expect(&p.scq[0], CQE_OP_REQ);
			rig_expect(&p.rcq[1], CQE_OP_RESP_SEND);
		}
		close_pair(&p);
	}
}

/* Faults for the next attempts, one each, in this order: L is a loss, R an RNR NAK */
static void trouble(struct pair *p, const char *attempts)
{
	for (; *attempts; attempts++)
		add(p, (struct hw_fault){.kind = *attempts == 'L' ? HW_FAULT_DROP : HW_FAULT_RNR,
			       .opcode = -1,
			       .at = 1,
			       .count = 1});
}

/* Losses and RNR NAKs are counted apart, and neither gives the other new retries; an acknowledgement does */
static void retries_are_counted_apart(void **state)
{
	static const struct {
		const char *first, *second; /* trouble of two messages */
		uint8_t syndrome;           /* of the second; 0: both arrive */
	} t[] = {
		{"LRLR", "", 0},
		{"LRLR", "RRLL", 0},
		{"", "LRLRL", CQE_SYND_RETRY},
		{"RRLL", "RLLRL", CQE_SYND_RETRY},
		{"LLRR", "RLRLR", CQE_SYND_RNR_RETRY},
		{"LLRR", "RRR", CQE_SYND_RNR_RETRY},
	};
	struct hw_qp_mod mod = {.mask = HW_QP_RETRY | HW_QP_RNR_RETRY, .retry_cnt = 2, .rnr_retry = 2};

	for (unsigned i = 0; i < COUNT(t); i++) {
		struct pair p;

		open_pair(&p, 1, false);
		assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
		for (unsigned m = 0; m < 2; m++) {
			trouble(&p, m ? t[i].second : t[i].first);
			rig_recv(&p.q[1], 1, p.dst, 8);
			wqe_send(&p.q[0], WQE_OP_SEND, p.src, 8, SIG, 0);
			go(&p);
			rig_settle(&p.rig);
			if (m && t[i].syndrome)
				rig_expect_error(&p.scq[0], t[i].syndrome);
			else
				rig_expect(&p.scq[0], CQE_OP_REQ);
		}
		close_pair(&p);
	}
}

static void error(void **state)
{
	static const struct {
		uint8_t syndrome;
		bool peer;
		unsigned event; /* of the peer */
	} t[] = {
		{CQE_SYND_LOCAL_PROT, false, 0},
		{CQE_SYND_RETRY, false, 0},
		{CQE_SYND_REMOTE_OP, true, 0},
		{CQE_SYND_REMOTE_ACCESS, true, HW_EV_QP_ACCESS_ERR},
		{CQE_SYND_REMOTE_INVAL, true, HW_EV_QP_REQ_ERR},
	};

	for (size_t i = 0; i < COUNT(t); i++) {
		struct pair p;

		open_pair(&p, 1, false);
		add(&p, (struct hw_fault){.kind = HW_FAULT_ERROR,
				.opcode = -1,
				.qpn = hw_qpn(p.q[0].qp),
				.at = 2,
				.count = 1,
				.syndrome = t[i].syndrome});
		write_one(&p);
		write_one(&p);
		write_one(&p);
		go(&p);
		rig_expect(&p.scq[0], CQE_OP_REQ);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], t[i].syndrome)), 1);
		rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
		assert_int_equal(hw_qp_state(p.q[0].qp), HW_ERR);
		assert_int_equal(hw_qp_state(p.q[1].qp), t[i].peer ? HW_ERR : HW_RTS);
		assert_int_equal(p.q[1].events ? p.q[1].last_event : 0, t[i].event);
		close_pair(&p);
	}
}

static void qp_error(void **state)
{
	struct pair p;

	for (int at_once = 0; at_once < 2; at_once++) {
		open_pair(&p, 1, false);
		rig_recv(&p.q[0], 1, p.dst, 8);
		add(&p, (struct hw_fault){.kind = HW_FAULT_QP_ERROR,
				.opcode = -1,
				.qpn = hw_qpn(p.q[0].qp),
				.at = at_once ? 0 : 1,
				.count = 1});
		write_one(&p);
		go(&p);
		rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
		rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH);
		assert_int_equal(p.q[0].last_event, HW_EV_QP_FATAL);
		assert_int_equal(p.q[0].events, 1);
		assert_int_equal(hw_qp_state(p.q[1].qp), HW_RTS);
		close_pair(&p);
	}
}

static void port(void **state)
{
	struct hw_qp_mod mod = {.mask = HW_QP_TIMEOUT, .timeout = 8};
	struct pair p;

	open_pair(&p, 1, true); /* up again in time */
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
	write_one(&p);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_true(hw_port_up(p.rig.dev));
	add(&p, (struct hw_fault){.kind = HW_FAULT_PORT_DOWN, .opcode = -1, .at = 2, .count = 1});
	write_one(&p);
	write_one(&p); /* finds the port down */
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_null(rig_cq_next(&p.scq[0]));
	assert_false(hw_port_up(p.rig.dev));
	add(&p, (struct hw_fault){.kind = HW_FAULT_PORT_DOWN, .opcode = -1}); /* it is */
	add(&p, (struct hw_fault){.kind = HW_FAULT_PORT_UP, .opcode = -1});
	rig_settle(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(p.nevents, 2);
	assert_int_equal(p.events[0], HW_EV_PORT_DOWN);
	assert_int_equal(p.events[1], HW_EV_PORT_UP);
	add(&p, (struct hw_fault){.kind = HW_FAULT_PORT_DOWN, .opcode = -1}); /* for good */
	write_one(&p);
	go(&p);
	rig_settle(&p.rig);
	rig_expect_error(&p.scq[0], CQE_SYND_RETRY);
	close_pair(&p);

	open_pair(&p, 1, false); /* what never leaves the NIC needs no port */
	add(&p, (struct hw_fault){.kind = HW_FAULT_PORT_DOWN, .opcode = -1});
	write_one(&p);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	close_pair(&p);
}

static void mkey_revoke(void **state)
{
	struct hw_fault f = {.kind = HW_FAULT_MKEY_REVOKE, .opcode = -1};
	struct pair p;

	for (int remote = 0; remote < 2; remote++) {
		struct hw_mkey_attr attr = {.iova = 0x1000, .len = 64, .access = 15};
		uint8_t *w;
		uint32_t key;

		open_pair(&p, 1, false);
		attr.pdn = p.rig.pdn;
		attr.mem = &p.rig.mem;
		attr.mem_off = rig_off(&p.rig, p.dst);
		assert_int_equal(hw_mkey_create(p.rig.dev, &attr, &key), 0);
		for (int i = 0; i < 2; i++) {
			write_one(&p);
			w = p.q[0].sq + (size_t)64 * i;
			put64(w + (remote ? 16 : 40), 0x1000);
			put32(w + (remote ? 24 : 36), key);
		}
		f.key = key ^ 1;
		f.at = 0;
		assert_int_equal(hw_fault_add(p.rig.dev, &f), -ENOENT);
		f.key = key;
		f.at = 2;
		add(&p, f);
		go(&p);
		rig_expect(&p.scq[0], CQE_OP_REQ);
		rig_expect_error(&p.scq[0], remote ? CQE_SYND_REMOTE_ACCESS : CQE_SYND_LOCAL_PROT);
		assert_int_equal(hw_mkey_destroy(p.rig.dev, key), 0);
		close_pair(&p);
	}
}

static void device_fatal(void **state)
{
	struct pair p;

	open_pair(&p, 1, false);
	rig_recv(&p.q[1], 1, p.dst, 8);
	write_one(&p);
	write_one(&p);
	add(&p, (struct hw_fault){.kind = HW_FAULT_DEVICE_FATAL, .opcode = -1, .at = 2, .count = 1});
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
	rig_expect_error(&p.rcq[1], CQE_SYND_FLUSH);
	assert_int_equal(p.nevents, 1);
	assert_int_equal(p.events[0], HW_EV_DEVICE_FATAL);
	assert_int_equal(hw_qp_state(p.q[0].qp), HW_ERR);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_ERR);
	close_pair(&p);
}

static void nonsense(void **state)
{
	static const struct hw_fault t[] = {
		{.kind = HW_FAULT_DROP, .opcode = -1},
		{.kind = HW_FAULT_DROP, .opcode = WQE_OP_NOP, .at = 1},
		{.kind = HW_FAULT_DROP, .opcode = -1, .probability = 1.5},
		{.kind = HW_FAULT_RNR, .opcode = WQE_OP_WRITE, .at = 1},
		{.kind = HW_FAULT_SPLIT, .opcode = WQE_OP_CAS, .at = 1},
		{.kind = HW_FAULT_ERROR, .opcode = -1, .at = 1},
		{.kind = HW_FAULT_ERROR, .opcode = WQE_OP_WAIT, .at = 1, .syndrome = 1},
		{.kind = HW_FAULT_QP_ERROR, .opcode = -1},
		{.kind = HW_FAULT_PORT_DOWN, .opcode = WQE_OP_WRITE},
	};
	struct hw_fault f = {.kind = HW_FAULT_DROP, .opcode = -1, .at = 1, .qpn = 0xabcdef};
	struct pair p;

	open_pair(&p, 1, false);
	for (size_t i = 0; i < COUNT(t); i++)
		assert_int_equal(hw_fault_add(p.rig.dev, &t[i]), -EINVAL);
	assert_int_equal(hw_fault_add(p.rig.dev, &f), -ENOENT);
	f.qpn = 0;
	for (uint32_t i = 1; i <= HW_FAULT_MAX; i++) {
		f.id = i;
		assert_int_equal(hw_fault_add(p.rig.dev, &f), 0);
	}
	assert_int_equal(hw_fault_add(p.rig.dev, &f), -ENOSPC);
	assert_int_equal(hw_fault_clear(p.rig.dev, 3), 1);
	assert_int_equal(hw_fault_clear(p.rig.dev, 3), 0);
	assert_int_equal(hw_fault_clear(p.rig.dev, 0), HW_FAULT_MAX - 1);
	write_one(&p);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop),
		cmocka_unit_test(chance),
		cmocka_unit_test(delay),
		cmocka_unit_test(split),
		cmocka_unit_test(split_and_reset),
		cmocka_unit_test(rnr),
		cmocka_unit_test(retries_are_counted_apart),
		cmocka_unit_test(error),
		cmocka_unit_test(qp_error),
		cmocka_unit_test(port),
		cmocka_unit_test(mkey_revoke),
		cmocka_unit_test(device_fatal),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
