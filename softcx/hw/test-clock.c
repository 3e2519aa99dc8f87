/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The modelled clock: that it shows what cx5.conf was fitted to, that units are shared, and that a run
 * repeats. Times are nanoseconds, the ticks of that file.
 */
#include "costs/costs.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct costs cx5, cx6;

static int read_costs(void **state)
{
	char why[200] = "";

	if (costs_read(COSTS "/cx5.conf", &cx5, why, sizeof(why)) ||
		costs_read(COSTS "/cx6.conf", &cx6, why, sizeof(why)))
		fail_msg("%s", why);
	return 0;
}

/* ---- two NICs --------------------------------------------------------------------------- */

enum {
	QUEUES = 32,
	INLINE_WRITE = 0xff, /* for post(): no opcodes */
	MAX_WRITE = 0xfe,
};

/* Queues of a, each connected to one of b; each has a CQ of its own. */
struct pair {
	struct rig rig[2];
	struct rig_cq cq[2][QUEUES];
	struct rig_qp qp[2][QUEUES];
	unsigned n;
	uint8_t *data[2];
};

/* @first: ports of the cards that @p is to have others of; NULL: of cards of its own. */
static void open_ports(
	struct pair *p, const struct pair *first, const struct costs *costs, unsigned n, uint64_t seed)
{
	struct hw_config cfg = {.seed = seed, .costs = costs};
	struct rig_opt opt = {.wqebbs = 1024};
	uint8_t gid[2][16] = {{0}};

	p->n = n;
	for (unsigned d = 0; d < 2; d++) {
		gid[d][0] = 0xfe;
		gid[d][1] = 0x80;
		gid[d][15] = (uint8_t)(d + (first ? 3 : 1));
		cfg.port_of = first ? first->rig[d].dev : NULL;
		rig_open_gid(&p->rig[d], &cfg, gid[d][15]);
		p->data[d] = rig_alloc(&p->rig[d], 1 << 20);
		for (unsigned i = 0; i < n; i++) {
			rig_cq_new(&p->rig[d], &p->cq[d][i], 10);
			rig_qp_new_with(&p->rig[d], &p->qp[d][i], &p->cq[d][i], &p->cq[d][i], opt);
		}
	}
	for (unsigned d = 0; d < 2; d++)
		for (unsigned i = 0; i < n; i++)
			rig_qp_connect_to(&p->qp[d][i], hw_qpn(p->qp[!d][i].qp), gid[!d]);
}

static void open_pair(struct pair *p, const struct costs *costs, unsigned n, uint64_t seed)
{
	open_ports(p, NULL, costs, n, seed);
}

static void close_pair(struct pair *p)
{
	for (unsigned d = 0; d < 2; d++) {
		for (unsigned i = 0; i < p->n; i++) {
			rig_destroy(&p->qp[d][i]);
			assert_int_equal(hw_cq_destroy(p->rig[d].dev, p->cq[d][i].cq), 0);
		}
		rig_close(&p->rig[d]);
	}
}

static void run(struct pair *p)
{
	bool any = true;

	while (any) {
		any = hw_poll(p->rig[0].dev);
		any |= hw_poll(p->rig[1].dev);
	}
}

static uint64_t stamp(const uint8_t *cqe)
{
	assert_non_null(cqe);
	assert_true(rig_cqe_op(cqe) < CQE_OP_REQ_ERR); /* an error has no time */
	return wqe_get64(cqe + 48);
}

/* Appends one of these to queue @i of a, with @len bytes. */
static void post(struct pair *p, unsigned i, uint8_t opcode, uint32_t len, uint8_t flags)
{
	struct rig_qp *q = &p->qp[0][i];
	uint8_t *w;

	switch (opcode) {
	case WQE_OP_NOP:
		wqe_nop(q, 1, flags);
		return;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
		w = wqe_atomic(q, opcode, p->data[0], p->data[1], 0, 0, flags);
		break;
	case WQE_OP_SEND:
		wqe_send(q, opcode, p->data[0], len, flags, 0);
		return;
	case INLINE_WRITE:
		w = wqe_inline_write(q, p->data[0], len, p->data[1], flags);
		break;
	case MAX_WRITE:
		w = wqe_rdma(q, WQE_OP_WRITE, p->data[0], len, p->data[1], flags, 0);
		w[WQE_OPMOD] = WQE_CALC_MAXLOC;
		break;
	default:
		w = wqe_rdma(q, opcode, p->data[0], len, p->data[1], flags, 0);
	}
	put32(w + 24, p->rig[1].key);
}

/* Time of a WQE that software posts after it has seen the CQE before. */
static uint64_t latency(struct pair *p, uint8_t opcode, uint32_t len)
{
	uint64_t before;

	post(p, 0, WQE_OP_NOP, 0, SIG);
	rig_ring(&p->qp[0][0]);
	run(p);
	before = stamp(rig_cq_next(&p->cq[0][0]));
	post(p, 0, opcode, len, SIG);
	rig_ring(&p->qp[0][0]);
	run(p);
	return stamp(rig_cq_next(&p->cq[0][0])) - before;
}

static void assert_near(uint64_t got, uint64_t want, uint64_t off)
{
	if (got + off < want || got > want + off)
		fail_msg("%llu, not %llu", (unsigned long long)got, (unsigned long long)want);
}

/* ---- what was fitted -------------------------------------------------------------------- */

static void latencies(void **state)
{
	struct pair p;

	open_pair(&p, &cx5, 1, 1);
	assert_near(latency(&p, WQE_OP_NOP, 0), 1210, 1);
	assert_near(latency(&p, INLINE_WRITE, 64), 1600, 1);
	/* Data to be read first: 1800 less 1210, 250, 3.7 and 9.2 on wires and twice 5.1 on the bus, which
	 * they pass once more */
	assert_near(latency(&p, WQE_OP_WRITE, 64), 1600 + 317 + 5, 1);
	assert_near(latency(&p, WQE_OP_READ, 64), 1800, 1);
	assert_near(latency(&p, WQE_OP_CAS, 8), 1800, 1);
	assert_near(latency(&p, WQE_OP_FETCH_ADD, 8), 1800, 1);
	close_pair(&p);
}

/* The slope of a chain of NOOPs; each WQE of @per is one step of it. */
static void orders(void **state)
{
	enum { STEPS = 100 };
	struct pair p;
	uint64_t first = 0, last = 0;

	open_pair(&p, &cx5, 1, 1);
	for (unsigned i = 0; i < STEPS; i++)
		post(&p, 0, WQE_OP_NOP, 0, SIG);
	rig_ring(&p.qp[0][0]);
	run(&p);
	for (unsigned i = 0; i < STEPS; i++) {
		last = stamp(rig_cq_next(&p.cq[0][0]));
		first = i ? first : last;
	}
	assert_near((last - first) * 100 / (STEPS - 1), 17000, 10);

	for (unsigned i = 0; i < STEPS; i++) {
		post(&p, 0, WQE_OP_NOP, 0, SIG);
		wqe_wait(&p.qp[0][0], hw_cqn(p.cq[0][0].cq), STEPS + i, 0);
	}
	rig_ring(&p.qp[0][0]);
	run(&p);
	for (unsigned i = 0; i < STEPS; i++) {
		last = stamp(rig_cq_next(&p.cq[0][0]));
		first = i ? first : last;
	}
	assert_near((last - first) * 100 / (STEPS - 1), 19000, 10);
	close_pair(&p);
}

static void doorbell_order(void **state)
{
	enum { STEPS = 60 };
	struct rig_cq mcq, ccq;
	struct rig_qp m, c;
	struct rig rig;
	uint64_t first = 0, last = 0;

	rig_open(&rig, &(struct hw_config){.seed = 1, .costs = &cx5});
	rig_cq_new(&rig, &mcq, 8);
	rig_cq_new(&rig, &ccq, 8);
	rig_qp_new_with(&rig, &m, &mcq, &mcq, (struct rig_opt){.wqebbs = 256});
	rig_qp_new_with(&rig, &c, &ccq, &ccq, (struct rig_opt){.managed = true});
	rig_connect(&m, &m);
	rig_connect(&c, &c);
	for (unsigned i = 0; i < STEPS; i++) {
		if (i)
			wqe_wait(&m, hw_cqn(ccq.cq), i - 1, 0);
		wqe_nop(&c, 1, SIG);
		wqe_enable(&m, WQE_OP_SEND_EN, hw_qpn(c.qp), i + 1, 0);
	}
	rig_ring(&m);
	rig_run(&rig);
	for (unsigned i = 0; i < STEPS; i++) {
		last = stamp(rig_cq_next(&ccq));
		first = i ? first : last;
	}
	assert_near((last - first) * 100 / (STEPS - 1), 54000, 10);
	rig_destroy(&m);
	rig_destroy(&c);
	assert_int_equal(hw_cq_destroy(rig.dev, mcq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, ccq.cq), 0);
	rig_close(&rig);
}

/* Millions of @opcode in a second, on all queues, of which there are more than PUs. */
static double rate(const struct costs *costs, uint8_t opcode, uint32_t len, uint64_t seed)
{
	enum { EACH = 400 };
	uint64_t last = 0, from = 0;
	const uint8_t *cqe;
	struct pair p;

	open_pair(&p, costs, QUEUES, seed);
	for (unsigned i = 0; i < QUEUES; i++) {
		for (unsigned k = 0; k < EACH; k++)
			post(&p, i, opcode, len, SIG);
		rig_ring(&p.qp[0][i]);
	}
	run(&p);
	for (unsigned i = 0; i < QUEUES; i++) {
		for (unsigned k = 0; (cqe = rig_cq_next(&p.cq[0][i])); k++) {
			uint64_t at = stamp(cqe);

			from = !from || at < from ? at : from;
			last = at > last ? at : last;
		}
	}
	close_pair(&p);
	return QUEUES * EACH * 1e3 / (double)(last - from);
}

static void assert_rate(double got, double want)
{
	if (got < want * 0.97 || got > want * 1.03)
		fail_msg("%.3f M/s, not %.3f", got, want);
}

static void throughputs(void **state)
{
	assert_rate(rate(&cx5, INLINE_WRITE, 64, 1), 63);
	assert_rate(rate(&cx5, WQE_OP_READ, 64, 1), 65);
	assert_rate(rate(&cx5, WQE_OP_NOP, 0, 1), 63);
	assert_rate(rate(&cx5, WQE_OP_CAS, 8, 1), 8.4);
	assert_rate(rate(&cx5, WQE_OP_FETCH_ADD, 8, 1), 8.4);
	assert_rate(rate(&cx5, MAX_WRITE, 32, 1), 63);
	assert_rate(rate(&cx6, INLINE_WRITE, 64, 1), 112);
}

static void bandwidths(void **state)
{
	const double most = 92e3 / 8 / (16384 + 16 * 42); /* in packets of 1024 bytes */

	assert_rate(rate(&cx5, WQE_OP_WRITE, 16384, 1), most);
	assert_rate(rate(&cx5, WQE_OP_READ, 16384, 1), most);
}

/* Two ports, each of which could do 92 Gb/s, have the bus of one card. */
static void two_ports(void **state)
{
	enum { EACH = 400, OUTSTANDING = 20, LEN = 16384 };
	uint64_t last = 0, from = UINT64_MAX;
	struct pair p[2];

	open_ports(&p[0], NULL, &cx5, 1, 1);
	open_ports(&p[1], &p[0], &cx5, 1, 1);
	/* With some outstanding, in turns: the engine would execute those of one port after those of the
	 * other */
	for (unsigned k = 0; k < EACH; k++) {
		for (unsigned i = 0; i < 2; i++) {
			post(&p[i], 0, WQE_OP_WRITE, LEN, SIG);
			if (k % OUTSTANDING < OUTSTANDING - 1)
				continue;
			rig_ring(&p[i].qp[0][0]);
			run(&p[i]);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < EACH; k++) {
			uint64_t at = stamp(rig_cq_next(&p[i].cq[0][0]));

			from = at < from ? at : from;
			last = at > last ? at : last;
		}
	}
	assert_rate((2 * EACH - 1) * 1e3 / (double)(last - from), 99.6e3 / 8 / LEN);
	/* the card stays as long as one of its ports */
	close_pair(&p[0]);
	post(&p[1], 0, WQE_OP_NOP, 0, SIG);
	rig_ring(&p[1].qp[0][0]);
	run(&p[1]);
	assert_true(stamp(rig_cq_next(&p[1].cq[0][0])) >= last);
	close_pair(&p[1]);
}

/* ---- what follows ----------------------------------------------------------------------- */

/* Which order the engine chooses matters little to what share a unit, and not at all to what shares none. */
static void seeds_agree(void **state)
{
	double first = rate(&cx5, INLINE_WRITE, 64, 1);

	for (uint64_t seed = 1; seed < 6; seed++) {
		assert_true(rate(&cx5, INLINE_WRITE, 64, seed) == rate(&cx5, INLINE_WRITE, 64, seed));
		assert_rate(rate(&cx5, INLINE_WRITE, 64, seed), first);
	}
}

/* A ping-pong by software that takes no time: both sides' CQEs are on one axis. */
static void round_trip(void **state)
{
	uint64_t at[2], half;
	struct pair p;

	open_pair(&p, &cx5, 1, 1);
	for (unsigned d = 0; d < 2; d++)
		for (unsigned i = 0; i < 8; i++)
			rig_recv(&p.qp[d][0], 1, p.data[d], 64u);
	post(&p, 0, WQE_OP_SEND, 64, 0);
	rig_ring(&p.qp[0][0]);
	run(&p);
	at[1] = stamp(rig_cq_next(&p.cq[1][0]));
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned d = 2; d-- > 0;) {
			wqe_send(&p.qp[d][0], WQE_OP_SEND, p.data[d], 64, 0, 0);
			rig_ring(&p.qp[d][0]);
			run(&p);
			at[!d] = stamp(rig_cq_next(&p.cq[!d][0]));
			half = at[!d] - at[d];
			/* as a WRITE of what is read first, without the way back of its acknowledgement */
			assert_near(half, 1922 - 125, 1);
		}
	}
	close_pair(&p);
}

/* One after the other, on a CQ whose software takes its time for each message. */
static void software_thinks(void **state)
{
	struct hw_software *software = hw_software_new(5000000, false);
	struct rig_cq scq, rcq;
	struct rig rig;
	struct rig_qp q;
	uint64_t arrived = 0, replied;

	rig_open(&rig, &(struct hw_config){.seed = 1, .costs = &cx5});
	rig_cq_new(&rig, &scq, 6);
	rig_cq_new_attr(&rig, &rcq, (struct hw_cq_attr){.log_size = 6, .software = software});
	rig_qp_new(&rig, &q, &scq, &rcq);
	rig_connect(&q, &q);
	for (unsigned i = 0; i < 3; i++) {
		rig_recv(&q, 0);
		wqe_send(&q, WQE_OP_SEND, NULL, 0, 0, 0);
	}
	rig_ring(&q);
	rig_run(&rig);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t at = stamp(rig_cq_next(&rcq));

		arrived = i ? arrived : at;
	}
	wqe_nop(&q, 1, SIG);
	rig_ring(&q);
	rig_run(&rig);
	replied = stamp(rig_cq_next(&scq));
	assert_near(replied - arrived, 3 * 5000 + 1210, 1);
	hw_software_put(software); /* the CQ has one more */
	rig_destroy(&q);
	assert_int_equal(hw_cq_destroy(rig.dev, scq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, rcq.cq), 0);
	rig_close(&rig);
}

/* Two queues of one process, each with a CQE of its own that could be why it posts. When it gets the CQE of
 * the first queue, it posts to the second, and then the same again: without @in_turn the second queue knows
 * only its own. Returns the ns of the second time. */
static double ask_two(bool in_turn)
{
	struct hw_software *software = hw_software_new(0, in_turn);
	struct rig_cq cq[2];
	struct rig_qp q[2];
	struct rig rig;
	uint64_t at[2][2];

	rig_open(&rig, &(struct hw_config){.seed = 1, .costs = &cx5});
	for (unsigned k = 0; k < 2; k++) {
		rig_cq_new_attr(&rig, &cq[k], (struct hw_cq_attr){.log_size = 6, .software = software});
		rig_qp_new(&rig, &q[k], &cq[k], &cq[k]);
		rig_connect(&q[k], &q[k]);
	}
	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned k = 0; k < 2; k++) {
			wqe_nop(&q[k], 1, SIG);
			rig_ring(&q[k]);
			rig_run(&rig);
			at[turn][k] = stamp(rig_cq_next(&cq[k]));
		}
	hw_software_put(software);
	for (unsigned k = 0; k < 2; k++) {
		rig_destroy(&q[k]);
		assert_int_equal(hw_cq_destroy(rig.dev, cq[k].cq), 0);
	}
	rig_close(&rig);
	return (double)(at[1][1] - at[0][1]);
}

static void software_in_turn(void **state)
{
	assert_near(ask_two(false), 1210, 1);
	assert_near(ask_two(true), 2 * 1210, 1);
}

/* READs take turns with everything else, and no CQE of a CQ is older than the one before. */
static void monotone(void **state)
{
	static const uint8_t ops[] = {WQE_OP_NOP, WQE_OP_READ, WQE_OP_WRITE, WQE_OP_CAS};
	struct pair p;

	for (uint64_t seed = 1; seed < 20; seed++) {
		open_pair(&p, &cx5, 4, seed);
		srand((unsigned)seed);
		for (unsigned i = 0; i < 400; i++)
			post(&p, i % 4, ops[rand() % 4], 1u << rand() % 12, i % 3 ? SIG : SIG | FENCE);
		for (unsigned i = 0; i < 4; i++)
			rig_ring(&p.qp[0][i]);
		run(&p);
		for (unsigned i = 0; i < 4; i++) {
			uint64_t last = 0;
			const uint8_t *cqe;
			unsigned n = 0;

			for (; (cqe = rig_cq_next(&p.cq[0][i])); n++) {
				assert_true(stamp(cqe) >= last);
				last = stamp(cqe);
			}
			assert_int_equal(n, 100);
		}
		close_pair(&p);
	}
}

/* The fence of a WRITE costs the latency of the READ before it, less what they have in common. */
static void fence(void **state)
{
	uint64_t at[2];
	struct pair p;

	for (unsigned fenced = 0; fenced < 2; fenced++) {
		uint64_t before;

		open_pair(&p, &cx5, 1, 1);
		post(&p, 0, WQE_OP_READ, 64, SIG);
		post(&p, 0, WQE_OP_NOP, 0, fenced ? SIG | FENCE : SIG);
		rig_ring(&p.qp[0][0]);
		run(&p);
		before = stamp(rig_cq_next(&p.cq[0][0]));
		at[fenced] = stamp(rig_cq_next(&p.cq[0][0])) - before;
		close_pair(&p);
	}
	assert_int_equal(at[0], 0); /* was done before the READ, but completes after it */
	assert_near(at[1], 170, 1);
}

/* A WAIT for CQE 1 of its own queue, and then one for @index: how long after that CQE it ends. */
static uint64_t two_waits(uint32_t index)
{
	uint64_t before;
	struct pair p;

	open_pair(&p, &cx5, 1, 1);
	post(&p, 0, WQE_OP_NOP, 0, SIG);
	post(&p, 0, WQE_OP_NOP, 0, SIG);
	wqe_wait(&p.qp[0][0], hw_cqn(p.cq[0][0].cq), 1, 0);
	wqe_wait(&p.qp[0][0], hw_cqn(p.cq[0][0].cq), index, SIG);
	rig_ring(&p.qp[0][0]);
	run(&p);
	assert_non_null(rig_cq_next(&p.cq[0][0]));
	before = stamp(rig_cq_next(&p.cq[0][0]));
	before = stamp(rig_cq_next(&p.cq[0][0])) - before;
	close_pair(&p);
	return before;
}

/* What comes before the first CQE has no time: to wait for that takes no longer than for one long past. */
static void wait_before_first(void **state)
{
	assert_near(two_waits(0), 2 * 20, 1); /* order.completion - order.wq */
	assert_int_equal(two_waits(0xffffff), two_waits(0));
	assert_int_equal(two_waits(0xfffffe), two_waits(0));
	assert_int_equal(two_waits(0x800002), two_waits(0)); /* the last of the half window */
}

/* ---- calendars -------------------------------------------------------------------------- */

static void calendar(void **state)
{
	static struct hw_calendar c;
	uint64_t total = 0, end = 0, n;

	assert_int_equal(hw_calendar_take(&c, 100, 10), 110);
	assert_int_equal(hw_calendar_take(&c, 105, 10), 120);
	assert_int_equal(hw_calendar_take(&c, 0, 10), 10);
	assert_int_equal(hw_calendar_take(&c, 50, 50), 100); /* fills the gap to the brim */
	assert_int_equal(hw_calendar_take(&c, 5, 45), 125);  /* 40 before, 5 behind all the others */
	assert_int_equal(hw_calendar_take(&c, 0, 0), 0);
	c.n = 0;
	/* In any order, the total taken is the total asked for */
	srand(1);
	for (unsigned i = 0; i < 300; i++) {
		n = (unsigned)rand() % 50;
		total += n;
		n = hw_calendar_take(&c, (unsigned)rand() % 4000, n);
		end = n > end ? n : end;
	}
	for (unsigned i = 0; i < c.n; i++) {
		assert_true(c.busy[i].from < c.busy[i].to);
		assert_true(!i || c.busy[i - 1].to <= c.busy[i].from);
		total -= c.busy[i].to - c.busy[i].from;
	}
	assert_int_equal(total, 0);
	assert_true(end <= 4000 + 300 * 50);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(hw_calendar_take(&c, 100000 + i * 100, 10), 100000 + i * 100 + 10);
	assert_true(c.n <= HW_CLOCK_FREE);
}

/* ---- the file --------------------------------------------------------------------------- */

static void bad_files(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{"noop = 1.21;", "", "latency.noop is missing"},
		{"noop = 1.21;", "noop = \"fast\";", "latency.noop must be a number"},
		{"noop = 1.21;", "noop = -1.0;", "latency.noop must be a number"},
		{"noop = 1.21;", "noop = 1.21; nop = 1.0;", "latency.nop is no figure"},
		{"noop = 1.21;", "noop = 1.59;", "placing a WRITE"},
		{"wq = 0.17;", "wq = 0.3;", "a WAIT (order.completion - order.wq)"},
		{"order = {", "order = [", "line "},
	};
	static char text[8192], changed[8192];
	char path[] = "/tmp/softcx-clock-XXXXXX", why[200];
	FILE *f = fopen(COSTS "/cx5.conf", "re");
	struct costs costs;
	int fd = mkstemp(path);

	assert_non_null(f);
	assert_true(fd >= 0);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *at = strstr(text, cases[i].from);

		assert_non_null(at);
		snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, cases[i].to,
			at + strlen(cases[i].from));
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(changed, f);
		fclose(f);
		assert_int_equal(costs_read(path, &costs, why, sizeof(why)), -EINVAL);
		if (!strstr(why, cases[i].why))
			fail_msg("\"%s\" has no \"%s\"", why, cases[i].why);
	}
	close(fd);
	unlink(path);
	assert_int_equal(costs_read(path, &costs, why, sizeof(why)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latencies),
		cmocka_unit_test(orders),
		cmocka_unit_test(doorbell_order),
		cmocka_unit_test(throughputs),
		cmocka_unit_test(bandwidths),
		cmocka_unit_test(two_ports),
		cmocka_unit_test(seeds_agree),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(software_thinks),
		cmocka_unit_test(software_in_turn),
		cmocka_unit_test(monotone),
		cmocka_unit_test(fence),
		cmocka_unit_test(wait_before_first),
		cmocka_unit_test(calendar),
		cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests(tests, read_costs, NULL);
}
