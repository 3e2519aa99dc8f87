/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mw.c - memory windows through the ordinary libraries: to be run under `softcx run`.
 *
 * A queue connected to itself binds windows of both types and writes through them, until they show nothing
 * any more. Exits 0 when everything went as promised, else 1 after a line about the failure.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "test-mw:%d: %s: %s\n", __LINE__, #cond, strerror(errno));           \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

enum { BYTES = 8192, SHOWN = 4096, LEN = 64 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *mem;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;

	CHECK(list && list[0]);
	CHECK((ctx = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	CHECK(ibv_query_device(ctx, &attr) == 0);
	CHECK(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	CHECK(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	CHECK((pd = ibv_alloc_pd(ctx)));
	CHECK((cq = ibv_create_cq(ctx, 64, NULL, NULL, 0)));
	CHECK((mem = aligned_alloc(4096, BYTES)));
	memset(mem, 0, BYTES);
	CHECK((mr = ibv_reg_mr(pd, mem, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)));
}

static void to(enum ibv_qp_state state)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = state,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 10,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};
	int mask = state == IBV_QPS_INIT  ? IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		   : state == IBV_QPS_RTR ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		   : state == IBV_QPS_RTS ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
					  : 0;

	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	a.ah_attr.dlid = port.lid; /* 0 on RoCE */
	CHECK(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid) == 0);
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE | mask) == 0);
}

static void connect_queue(void)
{
	to(IBV_QPS_RESET);
	to(IBV_QPS_INIT);
	to(IBV_QPS_RTR);
	to(IBV_QPS_RTS);
}

static enum ibv_wc_status completion(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		poll(NULL, 0, 0);
	CHECK(n == 1);
	CHECK(wc.status != IBV_WC_SUCCESS || wc.opcode == opcode);
	return wc.status;
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	CHECK(ibv_post_send(qp, wr, &bad) == 0);
}

static enum ibv_wc_status write_through(uint32_t rkey, const char *words)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mem, .length = LEN, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)mem + SHOWN, .rkey = rkey}};
	enum ibv_wc_status status;

	strcpy((char *)mem, words);
	post(&wr);
	status = completion(IBV_WC_RDMA_WRITE);
	CHECK((status == IBV_WC_SUCCESS) == (strcmp((char *)mem + SHOWN, words) == 0));
	return status;
}

static const struct ibv_mw_bind_info nothing;

static struct ibv_mw_bind_info something(void)
{
	return (struct ibv_mw_bind_info){.mr = mr,
		.addr = (uintptr_t)mem + SHOWN,
		.length = LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
}

static void type_1(void)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = something()};
	struct ibv_mw *mw;
	uint32_t first;

	CHECK((mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1)));
	CHECK(ibv_bind_mw(qp, mw, &bind) == 0);
	CHECK(completion(IBV_WC_BIND_MW) == IBV_WC_SUCCESS);
	first = mw->rkey;
	CHECK(write_through(first, "type 1") == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) != 0);           /* a window shows a part of it */
	CHECK(ibv_bind_mw(qp, mw, &bind) == 0); /* anew: the old key ends */
	CHECK(completion(IBV_WC_BIND_MW) == IBV_WC_SUCCESS);
	CHECK(mw->rkey != first);
	CHECK(write_through(mw->rkey, "again") == IBV_WC_SUCCESS);
	CHECK(write_through(first, "by the old key") == IBV_WC_REM_ACCESS_ERR);
	connect_queue();
	bind.bind_info = nothing;
	CHECK(ibv_bind_mw(qp, mw, &bind) == 0);
	CHECK(completion(IBV_WC_BIND_MW) == IBV_WC_SUCCESS);
	CHECK(write_through(mw->rkey, "nothing") == IBV_WC_REM_ACCESS_ERR);
	connect_queue();
	CHECK(ibv_dealloc_mw(mw) == 0);
}

static void bind_type_2(struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW, .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = something()}};

	post(&wr);
	CHECK(completion(IBV_WC_BIND_MW) == IBV_WC_SUCCESS);
	mw->rkey = rkey;
	CHECK(write_through(rkey, "type 2") == IBV_WC_SUCCESS);
	memset(mem + SHOWN, 0, LEN);
}

static void type_2(void)
{
	struct ibv_recv_wr *bad_recv, recv = {0};
	struct ibv_send_wr wr;
	struct ibv_mw *mw;

	CHECK((mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2)));
	for (int remotely = 0; remotely < 2; remotely++) {
		bind_type_2(mw, ibv_inc_rkey(mw->rkey));
		if (remotely) {
			CHECK(ibv_post_recv(qp, &recv, &bad_recv) == 0);
			wr = (struct ibv_send_wr){
				.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = mw->rkey};
			post(&wr);
			CHECK(completion(IBV_WC_RECV) == IBV_WC_SUCCESS);
			CHECK(completion(IBV_WC_SEND) == IBV_WC_SUCCESS);
		} else {
			wr = (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey};
			post(&wr);
			CHECK(completion(IBV_WC_LOCAL_INV) == IBV_WC_SUCCESS);
		}
		CHECK(write_through(mw->rkey, "invalid") == IBV_WC_REM_ACCESS_ERR);
		connect_queue();
	}
	bind_type_2(mw, ibv_inc_rkey(mw->rkey));
	wr = (struct ibv_send_wr){.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = something()}};
	post(&wr); /* it is not free */
	CHECK(completion(IBV_WC_BIND_MW) == IBV_WC_MW_BIND_ERR);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

int main(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	open_device();
	init.send_cq = init.recv_cq = cq;
	CHECK((qp = ibv_create_qp(pd, &init)));
	connect_queue();
	type_1();
	type_2();
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
	free(mem);
	return 0;
}
