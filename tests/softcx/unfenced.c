/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unfenced [--fence]: a program with a common mistake: it READs some bytes and WRITEs them on at once, on the
 * same queue. Without the fence flag, the WRITE need not wait for the data of the READ. Exit status: 0 when
 * the bytes arrived, 1 when others did, 2 after another failure.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT = 64, PORT = 1, GID_INDEX = 1 };

static char memory[3 * SLOT] __attribute__((aligned(4096))); /* from, through, to */

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(2);
	}
}

static void connect_to_itself(struct ibv_qp *qp)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = access};

	need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
			0,
		"INIT");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.sgid_index = GID_INDEX}}};
	need(ibv_query_gid(qp->context, PORT, GID_INDEX, &attr.ah_attr.grh.dgid) == 0, "GID");
	need(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
		"RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
	need(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"RTS");
}

int main(int argc, char **argv)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), access) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 4, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = mr && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_sge through = {(uintptr_t)memory + SLOT, SLOT, mr ? mr->lkey : 0};
	struct ibv_send_wr wr[2] = {
		{.next = &wr[1], .sg_list = &through, .num_sge = 1, .opcode = IBV_WR_RDMA_READ},
		{.sg_list = &through,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED |
				      (argc > 1 && strcmp(argv[1], "--fence") == 0 ? IBV_SEND_FENCE : 0)},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	need(qp != NULL, "no queue pair");
	connect_to_itself(qp);
	memset(memory, 'x', SLOT);
	wr[0].wr.rdma.rkey = wr[1].wr.rdma.rkey = mr->rkey;
	wr[0].wr.rdma.remote_addr = (uintptr_t)memory;
	wr[1].wr.rdma.remote_addr = (uintptr_t)memory + 2 * SLOT;
	need(ibv_post_send(qp, wr, &bad) == 0, "post");
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	if (memcmp(memory, memory + 2 * SLOT, SLOT) != 0) {
		puts("what arrived is not what was read");
		return 1;
	}
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return 0;
}
