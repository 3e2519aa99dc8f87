/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices executed by a thread each. They stand in a ring: each sends to the next one, and software of each
 * runs in its thread, with the lock of its unit.
 */
#include "softcx/hw/exec.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/test-rig.h"
#include "softcx/hw/turns.h"
#include "softcx/hw/uar.h"
#include "util/array.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST = 3, ROUNDS = 300, AHEAD = 8, WORDS = 16 };

struct side {
	struct ring *ring;
	struct rig rig;
	struct rig_cq sent, received, code, quiet;
	struct rig_qp out, in;      /* to the next device, from the one before */
	struct rig_qp master, self; /* the first enables the second, which counts in the next device */
	struct rig_qp self_in;
	unsigned posted, done, got, counted, mistakes;
	struct pages {
		uint64_t counter, chained; /* by the device before */
		uint64_t source[WORDS];
		uint64_t written[WORDS];  /* likewise, */
		uint64_t message[AHEAD];  /* and in its RECVs */
		uint64_t outgoing[AHEAD]; /* number of the round */
		uint64_t read[AHEAD][WORDS], old[AHEAD], chain_old;
	} * m;
};

struct ring {
	unsigned n;
	bool locks; /* the devices have units */
	struct side side[MOST];
	struct hw_pu unit[MOST], *all[MOST];
	_Atomic(unsigned) finished;
};

static struct side *next(struct side *s)
{
	return &s->ring->side[(size_t)(s - s->ring->side + 1) % s->ring->n];
}

/* ---- software --------------------------------------------------------------------------- */

static uint64_t pattern(const struct side *s, unsigned i)
{
	return (uint64_t)(s - s->ring->side + 1) << 32 | i;
}

/* WRITE, READ, atomic and SEND of round @k, of which the last has a CQE. */
static void post(struct side *s, unsigned k)
{
	struct pages *m = s->m, *to = next(s)->m;
	unsigned at = k % AHEAD;
	uint32_t key = next(s)->rig.key;
	uint8_t *wqe;

	m->outgoing[at] = k;
	wqe = wqe_rdma(&s->out, WQE_OP_WRITE, &m->outgoing[at], 8, &to->written[k % WORDS], 0, 0);
	put32(wqe + WQE_RKEY, key);
	wqe = wqe_rdma(&s->out, WQE_OP_READ, m->read[at], sizeof(m->read[at]), to->source, 0, 0);
	put32(wqe + WQE_RKEY, key);
	wqe = wqe_atomic(&s->out, WQE_OP_FETCH_ADD, &m->old[at], &to->counter, 1, 0, 0);
	put32(wqe + WQE_RKEY, key);
	wqe_send(&s->out, WQE_OP_SEND, &m->outgoing[at], 8, SIG, 0);
}

static void check(struct side *s, bool holds)
{
	s->mistakes += !holds;
}

static void look_at_sent(struct side *s, const uint8_t *cqe)
{
	unsigned at = s->done % AHEAD;

	check(s, rig_cqe_op(cqe) == CQE_OP_REQ);
	check(s, s->m->old[at] == s->done);
	for (unsigned i = 0; i < WORDS; i++)
		check(s, s->m->read[at][i] == pattern(next(s), i));
	s->done++;
}

/* The WRITE of a round is placed before its SEND arrives. */
static void look_at_received(struct side *s, const uint8_t *cqe)
{
	unsigned at = s->got % AHEAD;

	check(s, rig_cqe_op(cqe) == CQE_OP_RESP_SEND);
	check(s, s->m->message[at] == s->got);
	check(s, s->m->written[s->got % WORDS] >= s->got);
	rig_recv(&s->in, 1, &s->m->message[at], 8);
	s->got++;
}

static void run_software(struct side *s)
{
	const uint8_t *cqe;

	while ((cqe = rig_cq_next(&s->sent)))
		look_at_sent(s, cqe);
	while ((cqe = rig_cq_next(&s->received)))
		look_at_received(s, cqe);
	while ((cqe = rig_cq_next(&s->code))) {
		check(s, rig_cqe_op(cqe) == CQE_OP_REQ);
		s->counted++;
	}
	if (s->posted == ROUNDS || s->posted - s->done == AHEAD)
		return;
	while (s->posted < ROUNDS && s->posted - s->done < AHEAD)
		post(s, s->posted++);
	rig_ring(&s->out);
}

static bool finished(const struct side *s)
{
	return s->done == ROUNDS && s->got == ROUNDS && s->counted == ROUNDS;
}

/* ---- set-up ----------------------------------------------------------------------------- */

static void wire(struct rig_qp *a, struct rig_qp *b)
{
	uint8_t gid[16];

	assert_true(hw_gid(b->rig->dev, 0, gid));
	rig_qp_connect_to(a, hw_qpn(b->qp), gid);
	assert_true(hw_gid(a->rig->dev, 0, gid));
	rig_qp_connect_to(b, hw_qpn(a->qp), gid);
}

static void open_side(struct side *s, struct ring *ring, const struct hw_config *cfg)
{
	struct rig_opt managed = {.managed = true, .wqebbs = 512}, master = {.wqebbs = 1024};

	memset(s, 0, sizeof(*s));
	s->ring = ring;
	rig_open_gid(&s->rig, cfg, (uint8_t)(s - ring->side + 1));
	rig_cq_new(&s->rig, &s->sent, 6);
	rig_cq_new(&s->rig, &s->received, 6);
	rig_cq_new(&s->rig, &s->code, 9);
	rig_cq_new(&s->rig, &s->quiet, 4);
	rig_qp_new(&s->rig, &s->out, &s->sent, &s->quiet);
	rig_qp_new(&s->rig, &s->in, &s->quiet, &s->received);
	rig_qp_new_with(&s->rig, &s->master, &s->quiet, &s->quiet, master);
	rig_qp_new_with(&s->rig, &s->self, &s->code, &s->quiet, managed);
	rig_qp_new(&s->rig, &s->self_in, &s->quiet, &s->quiet);
	s->m = rig_alloc(&s->rig, sizeof(*s->m));
	for (unsigned i = 0; i < WORDS; i++)
		s->m->source[i] = pattern(s, i);
	for (unsigned i = 0; i < AHEAD; i++)
		rig_recv(&s->in, 1, &s->m->message[i], 8);
}

/* For each message that arrives, the managed queue adds one in the next device. */
static void write_chain(struct side *s)
{
	for (unsigned k = 0; k < ROUNDS; k++) {
		uint8_t *wqe = wqe_atomic(
			&s->self, WQE_OP_FETCH_ADD, &s->m->chain_old, &next(s)->m->chained, 1, 0, SIG);

		put32(wqe + WQE_RKEY, next(s)->rig.key);
		wqe_wait(&s->master, hw_cqn(s->received.cq), k, 0);
		wqe_enable(&s->master, WQE_OP_SEND_EN, hw_qpn(s->self.qp), k + 1, 0);
	}
	rig_ring(&s->master);
}

static void open_ring(struct ring *r, unsigned n, struct hw_config cfg, bool locks)
{
	memset(r, 0, sizeof(*r));
	r->n = n;
	r->locks = locks;
	for (unsigned i = 0; i < n; i++) {
		r->all[i] = &r->unit[i];
		open_side(&r->side[i], r, &cfg);
		cfg.seed++;
	}
	hw_pu_init(r->all, n);
	for (unsigned i = 0; i < n && locks; i++)
		hw_dev_set_pu(r->side[i].rig.dev, &r->unit[i]);
	for (unsigned i = 0; i < n; i++) {
		struct side *s = &r->side[i];

		wire(&s->out, &next(s)->in);
		wire(&s->self, &next(s)->self_in);
		rig_connect(&s->master, &s->master);
		write_chain(s);
	}
}

static void close_ring(struct ring *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct side *s = &r->side[i];
		struct rig_qp *qps[] = {&s->out, &s->in, &s->master, &s->self, &s->self_in};
		struct rig_cq *cqs[] = {&s->sent, &s->received, &s->code, &s->quiet};

		for (size_t k = 0; k < COUNT(qps); k++)
			rig_destroy(qps[k]);
		for (size_t k = 0; k < COUNT(cqs); k++)
			assert_int_equal(hw_cq_destroy(s->rig.dev, cqs[k]->cq), 0);
	}
	for (unsigned i = 0; i < r->n; i++)
		rig_close(&r->side[i].rig);
}

static void check_ring(const struct ring *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		const struct side *s = &r->side[i];

		assert_int_equal(s->mistakes, 0);
		assert_int_equal(s->m->counter, ROUNDS);
		assert_int_equal(s->m->chained, ROUNDS);
		assert_int_equal(hw_cq_producer(s->quiet.cq), 0);
	}
}

/* ---- tests ------------------------------------------------------------------------------ */

/* Until all have finished: what others send arrives without a thread of the receiver, what it sends does not.
 */
static void *execute(void *arg)
{
	struct side *s = arg;
	struct hw_pu *pu = &s->ring->unit[s - s->ring->side];
	bool counted = false;

	while (atomic_load(&s->ring->finished) < s->ring->n) {
		enum hw_pass pass;

		hw_pu_take(pu);
		run_software(s);
		pass = hw_poll(s->rig.dev);
		if (!counted && finished(s)) {
			counted = true;
			atomic_fetch_add(&s->ring->finished, 1);
		}
		hw_pu_give(pu);
		if (pass == HW_PASS_NOTHING)
			sched_yield();
	}
	return NULL;
}

static void run_threads(struct ring *r)
{
	pthread_t thread[MOST];

	for (unsigned i = 0; i < r->n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, execute, &r->side[i]), 0);
	for (unsigned i = 0; i < r->n; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void all_verbs(void **state)
{
	for (unsigned n = 2; n <= MOST; n++)
		for (uint64_t seed = 0; seed < 6; seed++) {
			struct ring r;

			open_ring(
				&r, n, (struct hw_config){.seed = 10 * seed, .lenient = seed % 3 == 2}, true);
			run_threads(&r);
			check_ring(&r);
			close_ring(&r);
		}
}

/*
 * A WQE that may meet a fault needs every unit. Those that are lost are sent again. Only WRITEs are: a SEND
 * is sent again as long as there is no RECV, and would be lost too often where a thread gets no core.
 */
static void faults(void **state)
{
	struct hw_fault fault = {
		.kind = HW_FAULT_DROP, .opcode = WQE_OP_WRITE, .probability = 0.05, .count = 5};

	for (unsigned n = 2; n <= MOST; n++) {
		struct ring r;

		open_ring(&r, n, (struct hw_config){.seed = n}, true);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(hw_fault_add(r.side[i].rig.dev, &fault), 0);
		run_threads(&r);
		check_ring(&r);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(hw_fault_next(r.side[i].rig.dev, NULL)->struck, 5);
		close_ring(&r);
	}
}

/* Commands come in between: they stop all. */
static void commands(void **state)
{
	pthread_t thread[MOST];
	struct ring r;
	unsigned n = 0;

	open_ring(&r, MOST, (struct hw_config){.seed = 3}, true);
	for (unsigned i = 0; i < r.n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, execute, &r.side[i]), 0);
	for (; atomic_load(&r.finished) < r.n; n++) {
		struct rig *rig = &r.side[n % r.n].rig;
		struct hw_mkey_attr attr = {
			.pdn = rig->pdn, .len = 64, .access = HW_REMOTE_READ, .mem = &rig->mem};
		uint32_t key;

		hw_pu_take_all(r.all);
		assert_int_equal(hw_mkey_create(rig->dev, &attr, &key), 0);
		assert_int_equal(hw_mkey_destroy(rig->dev, key), 0);
		hw_poll(rig->dev);
		hw_pu_give_all(r.all);
		sched_yield();
	}
	for (unsigned i = 0; i < r.n; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_true(n > 0);
	check_ring(&r);
	close_ring(&r);
}

static void on_trace(void *arg, const struct hw_trace *t)
{
	uint64_t *sum = arg;

	*sum = *sum * 31 + ((uint64_t)t->kind << 40 | (uint64_t)t->qpn << 16 | t->idx);
}

/* In one thread, device by device. Returns a sum over all that happens, in its order. */
static uint64_t run_alone(uint64_t seed, bool locks)
{
	uint64_t sum = 0;
	unsigned left = 2;
	struct ring r;

	open_ring(&r, 2, (struct hw_config){.seed = seed}, locks);
	for (unsigned i = 0; i < r.n; i++)
		hw_set_trace(r.side[i].rig.dev, on_trace, &sum);
	while (left) {
		left = 0;
		for (unsigned i = 0; i < r.n; i++) {
			struct side *s = &r.side[i];

			hw_pu_take(&r.unit[i]);
			run_software(s);
			hw_poll(s->rig.dev);
			hw_pu_give(&r.unit[i]);
			left += !finished(s);
		}
	}
	check_ring(&r);
	close_ring(&r);
	return sum;
}

/* Locks that nobody else has change nothing. */
static void same_seed_same_run(void **state)
{
	uint64_t last = 0;
	unsigned differ = 0;

	for (uint64_t seed = 0; seed < 10; seed++) {
		uint64_t sum = run_alone(seed, false);

		assert_true(sum == run_alone(seed, false));
		assert_true(sum == run_alone(seed, true));
		differ += sum != last;
		last = sum;
	}
	assert_int_equal(differ, 10);
}

static struct side *visited;
static unsigned visits_with_work;

static void on_return(struct hw_pu *pu)
{
	assert_ptr_equal(pu, &visited->ring->unit[1]);
	assert_true(atomic_load(&pu->taken));
	visits_with_work += hw_has_work(visited->rig.dev);
}

/* The thread of a unit may sleep: it learns that a message has released a WAIT. */
static void visits(void **state)
{
	struct ring r;

	open_ring(&r, 2, (struct hw_config){.seed = 1}, true);
	visited = &r.side[1];
	visits_with_work = 0;
	r.unit[1].on_return = on_return;
	while (hw_poll(visited->rig.dev)) /* its queues wait for messages */
		;
	assert_false(hw_has_work(visited->rig.dev));
	hw_pu_take(&r.unit[0]);
	run_software(&r.side[0]);
	while (hw_poll(r.side[0].rig.dev))
		;
	hw_pu_give(&r.unit[0]);
	assert_true(visits_with_work > 0);
	assert_true(hw_has_work(visited->rig.dev));
	assert_false(atomic_load(&r.unit[1].taken));
	close_ring(&r);
}

/* A WQE that waits for a unit is none of the burst: what has been sent does not land earlier for it. */
static void bursts(void **state)
{
	struct ring r;

	for (uint64_t seed = 0; seed < 20; seed++) {
		const struct hw_qp *qp;
		struct hw_dev *dev;
		unsigned left;

		open_ring(&r, 2, (struct hw_config){.seed = seed}, true);
		qp = r.side[0].out.qp;
		dev = qp->dev;
		hw_pu_take(&r.unit[0]);
		hw_pu_take(&r.unit[1]); /* as another thread has it */
		run_software(&r.side[0]);
		hw_doorbell_scan(dev);
		while (!dev->claimant)
			hw_pass_run(dev);
		left = qp->burst;
		for (int i = 0; i < 10; i++) {
			assert_ptr_equal(dev->claimant, qp);
			assert_int_equal(qp->burst, left);
			assert_int_equal(qp->sq_ci, 0);
			r.unit[0].wants = 0;
			hw_pass_run(dev);
		}
		close_ring(&r);
	}
}

/* ---- locks ------------------------------------------------------------------------------ */

static void claims(void **state)
{
	struct hw_pu unit[3], *all[] = {&unit[0], &unit[1], &unit[2]};

	hw_pu_init(all, 3);
	hw_pu_take(&unit[1]);
	assert_true(hw_pu_claim(&unit[1], 0));
	assert_true(hw_pu_claim(&unit[1], 1 << 1));
	assert_int_equal(unit[1].borrowed, 0);
	assert_true(hw_pu_claim(&unit[1], 1 << 2));
	assert_true(hw_pu_claim(&unit[1], HW_PU_EVERY));
	assert_int_equal(unit[1].borrowed, 5);
	hw_pu_return(&unit[1]);
	assert_int_equal(unit[1].borrowed, 0);

	/* one of two is not free: the other is given back */
	hw_pu_take(&unit[2]);
	assert_false(hw_pu_claim(&unit[1], HW_PU_EVERY));
	assert_int_equal(unit[1].wants, 7);
	assert_int_equal(unit[1].borrowed, 0);
	hw_pu_take(&unit[0]);
	hw_pu_give(&unit[0]);
	hw_pu_give(&unit[2]);
	hw_pu_take_wanted(&unit[1]);
	assert_int_equal(unit[1].borrowed, 5);
	assert_int_equal(unit[1].wants, 0);
	hw_pu_return(&unit[1]);
	hw_pu_give(&unit[1]);

	hw_pu_take_all(all);
	assert_true(hw_pu_claim(&unit[1], HW_PU_EVERY));
	assert_int_equal(unit[1].borrowed, 0); /* nothing to give back after a turn */
	hw_pu_give_all(all);
	assert_false(hw_pu_awaited(&unit[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims),
		cmocka_unit_test(same_seed_same_run),
		cmocka_unit_test(visits),
		cmocka_unit_test(bursts),
		cmocka_unit_test(all_verbs),
		cmocka_unit_test(faults),
		cmocka_unit_test(commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
