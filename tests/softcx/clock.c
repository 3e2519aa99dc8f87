/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.c - the NIC's clock through the ordinary libraries: to be run under `softcx run` with two devices.
 *
 * "clock machine": timestamps of completions lie between readings of the clock before and after, and the
 * clock goes on while nothing runs. "clock WRITE READ": a WRITE, inline, and a READ of 64 bytes from one
 * device to the other take so many ticks, every time.
 */
#include "util/clock.h"
#include "tests/lib/rc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "clock:%d: %s: %s\n", __LINE__, #cond, strerror(errno));             \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

enum { LEN = 64, TIMES = 200 };

static unsigned inline_bytes; /* of a WRITE */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
	uint64_t khz;
};

static void open_end(struct end *e, struct ibv_device *device)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_device_attr_ex attr;

	CHECK((e->ctx = ibv_open_device(device)));
	CHECK(ibv_query_device_ex(e->ctx, NULL, &attr) == 0);
	CHECK(attr.hca_core_clock && attr.completion_timestamp_mask);
	e->khz = attr.hca_core_clock;
	CHECK((e->pd = ibv_alloc_pd(e->ctx)));
	CHECK((e->cq = ibv_create_cq_ex(e->ctx, &cq)));
	CHECK((e->mem = aligned_alloc(4096, 4096)));
	memset(e->mem, 0, 4096);
	CHECK((e->mr = ibv_reg_mr(e->pd, e->mem, 4096,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)));
	struct ibv_qp_init_attr qp = {.send_cq = ibv_cq_ex_to_cq(e->cq),
		.recv_cq = ibv_cq_ex_to_cq(e->cq),
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_bytes},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1};
	CHECK((e->qp = ibv_create_qp(e->pd, &qp)));
}

static void connect_to(const struct end *e, const struct end *to)
{
	struct rc port = {.ctx = to->ctx};
	struct rc_peer peer;

	rc_query_port(&port);
	port.mr = to->mr;
	peer = rc_self(&port, to->qp);
	rc_connect(e->qp, &peer);
}

static void close_end(struct end *e)
{
	CHECK(ibv_destroy_qp(e->qp) == 0);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)) == 0);
	CHECK(ibv_dereg_mr(e->mr) == 0);
	CHECK(ibv_dealloc_pd(e->pd) == 0);
	CHECK(ibv_close_device(e->ctx) == 0);
	free(e->mem);
}

/* Posts one and polls for it. Its timestamp. */
static uint64_t perform(struct end *e, const struct end *with, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)e->mem, LEN, e->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = inline_bytes && opcode == IBV_WR_RDMA_WRITE ? IBV_SEND_INLINE : 0,
			.wr.rdma = {(uintptr_t)with->mem, with->mr->rkey}};
	struct ibv_poll_cq_attr none = {0};
	uint64_t ts;
	int rc;

	CHECK(ibv_post_send(e->qp, &wr, &bad) == 0);
	while ((rc = ibv_start_poll(e->cq, &none)) == ENOENT)
		;
	CHECK(rc == 0 && e->cq->status == IBV_WC_SUCCESS);
	ts = ibv_wc_read_completion_ts(e->cq);
	ibv_end_poll(e->cq);
	return ts;
}

static uint64_t now(struct end *e)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	CHECK(ibv_query_rt_values_ex(e->ctx, &v) == 0);
	CHECK(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)v.raw_clock.tv_nsec;
}

static uint64_t monotonic(uint64_t khz)
{
	uint64_t ns = clock_ns();

	return ns / 1000000 * khz + ns % 1000000 * khz / 1000000;
}

static void check_machine(struct end *e, const struct end *with)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	uint64_t before, ts, after, start;

	for (unsigned i = 0; i < TIMES; i++) {
		before = now(e);
		ts = perform(e, with, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
		after = now(e);
		CHECK(before && before <= ts && ts <= after);
		if (i % 50 == 0) /* long enough for the clock not to be looked at any more */
			nanosleep(&pause, NULL);
	}
	/* A second of the machine is a second of the NIC */
	start = monotonic(e->khz);
	before = now(e);
	nanosleep(&pause, NULL);
	while (now(e) - before < e->khz * 200)
		;
	CHECK(monotonic(e->khz) - start >= e->khz * 100);
	after = monotonic(e->khz);
	while (now(e) < after) /* the emulated one is the machine's, and may only be late */
		;
	CHECK(now(e) <= monotonic(e->khz));
}

static void check_latency(struct end *e, const struct end *with, enum ibv_wr_opcode opcode, uint64_t want)
{
	uint64_t last = perform(e, with, opcode), ts;

	for (unsigned i = 0; i < TIMES; i++) {
		ts = perform(e, with, opcode);
		if (ts - last + 1 < want || ts - last > want + 1) {
			fprintf(stderr, "clock: %" PRIu64 " ticks, not %" PRIu64 ", after %u\n", ts - last,
				want, i);
			exit(1);
		}
		CHECK(now(e) == ts);
		last = ts;
	}
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end a, b;

	CHECK(list && list[0] && list[1]);
	inline_bytes = argc == 3 ? LEN : 0;
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	ibv_free_device_list(list);
	connect_to(&a, &b);
	connect_to(&b, &a);
	if (argc == 2 && strcmp(argv[1], "machine") == 0) {
		check_machine(&a, &b);
	} else {
		CHECK(argc == 3);
		CHECK(now(&a) == 0); /* before there is a completion, too, it can be read */
		check_latency(&a, &b, IBV_WR_RDMA_WRITE, strtoull(argv[1], NULL, 10));
		check_latency(&a, &b, IBV_WR_RDMA_READ, strtoull(argv[2], NULL, 10));
	}
	close_end(&a);
	close_end(&b);
	return 0;
}
