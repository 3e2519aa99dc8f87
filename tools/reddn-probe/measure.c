/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-probe/measure.h"

#include "costs/costs.h"
#include "mlx5/wqe.h"
#include "reddnd/rnic/device.h"
#include "reddnd/rnic/qp.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { MEASURE_BYTES = 64 /* of every verb in the latencies and rates */ };

struct measured {
	bool remote;                               /* over two ports; else in loopback, and network is 0 */
	double noop, write, read, atomic, network; /* microseconds */
	double wq, completion, doorbell;           /* microseconds that one more NOOP takes */
	unsigned pus;                              /* processing units that the port's queues share */
	double write_rate, read_rate, atomic_rate; /* millions per second */
	double port, pcie;                         /* gigabits per second */
	double timestamp_khz;
};

enum {
	PAGE = 4096,
	QUEUES = 64, /* managed, to the other port */
	BUSY = 32,   /* of them, for rates: more than the device has processing units */
	LOOPS = 8,   /* managed, each to itself, for the bus */
	ALL = QUEUES + LOOPS,
	LOG_CQES = 9,
	EACH = 1 << LOG_CQES, /* requests of a queue in a run, at most */
	WQEBBS = 2 * EACH,
	RING = WQEBBS * RNIC_WQEBB_BYTES,
	CQ_BYTES = EACH * RNIC_CQE_BYTES,
	SKIPPED = 50, /* completions of each queue before a rate is taken */
	REPEATS = 1000,
	CHAINS = 200,
	CHAIN = 50,   /* NOOPs of a long one */
	LONG = 65536, /* bytes of a request for bandwidths */
	LONG_EACH = 64,
	PATIENCE_MS = 10000,
	PACKET_BYTES = 42, /* headers of a packet, as costs/costs.c has them */
};

/* The queues that are not in runs of many */
enum { MASTER, WORKER, ONE, ONE_LOOP, SINGLES };

enum { /* offsets in the block: doorbell records, CQEs, rings, then what is read and written */
	CQES = 3 * PAGE,
	RINGS = CQES + (ALL + SINGLES) * CQ_BYTES,
	MEMORY = RINGS + (ALL + SINGLES) * RING,
	SIZE = MEMORY + 2 * LONG,
};

_Static_assert((ALL + SINGLES) * 2 * RNIC_DB_BYTES <= CQES, "the doorbell records have room");

struct side {
	struct rnic_arena *arena;
	struct rnic_block block;
	struct rnic_cq cq[ALL + SINGLES];
	struct rnic_qp qp[ALL + SINGLES];
	uint32_t given[ALL];  /* CQEs so far */
	uint16_t posted[ALL]; /* WQEBBs of managed queues */
	unsigned n;           /* queues */
};

struct bench {
	struct side own, other;
	struct measured *m;
	bool real_time;
	double khz;
	char *why;
	size_t size;
};

static int failed(struct bench *b, int error, const char *words)
{
	snprintf(b->why, b->size, "%s", words);
	return error;
}

/* ---- queues ----------------------------------------------------------------------------- */

static int init_queue(struct side *s, unsigned i, bool managed)
{
	const struct rnic_cq_attr cq = {.cqes_off = CQES + (uint64_t)i * CQ_BYTES,
		.db_off = (uint64_t)i * 2 * RNIC_DB_BYTES,
		.log_size = LOG_CQES,
		.overrun_ignore = managed};
	const struct rnic_qp_attr qp = {.wq_off = RINGS + (uint64_t)i * RING,
		.sq_wqebbs = WQEBBS,
		.db_off = (uint64_t)(i * 2 + 1) * RNIC_DB_BYTES,
		.send_cq = &s->cq[i],
		.managed = managed};
	int r = rnic_cq_init(&s->cq[i], &s->block, &cq);

	return r == 0 ? rnic_qp_init(&s->qp[i], &s->block, &qp) : r;
}

static int init_side(struct side *s, struct rnic_device *dev)
{
	int r = rnic_arena_new(&s->arena, SIZE);

	s->n = ALL + SINGLES;
	if (r == 0)
		r = rnic_block_init(&s->block, rnic_device_pd(dev), s->arena, SIZE, MEMORY, SIZE - MEMORY);
	for (unsigned i = 0; i < s->n && r == 0; i++)
		r = init_queue(s, i, i < ALL || i == ALL + WORKER);
	return r;
}

static void deinit_side(struct side *s)
{
	for (unsigned i = 0; i < s->n; i++)
		rnic_qp_deinit(&s->qp[i]);
	for (unsigned i = 0; i < s->n; i++)
		rnic_cq_deinit(&s->cq[i]);
	rnic_block_deinit(&s->block);
	if (s->arena)
		rnic_arena_free(s->arena);
}

static bool is_remote(unsigned i)
{
	return i < QUEUES || i == ALL + ONE;
}

static int connect_all(struct bench *b)
{
	int r = 0;

	for (unsigned i = 0; i < b->own.n && r == 0; i++) {
		struct rnic_qp *own = &b->own.qp[i], *other = &b->other.qp[i];

		if (!b->m->remote || !is_remote(i)) {
			r = rnic_qp_connect_self(own, 16);
			continue;
		}
		r = rnic_qp_connect_by_address(own, other, 16);
		if (r == 0)
			r = rnic_qp_connect_by_address(other, own, 16);
	}
	return r;
}

/* ---- WQEs ------------------------------------------------------------------------------- */

struct request {
	uint8_t opcode;
	uint32_t bytes;
	bool inlined;
};

static uint8_t *ctrl(struct rnic_qp *qp, uint16_t index, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	uint8_t *w = qp->sq + (size_t)(index % WQEBBS) * RNIC_WQEBB_BYTES;

	memset(w, 0, (size_t)ds * WQE_DS);
	wqe_put16(w + WQE_INDEX, index);
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, qp->qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

static void put_sge(uint8_t *at, const struct side *s, uint32_t bytes)
{
	wqe_put32(at + WQE_SGE_LEN, bytes);
	wqe_put32(at + WQE_SGE_LKEY, s->block.lkey);
	wqe_put64(at + WQE_SGE_ADDR, s->block.iova);
}

/* Returns its WQEBBs */
static unsigned put_request(struct bench *b, unsigned q, uint16_t index, const struct request *rq)
{
	const struct side *to = b->m->remote && is_remote(q) ? &b->other : &b->own;
	bool atomic = rq->opcode == WQE_OP_CAS;
	unsigned segment = rq->bytes == 0 ? 0 : rq->inlined ? (4 + rq->bytes + WQE_DS - 1) / WQE_DS : 1;
	uint8_t ds = (uint8_t)(2 + atomic + segment);
	uint8_t *w = ctrl(&b->own.qp[q], index, rq->opcode, ds, WQE_SIGNALLED);

	wqe_put64(w + WQE_RADDR, to->block.iova + LONG);
	wqe_put32(w + WQE_RKEY, to->block.rkey);
	if (rq->inlined)
		wqe_put32(w + WQE_RDMA_SGE, WQE_INLINE | rq->bytes);
	else if (rq->bytes)
		put_sge(w + WQE_RDMA_SGE + (atomic ? WQE_DS : 0), &b->own, rq->bytes);
	return (ds + 3u) / 4;
}

static void put_noop(struct rnic_qp *qp, uint16_t index)
{
	ctrl(qp, index, WQE_OP_NOP, 1, WQE_SIGNALLED);
}

static void put_sync(struct rnic_qp *qp, uint16_t index, uint8_t opcode, uint32_t number, uint32_t object)
{
	uint8_t *w = ctrl(qp, index, opcode, 2, 0);

	wqe_put32(w + WQE_SYNC_INDEX, number);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

/* ---- times ------------------------------------------------------------------------------ */

static double microseconds(const struct bench *b, uint64_t from, uint64_t to)
{
	return (double)rnic_stamps_of_clock(b->real_time ? 0 : (uint64_t)b->khz, from, to) * 1e-3;
}

/* Takes @n CQEs; the timestamp of the last */
static int take(struct bench *b, struct rnic_cq *cq, unsigned n, uint64_t *at)
{
	uint64_t until = clock_ms() + PATIENCE_MS;
	struct rnic_cqe cqe;

	while (n) {
		if (!rnic_cq_poll(cq, &cqe)) {
			if (clock_ms() > until)
				return failed(b, -ETIMEDOUT, "a completion did not come");
			continue;
		}
		if (cqe.error)
			return failed(b, -EIO, rnic_syndrome_text(cqe.syndrome));
		*at = cqe.timestamp;
		n--;
	}
	rnic_cq_update(cq);
	return 0;
}

static int peek(struct bench *b, unsigned q, uint32_t n, uint64_t *at)
{
	const struct timespec pause = {.tv_nsec = 100000};
	uint64_t until = clock_ms() + PATIENCE_MS;
	struct rnic_cqe cqe;

	while (!rnic_cq_peek(&b->own.cq[q], n, &cqe)) {
		if (clock_ms() > until)
			return failed(b, -ETIMEDOUT, "a completion did not come");
		nanosleep(&pause, NULL);
	}
	*at = cqe.timestamp;
	return cqe.error ? failed(b, -EIO, rnic_syndrome_text(cqe.syndrome)) : 0;
}

/* ---- figure 8: chains of NOOPs ---------------------------------------------------------- */

enum order { WQ_ORDER, COMPLETION_ORDER, DOORBELL_ORDER };

/* Microseconds from the post to the last completion of @n NOOPs */
static int chain(struct bench *b, enum order order, unsigned n, double *us)
{
	struct rnic_qp *master = &b->own.qp[ALL + MASTER], *worker = &b->own.qp[ALL + WORKER];
	struct rnic_cq *cq = &b->own.cq[ALL + (order == DOORBELL_ORDER ? WORKER : MASTER)];
	uint16_t at = master->sq_posted;
	uint32_t next;
	uint64_t from, to;
	int r;

	put_noop(master, at++);
	rnic_qp_ring(master, at);
	r = take(b, &b->own.cq[ALL + MASTER], 1, &from);
	if (r < 0)
		return r;
	next = cq->consumer;
	for (unsigned i = 0; i < n; i++) {
		if (i && order != WQ_ORDER)
			put_sync(master, at++, WQE_OP_WAIT, (next + i - 1) & 0xffffff, cq->cqn);
		if (order == DOORBELL_ORDER) {
			put_noop(worker, worker->sq_posted++);
			put_sync(master, at++, WQE_OP_SEND_EN, worker->sq_posted, worker->qpn);
		} else {
			put_noop(master, at++);
		}
	}
	rnic_qp_ring(master, at);
	r = take(b, cq, n, &to);
	*us = microseconds(b, from, to);
	return r;
}

static int mean_chain(struct bench *b, enum order order, unsigned n, double *mean)
{
	double us = 0, sum = 0;
	int r = 0;

	for (unsigned i = 0; i < CHAINS && r == 0; i++) {
		r = chain(b, order, n, &us);
		sum += us;
	}
	*mean = sum / CHAINS;
	return r;
}

static int one_more(struct bench *b, enum order order, double *more)
{
	double one, many = 0;
	int r = mean_chain(b, order, 1, &one);

	if (r == 0)
		r = mean_chain(b, order, CHAIN, &many);
	*more = (many - one) / (CHAIN - 1);
	return r;
}

/* ---- figure 7: latencies ---------------------------------------------------------------- */

/* Mean microseconds of a request, one at a time */
static int latency(struct bench *b, unsigned single, const struct request *rq, double *us)
{
	struct rnic_qp *qp = &b->own.qp[ALL + single];
	struct rnic_cq *cq = &b->own.cq[ALL + single];
	uint64_t first = 0, last;
	int r = 0;

	for (unsigned i = 0; i <= REPEATS && r == 0; i++) {
		unsigned bbs = put_request(b, ALL + single, qp->sq_posted, rq);

		rnic_qp_ring(qp, (uint16_t)(qp->sq_posted + bbs));
		r = take(b, cq, 1, i ? &last : &first);
	}
	*us = r == 0 ? microseconds(b, first, last) / REPEATS : 0;
	return r;
}

/* ---- table 3: rates --------------------------------------------------------------------- */

/* @each requests on each of the @n queues: the NIC enables them, one right after the other, and awaits their
 * end */
static int run(struct bench *b, const unsigned *queues, unsigned n, const struct request *rq, unsigned each)
{
	struct rnic_qp *master = &b->own.qp[ALL + MASTER];
	uint16_t at = master->sq_posted;
	uint64_t seen;

	for (unsigned i = 0; i < n; i++) {
		uint16_t *posted = &b->own.posted[queues[i]];

		for (unsigned k = 0; k < each; k++)
			*posted = (uint16_t)(*posted + put_request(b, queues[i], *posted, rq));
		if (*posted % 2) { /* a WQE of two WQEBBs must not cross the end of the ring */
			ctrl(&b->own.qp[queues[i]], *posted, WQE_OP_NOP, 1, 0);
			++*posted;
		}
		put_sync(master, at++, WQE_OP_SEND_EN, *posted, b->own.qp[queues[i]].qpn);
	}
	for (unsigned i = 0; i < n; i++) {
		b->own.given[queues[i]] += each;
		put_sync(master, at++, WQE_OP_WAIT, (b->own.given[queues[i]] - 1) & 0xffffff,
			b->own.cq[queues[i]].cqn);
	}
	put_noop(master, at++);
	rnic_qp_ring(master, at);
	return take(b, &b->own.cq[ALL + MASTER], 1, &seen);
}

/* Millions of requests per second, while all the queues work */
static int rate(struct bench *b, const unsigned *queues, unsigned n, const struct request *rq, unsigned each,
	double *mops)
{
	unsigned skipped = each > 2 * SKIPPED ? SKIPPED : each / 8, done = 0;
	uint64_t from = 0, until = UINT64_MAX, at;
	int r = run(b, queues, n, rq, each);

	for (unsigned i = 0; i < n && r == 0; i++) {
		uint32_t given = b->own.given[queues[i]];

		r = peek(b, queues[i], given - each + skipped, &at);
		from = at > from ? at : from;
		if (r == 0)
			r = peek(b, queues[i], given - 1, &at);
		until = at < until ? at : until;
	}
	for (unsigned i = 0; i < n && r == 0; i++)
		for (unsigned k = 0; k < each && r == 0; k++) {
			r = peek(b, queues[i], b->own.given[queues[i]] - each + k, &at);
			done += at > from && at <= until;
		}
	if (r < 0)
		return r;
	if (until <= from || !done)
		return failed(b, -ETIME, "the queues have not worked at the same time");
	*mops = done / microseconds(b, from, until);
	return 0;
}

/* Queues share processing units; those that share that of the first slow it down. Of 64 queues so many
 * share each */
static int count_pus(struct bench *b, const struct request *rq, unsigned *pus)
{
	double alone, both = 0;
	unsigned shared = 1;
	int r = rate(b, &(unsigned){0}, 1, rq, EACH / 2, &alone);

	for (unsigned q = 1; q < QUEUES && r == 0; q++) {
		r = rate(b, (unsigned[]){0, q}, 2, rq, EACH / 2, &both);
		shared += both < 2 * alone * 0.85;
	}
	*pus = QUEUES / shared;
	return r;
}

/* ---- all of it -------------------------------------------------------------------------- */

static int measure_latencies(struct bench *b)
{
	const struct request write = {WQE_OP_WRITE, MEASURE_BYTES, true},
			     read = {WQE_OP_READ, MEASURE_BYTES, false};
	const struct request cas = {WQE_OP_CAS, 8, false}, empty = {WQE_OP_WRITE, 0, false};
	double there = 0, here = 0;
	int r = mean_chain(b, WQ_ORDER, 1, &b->m->noop);

	if (r == 0)
		r = latency(b, ONE, &write, &b->m->write);
	if (r == 0)
		r = latency(b, ONE, &read, &b->m->read);
	if (r == 0)
		r = latency(b, ONE, &cas, &b->m->atomic);
	if (r == 0 && b->m->remote)
		r = latency(b, ONE, &empty, &there);
	if (r == 0 && b->m->remote)
		r = latency(b, ONE_LOOP, &empty, &here);
	b->m->network = there > here ? there - here : 0;
	if (r == 0)
		r = one_more(b, WQ_ORDER, &b->m->wq);
	if (r == 0)
		r = one_more(b, COMPLETION_ORDER, &b->m->completion);
	return r == 0 ? one_more(b, DOORBELL_ORDER, &b->m->doorbell) : r;
}

static int measure_rates(struct bench *b, unsigned mtu)
{
	const struct request write = {WQE_OP_WRITE, MEASURE_BYTES, true},
			     read = {WQE_OP_READ, MEASURE_BYTES, false};
	const struct request cas = {WQE_OP_CAS, 8, false}, bulk = {WQE_OP_WRITE, LONG, false};
	unsigned busy[BUSY], loops[LOOPS];
	double mops = 0;
	int r;

	for (unsigned i = 0; i < BUSY; i++)
		busy[i] = i;
	for (unsigned i = 0; i < LOOPS; i++)
		loops[i] = QUEUES + i;
	r = rate(b, busy, BUSY, &write, EACH, &b->m->write_rate);
	if (r == 0)
		r = rate(b, busy, BUSY, &read, EACH, &b->m->read_rate);
	if (r == 0)
		r = rate(b, busy, BUSY, &cas, EACH, &b->m->atomic_rate);
	if (r == 0)
		r = count_pus(b, &write, &b->m->pus);
	if (r == 0)
		r = rate(b, loops, LOOPS, &bulk, LONG_EACH, &mops);
	b->m->port = b->m->pcie = mops * LONG * 8 * 1e-3;
	if (r == 0 && b->m->remote) {
		r = rate(b, busy, LOOPS, &bulk, LONG_EACH, &mops);
		b->m->port = mops * (LONG + (double)LONG / mtu * PACKET_BYTES) * 8 * 1e-3;
	}
	return r;
}

/* Sets how timestamps are read */
static int find_clock(struct bench *b, const struct rnic_identity *id)
{
	struct rnic_qp *master = &b->own.qp[ALL + MASTER];
	uint64_t at;
	int r;

	put_noop(master, master->sq_posted);
	rnic_qp_ring(master, (uint16_t)(master->sq_posted + 1));
	r = take(b, &b->own.cq[ALL + MASTER], 1, &at);
	if (r < 0)
		return r;
	b->real_time = rnic_stamp_is_real_time(at);
	b->khz = (double)id->clock_khz;
	b->m->timestamp_khz = b->real_time ? 1e6 : b->khz;
	return b->khz > 0 || b->real_time
		       ? 0
		       : failed(b, -EOPNOTSUPP, "the device does not report its clock's frequency");
}

static int measure(
	struct rnic_device *dev, struct rnic_device *other, struct measured *m, char *why, size_t size)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct rnic_identity id;
	int r;

	if (!b)
		return -ENOMEM;
	*m = (struct measured){.remote = other};
	b->m = m;
	b->why = why;
	b->size = size;
	snprintf(why, size, "the queues for it could not be made");
	r = rnic_identity_read(dev, &id);
	if (r == 0)
		r = init_side(&b->own, dev);
	if (r == 0 && other)
		r = init_side(&b->other, other);
	if (r == 0)
		r = connect_all(b);
	if (r == 0)
		r = find_clock(b, &id);
	if (r == 0)
		r = measure_latencies(b);
	if (r == 0)
		r = measure_rates(b, id.mtu);
	deinit_side(&b->own);
	deinit_side(&b->other);
	free(b);
	return r;
}

/* ---- the file ---- */

DEFINE_CLEANUP(FILE *, fclose)

static void write_head(FILE *f, const struct rnic_device *dev, const struct rnic_device *other)
{
	struct rnic_identity id = {.model = "unknown"};

	rnic_identity_read(dev, &id);
	fprintf(f, "# Times of work requests on a %s (MT%u), firmware %s, measured by reddn-probe %s\n",
		id.model, id.part, id.firmware, REDDN_VERSION);
	if (other)
		fprintf(f, "# from %s to %s.\n\n", rnic_device_name(dev), rnic_device_name(other));
	else
		fprintf(f,
			"# in loopback on %s, without a second port: the network takes no time, and the port "
			"carries what the "
			"bus does.\n\n",
			rnic_device_name(dev));
}

static void write_figures(FILE *f, const struct measured *m)
{
	fprintf(f,
		"# From posting until the completion is seen, of one WR on an idle NIC, microseconds\n"
		"latency = {\n"
		"  bytes = %d;\n"
		"  noop = %.4f;\n"
		"  write = %.4f;  # its data in the WQE\n"
		"  read = %.4f;\n"
		"  atomic = %.4f;  # compare-and-swap\n"
		"  network = %.4f;  # part of these, both ways together\n"
		"};\n\n"
		"# What one more NOOP adds to a chain of them, microseconds\n"
		"order = {\n"
		"  wq = %.4f;\n"
		"  completion = %.4f;\n"
		"  doorbell = %.4f;\n"
		"};\n\n",
		MEASURE_BYTES, m->noop, m->write, m->read, m->atomic, m->network, m->wq, m->completion,
		m->doorbell);
	fprintf(f,
		"# Million verbs per second of one port\n"
		"throughput = {\n"
		"  pus = %u;  # by queues that slow each other down\n"
		"  write = %.3f;\n"
		"  read = %.3f;\n"
		"  atomic = %.3f;\n"
		"};\n\n"
		"# Gigabits per second, of WRITEs of 64 KiB\n"
		"bandwidth = {\n"
		"  port = %.2f;\n"
		"  pcie = %.2f;  # in loopback\n"
		"};\n\n"
		"timestamp_khz = %.0f;\n",
		m->pus, m->write_rate, m->read_rate, m->atomic_rate, m->port, m->pcie, m->timestamp_khz);
}

static int write_file(const char *path, const struct measured *m, const struct rnic_device *dev,
	const struct rnic_device *other)
{
	CLEANUP(fclosep) FILE *f = fopen(path, "we");

	if (!f)
		return TOOL_FAIL(EX_CANTCREAT, "%s: %s", path, strerror(errno));
	write_head(f, dev, other);
	write_figures(f, m);
	return fflush(f) ? TOOL_FAIL(EX_IOERR, "%s: %s", path, strerror(errno)) : 0;
}

int measure_to_file(const char *path, struct rnic_device *dev, struct rnic_device *other)
{
	struct measured m;
	struct costs costs;
	char why[256];
	int r = measure(dev, other, &m, why, sizeof(why));

	if (r < 0)
		return TOOL_FAIL(EX_UNAVAILABLE, "%s cannot be measured: %s", rnic_device_name(dev), why);
	r = write_file(path, &m, dev, other);
	if (r)
		return r;
	if (costs_read(path, &costs, why, sizeof(why)) < 0)
		return TOOL_FAIL(EX_DATAERR, "%s: %s", path, why);
	return 0;
}
