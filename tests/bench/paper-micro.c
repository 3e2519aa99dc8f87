/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * paper-micro - the microbenchmarks of the RedN paper (section 5.1), from the timestamps of completions. Run
 * it with `softcx run --clock cx5 --devices 2`, or on a NIC whose two ports are connected back to back.
 *
 *	paper-micro [REPEATS]
 *
 * Prints a JSON object per line and number: "us" or "mops" as measured, "paper" as in the paper (null: not in
 * the paper). The costs of the modelled clock were fitted to the "fitted" numbers; the others follow from it.
 * WRITEs of 64 bytes have their data in the WQE (costs/costs.c explains why).
 */
#include "tests/bench/managed.h"
#include "tests/lib/arg.h"
#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned repeats = 1000;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "paper-micro: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void print_row(const char *table, const char *what, unsigned n, const char *unit, double value,
	double paper, bool fitted)
{
	printf("{\"table\": \"%s\", \"what\": \"%s\", \"n\": %u, \"%s\": %.3f, \"paper\": ", table, what, n,
		unit, value);
	if (isnan(paper))
		printf("null");
	else
		printf("%g", paper);
	printf(", \"fitted\": %s}\n", fitted ? "true" : "false");
}

/* ---- one NIC: NOOPs and orders ---------------------------------------------------------- */

enum {
	LOG_RING = 8,
	RING = 1 << LOG_RING,
	CHAIN = 50, /* longest chain */
};

enum order { WQ_ORDER, COMPLETION_ORDER, DOORBELL_ORDER };

static struct managed queues;
static double khz;

/* Waits for @n completions in a CQ of @m and updates the consumer index. Returns the timestamp of the last.
 */
static uint64_t take(struct managed *m, struct rnic_cq *cq, unsigned n)
{
	const uint8_t *last = NULL;
	struct rnic_cqe cqe;
	uint64_t be;

	for (unsigned i = 0; i < n; i++) {
		last = cq->cqes + (size_t)(cq->consumer & (m->ring - 1)) * RNIC_CQE_BYTES;
		while (!rnic_cq_poll(cq, &cqe))
			if (rnic_cq_find_error(&m->master_cq, &cqe))
				break;
		errno = EIO;
		must(!cqe.error, rnic_syndrome_text(cqe.syndrome));
	}
	memcpy(&be, last + 48, sizeof(be));
	rnic_cq_update(cq);
	return be64toh(be);
}

static void put_noop(struct rnic_qp *qp, uint16_t index)
{
	managed_wqe(&queues, qp, index, WQE_OP_NOP, 1, WQE_SIGNALLED);
}

static void put_sync(uint8_t opcode, uint32_t index, uint32_t object)
{
	uint8_t *w = managed_wqe(&queues, &queues.master, queues.master.sq_posted++, opcode, 2, 0);

	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

/* Microseconds from the post to the last completion of @n NOOPs. */
static double chain(enum order order, unsigned n)
{
	struct rnic_cq *cq = order == DOORBELL_ORDER ? &queues.worker_cq : &queues.master_cq;
	uint64_t from, to;
	uint32_t next;

	put_noop(&queues.master, queues.master.sq_posted++);
	managed_ring(&queues);
	from = take(&queues, &queues.master_cq, 1);
	next = cq->consumer;
	for (unsigned i = 0; i < n; i++) {
		if (i && order != WQ_ORDER)
			put_sync(WQE_OP_WAIT, (next + i - 1) & 0xffffff, cq->cqn);
		if (order == DOORBELL_ORDER) {
			put_noop(&queues.worker, queues.worker_posted++);
			put_sync(WQE_OP_SEND_EN, queues.worker_posted, queues.worker.qpn);
		} else {
			put_noop(&queues.master, queues.master.sq_posted++);
		}
	}
	managed_ring(&queues);
	to = take(&queues, cq, n);
	return (double)(to - from) / khz * 1e3;
}

static double mean_chain(enum order order, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < repeats; i++)
		sum += chain(order, n);
	return sum / repeats;
}

static void figure_8(void)
{
	static const struct {
		const char *name;
		double paper; /* for one more */
	} orders[] = {{"WQ order", 0.17}, {"completion order", 0.19}, {"doorbell order", 0.54}};
	static const unsigned lengths[] = {1, 2, 5, 10, 20, CHAIN};
	double us = 0, one = 0;

	for (unsigned o = WQ_ORDER; o <= DOORBELL_ORDER; o++) {
		for (unsigned i = 0; i < COUNT(lengths); i++) {
			us = mean_chain(o, lengths[i]);
			if (i == 0)
				one = us;
			print_row("figure 8", orders[o].name, lengths[i], "us", us,
				i == 0 && o == WQ_ORDER ? 1.21 : NAN, i == 0 && o == WQ_ORDER);
		}
		print_row("figure 8, one more", orders[o].name, 1, "us", (us - one) / (CHAIN - 1),
			orders[o].paper, true);
	}
}

/* ---- one NIC: the paper's if ------------------------------------------------------------- */

/* Places for what a branch copies */
enum { FROM = 64, TO = 128, OLD = 192 };

static void put_remote(const struct managed *m, uint8_t *w, uint64_t off)
{
	wqe_put64(w + WQE_RADDR, m->block.iova + off);
	wqe_put32(w + WQE_RKEY, m->block.rkey);
}

static void put_sge(const struct managed *m, uint8_t *sge, uint64_t off, uint32_t len)
{
	wqe_put32(sge + WQE_SGE_LEN, len);
	wqe_put32(sge + WQE_SGE_LKEY, m->block.lkey);
	wqe_put64(sge + WQE_SGE_ADDR, m->block.iova + off);
}

/*
 * 1C + 1A + 3E, as in table 2: a CAS makes a WRITE of the NOOP that has the operands, a WAIT for the CAS, an
 * ENABLE of the WRITE, and a WAIT for it. The condition holds. @master, @worker: the CQEs that are waited
 * for.
 */
static void put_if(uint32_t master, uint32_t worker)
{
	uint8_t *branch, *cas;
	uint64_t was, taken;

	branch = managed_wqe(&queues, &queues.worker, queues.worker_posted, WQE_OP_NOP, 3, WQE_SIGNALLED);
	put_remote(&queues, branch, TO);
	put_sge(&queues, branch + WQE_RDMA_SGE, FROM, 8);
	memcpy(&was, branch, sizeof(was));
	taken = was | htole64((uint64_t)WQE_OP_WRITE << 8 * WQE_OPCODE);
	cas = managed_wqe(&queues, &queues.master, queues.master.sq_posted++, WQE_OP_CAS, 4, WQE_SIGNALLED);
	put_remote(&queues, cas, MANAGED_DATA + (uint64_t)(branch - queues.master.sq));
	/* the NIC compares words of the host's byte order */
	wqe_put64(cas + WQE_ATOMIC, le64toh(taken));
	wqe_put64(cas + WQE_ATOMIC + 8, le64toh(was));
	put_sge(&queues, cas + WQE_ATOMIC + WQE_DS, OLD, 8);
	put_sync(WQE_OP_WAIT, master & 0xffffff, queues.master_cq.cqn);
	put_sync(WQE_OP_SEND_EN, ++queues.worker_posted, queues.worker.qpn);
	put_sync(WQE_OP_WAIT, worker & 0xffffff, queues.worker_cq.cqn);
}

/* Microseconds from the post to the last completion of @n of them. */
static double ifs(unsigned n)
{
	uint32_t master = queues.master_cq.consumer + 1, worker = queues.worker_cq.consumer;
	uint64_t from, to;

	put_noop(&queues.master, queues.master.sq_posted++);
	managed_ring(&queues);
	from = take(&queues, &queues.master_cq, 1);
	for (unsigned i = 0; i < n; i++)
		put_if(master + i, worker + i);
	managed_ring(&queues);
	to = take(&queues, &queues.worker_cq, n);
	take(&queues, &queues.master_cq, n);
	return (double)(to - from) / khz * 1e3;
}

static void table_3_ifs(void)
{
	double one = 0, many = 0;

	for (unsigned i = 0; i < repeats; i++) {
		one += ifs(1);
		many += ifs(CHAIN);
	}
	print_row("table 3, constructs", "if, as in the paper", CHAIN, "mops",
		(CHAIN - 1) * repeats / (many - one), 0.7, false);
}

/* ---- two NICs: verbs -------------------------------------------------------------------- */

enum { QUEUES = 32, DEPTH = 16, WARM = 50, BYTES = 64, MEMORY = 1 << 20 };

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq[QUEUES];
	struct ibv_qp *qp[QUEUES];
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
};

static void open_end(struct end *e, struct ibv_device *dev)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = DEPTH, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_device_attr_ex attr;

	must((e->ctx = ibv_open_device(dev)), "a device");
	must(ibv_query_device_ex(e->ctx, NULL, &attr) == 0 && attr.hca_core_clock, "the clock");
	khz = (double)attr.hca_core_clock;
	must((e->pd = ibv_alloc_pd(e->ctx)), "a PD");
	must((e->mem = aligned_alloc(4096, MEMORY)), "memory");
	memset(e->mem, 0, MEMORY);
	must((e->mr = ibv_reg_mr(e->pd, e->mem, MEMORY,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC)),
		"an MR");
	must(ibv_query_gid(e->ctx, 1, 1, &e->gid) == 0, "the GID");
	for (unsigned i = 0; i < QUEUES; i++) {
		must((e->cq[i] = ibv_create_cq_ex(e->ctx, &cq)), "a CQ");
		struct ibv_qp_init_attr qp = {.send_cq = ibv_cq_ex_to_cq(e->cq[i]),
			.recv_cq = ibv_cq_ex_to_cq(e->cq[i]),
			.cap = {.max_send_wr = DEPTH,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = BYTES},
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 1};
		must((e->qp[i] = ibv_create_qp(e->pd, &qp)), "a QP");
	}
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 1}}};

	must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
		"INIT");
	a.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &a,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
		"RTR");
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &a,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"RTS");
}

static void close_end(struct end *e)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		ibv_destroy_qp(e->qp[i]);
		ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq[i]));
	}
	ibv_dereg_mr(e->mr);
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->ctx);
	free(e->mem);
}

static void post(const struct end *e, const struct end *to, unsigned i, enum ibv_wr_opcode opcode,
	unsigned flags, uint32_t len, unsigned n)
{
	static struct ibv_send_wr wr[DEPTH];
	bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)e->mem, atomic ? 8 : len, e->mr->lkey};
	struct ibv_send_wr *bad;

	for (unsigned k = 0; k < n; k++) {
		wr[k] = (struct ibv_send_wr){.next = k + 1 < n ? &wr[k + 1] : NULL,
			.sg_list = &sge,
			.num_sge = sge.length ? 1 : 0,
			.opcode = opcode,
			.send_flags = flags};
		if (atomic) {
			wr[k].wr.atomic.remote_addr = (uintptr_t)to->mem;
			wr[k].wr.atomic.rkey = to->mr->rkey;
		} else {
			wr[k].wr.rdma.remote_addr = (uintptr_t)to->mem;
			wr[k].wr.rdma.rkey = to->mr->rkey;
		}
	}
	errno = ibv_post_send(e->qp[i], wr, &bad);
	must(!errno, "posting");
}

static uint64_t poll_ts(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr none = {0};
	uint64_t ts;
	int rc;

	while ((rc = ibv_start_poll(cq, &none)) == ENOENT)
		;
	errno = rc ? rc : EIO;
	must(rc == 0 && cq->status == IBV_WC_SUCCESS, "a completion");
	ts = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	return ts;
}

/* Mean microseconds of a request, one at a time. */
static double latency(
	const struct end *e, const struct end *to, enum ibv_wr_opcode opcode, unsigned flags, uint32_t len)
{
	uint64_t first, last = 0;

	post(e, to, 0, opcode, flags, len, 1);
	first = poll_ts(e->cq[0]);
	for (unsigned i = 0; i < repeats; i++) {
		post(e, to, 0, opcode, flags, len, 1);
		last = poll_ts(e->cq[0]);
	}
	return (double)(last - first) / khz * 1e3 / repeats;
}

/* What QUEUES queues do over and over */
struct load {
	void (*post)(const struct load *l, unsigned queue, unsigned n);
	uint64_t (*poll_ts)(const struct load *l, unsigned queue);
	const struct end *from, *to; /* of a verb */
	const struct verb *verb;
	struct managed *managed; /* of a MAX: QUEUES of them */
};

/*
 * Millions of requests per second, on more queues than the NIC has processing units, with DEPTH on each. Only
 * the time counts in which all queues work.
 */
static double throughput(const struct load *l)
{
	unsigned each = repeats + 2 * WARM, n = 0;
	uint64_t *ts = calloc((size_t)QUEUES * each, sizeof(*ts)), from = 0, until = UINT64_MAX;

	must(ts, "memory");
	for (unsigned i = 0; i < QUEUES; i++)
		l->post(l, i, DEPTH);
	for (unsigned k = 0; k < each; k++) {
		for (unsigned i = 0; i < QUEUES; i++) {
			ts[i * each + k] = l->poll_ts(l, i);
			if (k + DEPTH < each)
				l->post(l, i, 1);
		}
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		if (ts[i * each + WARM] > from)
			from = ts[i * each + WARM];
		if (ts[i * each + WARM + repeats] < until)
			until = ts[i * each + WARM + repeats];
	}
	for (unsigned i = 0; i < QUEUES * each; i++)
		n += ts[i] > from && ts[i] <= until;
	free(ts);
	errno = ETIME;
	must(n, "queues have had their turns one after the other");
	return n / ((double)(until - from) / khz * 1e3);
}

static const struct verb {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	double us, mops; /* from the paper */
} verbs[] = {
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1.6, 63},
	{"READ", IBV_WR_RDMA_READ, 0, 1.8, 65},
	{"CAS", IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1.8, 8.4},
	{"ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1.8, 8.4},
};
enum { VERBS = COUNT(verbs) };

static void post_verb(const struct load *l, unsigned queue, unsigned n)
{
	post(l->from, l->to, queue, l->verb->opcode, l->verb->flags, BYTES, n);
}

static uint64_t poll_verb(const struct load *l, unsigned queue)
{
	return poll_ts(l->from->cq[queue]);
}

static void figure_7_and_table_3(const struct end *a, const struct end *b, const struct end *loop)
{
	for (unsigned i = 0; i < VERBS; i++)
		print_row("figure 7", verbs[i].name, BYTES, "us",
			latency(a, b, verbs[i].opcode, verbs[i].flags, BYTES), verbs[i].us, true);
	print_row("figure 7, longer", "WRITE, not inline", BYTES, "us",
		latency(a, b, IBV_WR_RDMA_WRITE, 0, BYTES), NAN, false);
	for (uint32_t len = 1024; len <= 65536; len *= 8) {
		print_row("figure 7, longer", "WRITE", len, "us", latency(a, b, IBV_WR_RDMA_WRITE, 0, len),
			NAN, false);
		print_row("figure 7, longer", "READ", len, "us", latency(a, b, IBV_WR_RDMA_READ, 0, len), NAN,
			false);
	}
	/* A zero-length WRITE stands for the remote NOOP */
	print_row("figure 7", "network", 0, "us",
		latency(a, b, IBV_WR_RDMA_WRITE, 0, 0) - latency(loop, loop, IBV_WR_RDMA_WRITE, 0, 0), 0.25,
		true);
	for (unsigned i = 0; i < VERBS; i++)
		print_row("table 3", verbs[i].name, BYTES, "mops",
			throughput(&(struct load){post_verb, poll_verb, a, b, &verbs[i], NULL}),
			verbs[i].mops, true);
}

/* ---- one NIC: CALC ----------------------------------------------------------------------- */

enum { OPERANDS = 2 * WQE_CALC_OPERAND, SMALLER = 3, LARGER = 7 };

static void post_max(const struct load *l, unsigned queue, unsigned n)
{
	struct managed *m = &l->managed[queue];

	while (n--) {
		uint8_t *w =
			managed_wqe(m, &m->master, m->master.sq_posted++, WQE_OP_WRITE, 3, WQE_SIGNALLED);

		w[WQE_OPMOD] = WQE_CALC_MAXLOC;
		put_remote(m, w, TO);
		put_sge(m, w + WQE_RDMA_SGE, FROM, OPERANDS);
	}
	managed_ring(m);
}

static uint64_t poll_max(const struct load *l, unsigned queue)
{
	struct managed *m = &l->managed[queue];

	return take(m, &m->master_cq, 1);
}

/* On queues that may calculate, which verbs cannot make */
static void table_3_max(void)
{
	static struct managed m[QUEUES];

	for (unsigned i = 0; i < QUEUES; i++) {
		managed_open(&m[i],
			&(struct managed_attr){.device = "mlx5_0", .log_ring = LOG_RING, .alone = true});
		wqe_put64(m[i].master.sq - MANAGED_DATA + FROM, SMALLER);
		wqe_put64(m[i].master.sq - MANAGED_DATA + FROM + WQE_CALC_OPERAND, LARGER);
	}
	print_row("table 3", "MAX", OPERANDS, "mops",
		throughput(&(struct load){post_max, poll_max, NULL, NULL, NULL, m}), 63, true);
	for (unsigned i = 0; i < QUEUES; i++) {
		errno = EBADMSG;
		must(wqe_get64(m[i].master.sq - MANAGED_DATA + TO) == LARGER, "the maximum");
		managed_close(&m[i]);
	}
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end a, b, loop;

	if (argc > 2 || (argc == 2 && !(repeats = (unsigned)arg_number(argv[1], UINT_MAX)))) {
		fprintf(stderr, "usage: paper-micro [REPEATS]\n");
		return 2;
	}
	must(list && list[0] && list[1], "two devices are needed");
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	open_end(&loop, list[0]);
	for (unsigned i = 0; i < QUEUES; i++) {
		connect_qp(a.qp[i], b.qp[i], &b.gid);
		connect_qp(b.qp[i], a.qp[i], &a.gid);
		connect_qp(loop.qp[i], loop.qp[i], &loop.gid);
	}
	ibv_free_device_list(list);
	managed_open(&queues, &(struct managed_attr){.device = "mlx5_0", .log_ring = LOG_RING});
	print_row("figure 7", "NOOP", 0, "us", mean_chain(WQ_ORDER, 1), 1.21, true);
	figure_7_and_table_3(&a, &b, &loop);
	figure_8();
	table_3_ifs();
	table_3_max();
	managed_close(&queues);
	close_end(&a);
	close_end(&b);
	close_end(&loop);
	return 0;
}
