/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that move in parts, beside a queue of short ones: their bytes, and what ends them in the
 * middle. */
#include "softcx/hw/exec.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"

#include <string.h>
#include <unistd.h>

enum { SEEDS = 100, LONG = 40000, OFF = 3 /* nothing is aligned */ };

/* Two queues connected to themselves. The second one has short WRITEs without end. */
struct two {
	struct rig rig;
	struct rig_cq cq, rcq, others;
	struct rig_qp q, other;
	uint8_t *src, *dst, *word;
};

static void post_others(struct two *t)
{
	for (unsigned i = 0; i < 500; i++)
		wqe_rdma(&t->other, WQE_OP_WRITE, t->word, 8, t->word + 8, 0, 0);
	rig_ring(&t->other);
}

static void open_two(struct two *t, struct hw_config cfg)
{
	rig_open(&t->rig, &cfg);
	rig_cq_new(&t->rig, &t->cq, 6);
	rig_cq_new(&t->rig, &t->rcq, 6);
	rig_cq_new(&t->rig, &t->others, 6);
	rig_qp_new(&t->rig, &t->q, &t->cq, &t->rcq);
	rig_qp_new_with(&t->rig, &t->other, &t->others, &t->others, (struct rig_opt){.wqebbs = 1024});
	rig_connect(&t->q, &t->q);
	rig_connect(&t->other, &t->other);
	t->src = rig_alloc(&t->rig, 1 << 16);
	t->dst = rig_alloc(&t->rig, 1 << 16);
	t->word = rig_alloc(&t->rig, 64);
	for (unsigned i = 0; i < LONG; i++)
		t->src[OFF + i] = (uint8_t)(i * 7 + i / 256 + 1);
	post_others(t);
}

static void close_two(struct two *t)
{
	rig_run(&t->rig);
	rig_destroy(&t->q);
	rig_destroy(&t->other);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->cq.cq), 0);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->rcq.cq), 0);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->others.cq), 0);
	rig_close(&t->rig);
}

/* One message with three data segments, of @opcode: the last of them of three bytes */
static void post(struct two *t, uint8_t opcode)
{
	const bool send = opcode == WQE_OP_SEND, read = opcode == WQE_OP_READ;
	const uint32_t len[] = {9001, LONG - 9001 - 3, 3};
	uint8_t *local = (read ? t->dst : t->src) + OFF, *remote = (read ? t->src : t->dst) + OFF;
	uint8_t *w = wqe_raw(&t->q, opcode, 0, send ? 4 : 5, SIG, 0), *seg = w + (send ? 16 : 32);

	if (!send) {
		put64(w + WQE_RADDR, (uintptr_t)remote);
		put32(w + WQE_RKEY, t->rig.key);
	}
	for (unsigned i = 0; i < 3; local += len[i++], seg += WQE_DS)
		put_seg(seg, local, len[i], t->rig.key);
	if (send || opcode == WQE_OP_WRITE_IMM)
		rig_recv(&t->q, 2, t->dst + OFF, 20000, t->dst + OFF + 20000, 30000);
	rig_ring(&t->q);
}

/* Until a part has been moved, or paid for */
static void run_into_the_middle(struct two *t)
{
	while (!t->q.qp->moved)
		assert_true(hw_poll(t->rig.dev));
	assert_in_range(t->q.qp->moved, HW_PACKET, LONG - 1);
}

/* Everything arrives once, and other queues have turns between */
static void all_bytes_arrive(void **state)
{
	static const uint8_t opcodes[] = {WQE_OP_WRITE, WQE_OP_WRITE_IMM, WQE_OP_READ, WQE_OP_SEND};
	struct two t;

	for (uint64_t seed = 0; seed < SEEDS; seed++)
		for (unsigned i = 0; i < sizeof(opcodes); i++) {
			uint16_t before;

			open_two(&t, (struct hw_config){.seed = seed, .lenient = seed % 2, .pass = 1});
			post(&t, opcodes[i]);
			run_into_the_middle(&t);
			before = t.other.qp->sq_ci;
			while (t.q.qp->sq_ci != t.q.qp->sq_pi)
				hw_poll(t.rig.dev);
			assert_in_range(t.other.qp->sq_ci - before, 10, 200);
			post(&t, WQE_OP_WRITE); /* the peer expects just the next packet */
			rig_run(&t.rig);
			assert_memory_equal(t.dst + OFF, t.src + OFF, LONG);
			assert_int_equal(t.dst[OFF - 1] | t.dst[OFF + LONG], 0);
			rig_expect(&t.cq, CQE_OP_REQ);
			rig_expect(&t.cq, CQE_OP_REQ);
			assert_null(rig_cq_next(&t.cq));
			assert_int_equal(rig_cq_count(&t.rcq),
				opcodes[i] == WQE_OP_WRITE_IMM || opcodes[i] == WQE_OP_SEND);
			close_two(&t);
		}
}

/* Bytes that change meanwhile are read as they are when their part moves */
static void bytes_change_in_the_middle(void **state)
{
	struct two t;
	uint32_t moved;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_two(&t, (struct hw_config){.seed = seed, .pass = 1});
		post(&t, seed % 2 ? WQE_OP_WRITE : WQE_OP_READ);
		run_into_the_middle(&t);
		moved = t.q.qp->moved;
		memset(t.src + OFF, 0xff, LONG);
		rig_run(&t.rig);
		assert_memory_not_equal(t.dst + OFF, t.src + OFF, moved);
		assert_memory_equal(t.dst + OFF + moved, t.src + OFF + moved, LONG - moved);
		close_two(&t);
	}
}

/* Of all memory */
static uint32_t new_key(struct two *t)
{
	const struct hw_mkey_attr attr = {.pdn = t->rig.pdn,
		.access = HW_LOCAL_WRITE | HW_REMOTE_WRITE,
		.mem = &t->rig.mem,
		.iova = (uintptr_t)t->rig.mem.host,
		.len = t->rig.mem.len};
	uint32_t key;

	assert_int_equal(hw_mkey_create(t->rig.dev, &attr, &key), 0);
	return key;
}

static void keys_go_in_the_middle(void **state)
{
	struct two t;
	uint32_t key, moved;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_two(&t, (struct hw_config){.seed = seed, .pass = 1});
		key = new_key(&t);
		put32(wqe_rdma(&t.q, WQE_OP_WRITE, t.src, LONG, t.dst, SIG, 0) + WQE_RKEY, key);
		wqe_rdma(&t.q, WQE_OP_WRITE, t.src, 8, t.dst, SIG, 0);
		rig_ring(&t.q);
		run_into_the_middle(&t);
		moved = t.q.qp->moved;
		assert_int_equal(hw_mkey_destroy(t.rig.dev, key), 0);
		rig_run(&t.rig);
		rig_expect_error(&t.cq, CQE_SYND_REMOTE_ACCESS);
		rig_expect_error(&t.cq, CQE_SYND_FLUSH);
		assert_memory_equal(t.dst, t.src, moved);
		assert_int_equal(t.dst[moved + 1] | t.dst[LONG - 1], 0);
		close_two(&t);
	}
}

/* After each part the peer is away for as long as retries last. What it has got is not sent again, and each
 * part has all retries */
static void parts_are_acknowledged(void **state)
{
	unsigned losses = 0;
	uint32_t moved = 0;
	struct hw_qp *qp;
	struct two t;

	open_two(&t, (struct hw_config){.seed = 1, .pass = 1});
	qp = t.q.qp;
	post(&t, WQE_OP_WRITE);
	for (;;) {
		while (qp->moved == moved && rig_cq_count(&t.cq) == 0)
			hw_poll(t.rig.dev);
		if (qp->moved <= moved)
			break;
		moved = qp->moved;
		qp->mod.dest_qpn ^= 1;
		for (unsigned n = 0; n < qp->mod.retry_cnt;) {
			const uint64_t due = qp->due;

			usleep(20); /* longer than a timeout: the other queue has no turns for nothing */
			hw_poll(t.rig.dev);
			n += qp->due != due;
			assert_int_equal(qp->moved, moved);
			assert_int_equal(hw_qp_state(qp), HW_RTS);
		}
		losses += qp->mod.retry_cnt;
		qp->mod.dest_qpn ^= 1;
	}
	assert_true(losses > qp->mod.retry_cnt);
	assert_int_equal(hw_qp_state(qp), HW_RTS);
	assert_memory_equal(t.dst + OFF, t.src + OFF, LONG);
	close_two(&t);
}

/* A part of a SEND that is only paid for is no acknowledgement: with one retry, the second RNR NAK ends it */
static void paid_parts_are_not_acknowledged(void **state)
{
	struct hw_qp *qp;
	struct two t;

	open_two(&t, (struct hw_config){.lenient = true, .pass = 1});
	rig_run(&t.rig);
	qp = t.q.qp;
	qp->mod.rnr_retry = 1;
	put_seg(wqe_raw(&t.q, WQE_OP_SEND, 0, 2, SIG, 0) + 16, t.src, LONG, t.rig.key);
	rig_ring(&t.q); /* alone: it moves at once */
	while (qp->run_state != HW_RUN_TIMED)
		hw_poll(t.rig.dev);
	assert_int_equal(qp->moved, 0);
	post_others(&t);
	usleep(1000); /* longer than the pause: the other queue has no turns for nothing */
	run_into_the_middle(&t);
	while (qp->moved) {
		hw_poll(t.rig.dev);
		assert_int_not_equal(qp->run_state, HW_RUN_TIMED);
	}
	rig_expect_error(&t.cq, CQE_SYND_RNR_RETRY);
	close_two(&t);
}

/* The responder connects again, with the PSN that it had before: it does not expect the rest of a message. Of
 * a SEND nothing has been sent, so it arrives */
static void responder_begins_anew(void **state)
{
	static const uint8_t opcodes[] = {WQE_OP_WRITE, WQE_OP_WRITE_IMM, WQE_OP_READ, WQE_OP_SEND};
	struct rig_qp peer;
	struct two t;

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		open_two(&t, (struct hw_config){.seed = i, .pass = 1});
		rig_qp_new(&t.rig, &peer, &t.rcq, &t.rcq);
		rig_qp_to(&t.q, HW_RST);
		rig_connect(&t.q, &peer);
		rig_recv(&peer, 2, t.dst + OFF, 20000, t.dst + OFF + 20000, 30000);
		post(&t, opcodes[i]);
		run_into_the_middle(&t);
		rig_qp_to(&peer, HW_RST);
		peer.db[0] = peer.rpi = 0;
		rig_recv(&peer, 2, t.dst + OFF, 20000, t.dst + OFF + 20000, 30000);
		rig_qp_connect_to(&peer, hw_qpn(t.q.qp), NULL);
		rig_run(&t.rig);
		rig_settle(&t.rig);
		if (opcodes[i] == WQE_OP_SEND)
			rig_expect(&t.cq, CQE_OP_REQ);
		else
			rig_expect_error(&t.cq, CQE_SYND_RETRY);
		rig_destroy(&peer);
		close_two(&t);
	}
}

/* An unreliable queue does not notice that its peer goes in the middle. It pays for the rest, once */
static void an_unreliable_peer_goes(void **state)
{
	struct rig_qp uc[2];
	uint64_t cost;
	struct two t;

	open_two(&t, (struct hw_config){.seed = 1, .pass = 1});
	for (unsigned i = 0; i < 2; i++)
		rig_qp_new_with(&t.rig, &uc[i], &t.cq, &t.rcq, (struct rig_opt){.type = HW_UC});
	rig_connect(&uc[0], &uc[1]);
	while (!t.other.qp->sq_ci)
		hw_poll(t.rig.dev);
	wqe_rdma(&uc[0], WQE_OP_WRITE, t.src, LONG, t.dst, SIG, 0);
	rig_ring(&uc[0]);
	while (!uc[0].qp->moved)
		assert_true(hw_poll(t.rig.dev));
	rig_qp_to(&uc[1], HW_ERR);
	cost = t.rig.dev->cost;
	while (uc[0].qp->moved)
		assert_true(hw_poll(t.rig.dev));
	rig_expect(&t.cq, CQE_OP_REQ);
	assert_in_range(t.rig.dev->cost - cost, 1, LONG);
	rig_run(&t.rig);
	rig_destroy(&uc[0]);
	rig_destroy(&uc[1]);
	close_two(&t);
}

/* A message in parts has the PSNs of one at once */
static void parts_have_the_packets_of_the_whole(void **state)
{
	static const uint8_t opcodes[] = {WQE_OP_WRITE, WQE_OP_WRITE_IMM, WQE_OP_READ, WQE_OP_SEND};
	struct hw_qp_mod mod;
	struct two t;

	for (unsigned i = 0; i < sizeof(opcodes); i++)
		for (uint32_t mtu = 256; mtu <= HW_PACKET; mtu *= 2) {
			uint32_t first;

			open_two(&t, (struct hw_config){.seed = mtu, .pass = 1});
			mod = (struct hw_qp_mod){.mask = HW_QP_MTU, .mtu = (uint16_t)mtu};
			assert_int_equal(hw_qp_modify(t.rig.dev, t.q.qp, HW_RTS, &mod), 0);
			first = t.q.qp->mod.sq_psn;
			post(&t, opcodes[i]);
			run_into_the_middle(&t);
			rig_run(&t.rig);
			assert_int_equal(t.q.qp->mod.sq_psn, first + (LONG + mtu - 1) / mtu);
			assert_int_equal(t.q.qp->mod.rq_psn, t.q.qp->mod.sq_psn);
			close_two(&t);
		}
}

/* RESET ends a message; the next one begins with its first byte. What has begun is over before SQD */
static void states_in_the_middle(void **state)
{
	struct two t;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_two(&t, (struct hw_config){.seed = seed, .pass = 1});
		post(&t, WQE_OP_WRITE);
		run_into_the_middle(&t);
		rig_qp_to(&t.q, HW_RST);
		t.q.pi = 0;
		t.q.db[1] = 0;
		memset(t.dst, 0, 1 << 16);
		rig_connect(&t.q, &t.q);
		post(&t, WQE_OP_READ);
		post(&t, WQE_OP_READ);
		run_into_the_middle(&t);
		rig_qp_to(&t.q, HW_SQD);
		assert_int_equal(t.q.last_event, HW_EV_SQ_DRAINED);
		assert_memory_equal(t.dst + OFF, t.src + OFF, LONG);
		rig_expect(&t.cq, CQE_OP_REQ);
		rig_run(&t.rig);
		assert_null(rig_cq_next(&t.cq));
		rig_qp_to(&t.q, HW_RTS);
		rig_run(&t.rig);
		rig_expect(&t.cq, CQE_OP_REQ);
		close_two(&t);
	}
}

/* A key goes in the middle: the message fails on the way to SQD, and nothing is drained */
static void failure_before_sqd(void **state)
{
	struct two t;
	uint32_t key;

	open_two(&t, (struct hw_config){.seed = 1, .pass = 1});
	key = new_key(&t);
	put32(wqe_rdma(&t.q, WQE_OP_WRITE, t.src, LONG, t.dst, SIG, 0) + WQE_RKEY, key);
	rig_ring(&t.q);
	run_into_the_middle(&t);
	assert_int_equal(hw_mkey_destroy(t.rig.dev, key), 0);
	rig_qp_to(&t.q, HW_SQD);
	assert_int_equal(hw_qp_state(t.q.qp), HW_ERR);
	rig_expect_error(&t.cq, CQE_SYND_REMOTE_ACCESS);
	assert_int_not_equal(t.q.last_event, HW_EV_SQ_DRAINED);
	close_two(&t);
}

/* Two WRITEs. In the middle of the first one the peer is away, and while the queue pauses it goes to SQD */
static void pause_before_sqd(struct two *t)
{
	open_two(t, (struct hw_config){.seed = 1, .pass = 1});
	post(t, WQE_OP_WRITE);
	post(t, WQE_OP_WRITE);
	run_into_the_middle(t);
	t->q.qp->mod.dest_qpn ^= 1;
	while (t->q.qp->run_state != HW_RUN_TIMED)
		hw_poll(t->rig.dev);
	rig_qp_to(&t->q, HW_SQD);
	assert_int_equal(t->q.events, 0);
	assert_int_not_equal(t->q.qp->moved, 0);
}

/* The queue is drained when the message is over, which is later, perhaps never */
static void sqd_in_a_pause(void **state)
{
	struct two t;

	pause_before_sqd(&t);
	t.q.qp->mod.dest_qpn ^= 1;
	while (!t.q.events)
		hw_poll(t.rig.dev);
	assert_int_equal(t.q.last_event, HW_EV_SQ_DRAINED);
	assert_memory_equal(t.dst + OFF, t.src + OFF, LONG);
	rig_expect(&t.cq, CQE_OP_REQ);
	rig_run(&t.rig);
	assert_null(rig_cq_next(&t.cq));
	rig_qp_to(&t.q, HW_RTS);
	rig_run(&t.rig);
	rig_expect(&t.cq, CQE_OP_REQ);
	assert_int_equal(t.q.events, 1);
	close_two(&t);

	pause_before_sqd(&t);
	rig_settle(&t.rig);
	rig_expect_error(&t.cq, CQE_SYND_RETRY);
	assert_int_equal(t.q.events, 0);
	close_two(&t);

	pause_before_sqd(&t);
	t.q.qp->mod.dest_qpn ^= 1;
	rig_qp_to(&t.q, HW_RTS);
	rig_settle(&t.rig);
	rig_expect(&t.cq, CQE_OP_REQ);
	rig_expect(&t.cq, CQE_OP_REQ);
	assert_int_equal(t.q.events, 0);
	close_two(&t);
}

/* What nobody else waits for moves at once */
static void a_queue_alone_is_not_stopped(void **state)
{
	struct two t;

	open_two(&t, (struct hw_config){.lenient = true, .pass = 1});
	rig_run(&t.rig);
	post(&t, WQE_OP_WRITE);
	hw_poll(t.rig.dev);
	rig_expect(&t.cq, CQE_OP_REQ);
	close_two(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_arrive),
		cmocka_unit_test(bytes_change_in_the_middle),
		cmocka_unit_test(keys_go_in_the_middle),
		cmocka_unit_test(parts_are_acknowledged),
		cmocka_unit_test(paid_parts_are_not_acknowledged),
		cmocka_unit_test(responder_begins_anew),
		cmocka_unit_test(an_unreliable_peer_goes),
		cmocka_unit_test(parts_have_the_packets_of_the_whole),
		cmocka_unit_test(states_in_the_middle),
		cmocka_unit_test(failure_before_sqd),
		cmocka_unit_test(sqd_in_a_pause),
		cmocka_unit_test(a_queue_alone_is_not_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
