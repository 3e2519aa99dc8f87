/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.c - what programs of others ask of verbs, through the ordinary libraries: to be run under
 * `softcx run`. Exits 0 when everything went as on a ConnectX under Linux, else 1 after a line about the
 * failure.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "test-verbs:%d: %s: %s\n", __LINE__, #cond, strerror(errno));        \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	CHECK((ctx = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	CHECK((pd = ibv_alloc_pd(ctx)));
}

/* An RC queue pair connected to itself. */
static struct ibv_qp *new_loop(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 10,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};

	CHECK(qp);
	a.dest_qp_num = qp->qp_num;
	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	a.ah_attr.dlid = port.lid; /* 0 on RoCE */
	CHECK(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid) == 0);
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		0);
	a.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(qp, &a,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &a,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	return qp;
}

static void post_write(struct ibv_qp *qp, uint64_t from, uint64_t to, uint32_t key)
{
	struct ibv_sge sge = {.addr = from, .length = 8, .lkey = key};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = to, .rkey = key}};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static enum ibv_wc_status completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	CHECK(n == 1);
	return wc.status;
}

/* A region changes its rights; its key stays what it is. */
static void rereg_keeps_the_key(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_qp *qp = new_loop(cq);
	static uint64_t words[2];
	struct ibv_mr *mr = ibv_reg_mr(other, words, sizeof(words), 0);
	uint32_t key;

	CHECK(mr);
	key = mr->lkey;
	words[0] = 0x5e1f;
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == 0);
	CHECK(mr->lkey == key && mr->rkey == key);
	post_write(qp, (uintptr_t)&words[0], (uintptr_t)&words[1], key);
	CHECK(completion(cq) == IBV_WC_SUCCESS);
	CHECK(words[1] == 0x5e1f);
	CHECK(ibv_dealloc_pd(other) == 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0);
	CHECK(mr->rkey == key);
	post_write(qp, (uintptr_t)&words[0], (uintptr_t)&words[1], key);
	CHECK(completion(cq) == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* A CQ shrinks as far as its unread completions allow, and loses none. */
static void resize_loses_nothing(void)
{
	enum { WRITES = 20 };
	struct ibv_cq *cq = ibv_create_cq(ctx, 63, NULL, NULL, 0);
	struct ibv_qp *qp = new_loop(cq);
	static volatile uint64_t words[WRITES + 1];
	struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)words, sizeof(words),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_wc wc;

	CHECK(mr);
	words[0] = 1;
	for (unsigned i = 0; i < WRITES; i++)
		post_write(qp, (uintptr_t)&words[0], (uintptr_t)&words[i + 1], mr->lkey);
	CHECK(completion(cq) == IBV_WC_SUCCESS);
	for (unsigned i = 1; i < WRITES / 2; i++)
		CHECK(completion(cq) == IBV_WC_SUCCESS);
	while (!words[WRITES])
		sched_yield();
	/* the last CQEs may still be on their way: each try sees at least those of the WRITEs before */
	CHECK(ibv_resize_cq(cq, 3) == EINVAL);
	CHECK(cq->cqe == 63);
	CHECK(ibv_resize_cq(cq, 31) == 0);
	CHECK(cq->cqe == 31);
	for (unsigned i = WRITES / 2; i < WRITES; i++)
		CHECK(completion(cq) == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static struct ibv_qp *new_with_flags(struct ibv_cq *cq, enum ibv_qp_type type, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = flags,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	return ibv_create_qp_ex(ctx, &init);
}

static void create_flags(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_qp *qp = new_with_flags(cq, IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);

	CHECK(qp);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(!new_with_flags(cq, IBV_QPT_UD, IBV_QP_CREATE_SCATTER_FCS) && errno == EOPNOTSUPP);
	CHECK(!new_with_flags(cq, IBV_QPT_RAW_PACKET, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) &&
		errno == EOPNOTSUPP);
	CHECK(!new_with_flags(cq, IBV_QPT_RAW_PACKET, 0) && errno == EOPNOTSUPP);
	CHECK(ibv_destroy_cq(cq) == 0);
}

/* A shared receive queue of no WQE can be made and modified, and takes none. */
static void srq_of_nothing(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 0, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_recv_wr wr = {0}, *bad;

	CHECK(srq);
	CHECK(init.attr.max_wr == 0);
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) != 0);
	CHECK(ibv_destroy_srq(srq) == 0);
}

/* As many as max_srq_wr reports, which the library asks for with its own ones added */
static void srq_of_the_maximum(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_sge = 1}};
	struct ibv_device_attr device;
	struct ibv_srq *srq;

	CHECK(ibv_query_device(ctx, &device) == 0);
	init.attr.max_wr = (uint32_t)device.max_srq_wr;
	srq = ibv_create_srq(pd, &init);
	CHECK(srq);
	CHECK(init.attr.max_wr >= (uint32_t)device.max_srq_wr);
	CHECK(ibv_destroy_srq(srq) == 0);
}

/* What was rung before a queue pair ends is sent: on PCIe the ring is ahead of the command. */
static void rung_before_the_end(void)
{
	enum { ROUNDS = 1000 };
	static uint64_t words[2];
	struct ibv_mr *mr =
		ibv_reg_mr(pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_attr end = {.qp_state = IBV_QPS_ERR};
	int lost = 0;

	CHECK(mr && cq);
	for (words[0] = 1; words[0] <= ROUNDS; words[0]++) {
		struct ibv_qp *qp = new_loop(cq);

		post_write(qp, (uintptr_t)&words[0], (uintptr_t)&words[1], mr->lkey);
		if (words[0] % 2)
			CHECK(ibv_modify_qp(qp, &end, IBV_QP_STATE) == 0);
		CHECK(ibv_destroy_qp(qp) == 0);
		lost += __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != words[0];
	}
	CHECK(lost == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Time stamps of completions as wall-clock time, which the library computes from the clock-info page. */
static void wall_clock(void)
{
	const uint64_t second = 1000000000;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct ibv_poll_cq_attr poll_attr = {0};
	static uint64_t words[2];
	struct ibv_mr *mr =
		ibv_reg_mr(pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	uint64_t before = wall_ns(), stamp;
	struct mlx5dv_clock_info info;
	struct ibv_qp *qp;

	CHECK(cq && mr);
	qp = new_loop(ibv_cq_ex_to_cq(cq));
	post_write(qp, (uintptr_t)&words[0], (uintptr_t)&words[1], mr->lkey);
	while (ibv_start_poll(cq, &poll_attr) == ENOENT)
		sched_yield();
	CHECK(cq->status == IBV_WC_SUCCESS);
	stamp = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	/* the machine's clock may be set meanwhile; 1970 or ticks are far away */
	CHECK(stamp > before - 60 * second && stamp < wall_ns() + 60 * second);
	CHECK(mlx5dv_get_clock_info(ctx, &info) == 0);
	CHECK(mlx5dv_ts_to_ns(&info, info.last_cycles) == info.nsec);
	CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, ctx->cmd_fd, 7 << 8 << 12) == MAP_FAILED);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

int main(int argc, char **argv)
{
	open_device();
	if (argc > 1 && strcmp(argv[1], "wall-clock") == 0) {
		wall_clock();
	} else {
		rereg_keeps_the_key();
		resize_loses_nothing();
		create_flags();
		srq_of_nothing();
		srq_of_the_maximum();
		rung_before_the_end();
	}
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
	return 0;
}
