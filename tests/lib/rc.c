/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/rc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	PORT = 1,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC
};

void rc_die(const char *fmt, ...)
{
	int error = errno;
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", strerror(error));
	exit(1);
}

static int gid_index(const struct rc *rc)
{
	return rc->port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

void rc_query_port(struct rc *rc)
{
	if (ibv_query_port(rc->ctx, PORT, &rc->port) != 0 ||
		ibv_query_gid(rc->ctx, PORT, gid_index(rc), &rc->gid) != 0)
		rc_die("port and GID");
}

void rc_open(struct rc *rc, unsigned index, size_t len, int sharing, int cqes)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	*rc = (struct rc){.len = len};
	if (!list || index >= (unsigned)n)
		rc_die("there is no device %u: run this program with softcx run", index);
	rc->ctx = ibv_open_device(list[index]);
	if (!rc->ctx)
		rc_die("ibv_open_device");
	ibv_free_device_list(list);
	rc->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
	if (rc->mem == MAP_FAILED)
		rc_die("mmap");
	rc->pd = ibv_alloc_pd(rc->ctx);
	rc->mr = rc->pd ? ibv_reg_mr(rc->pd, rc->mem, len, ACCESS) : NULL;
	rc->cq = rc->mr ? ibv_create_cq(rc->ctx, cqes, NULL, NULL, 0) : NULL;
	if (!rc->cq)
		rc_die("PD, MR or CQ");
	rc_query_port(rc);
}

void rc_close(struct rc *rc)
{
	if (ibv_destroy_cq(rc->cq) != 0 || ibv_dereg_mr(rc->mr) != 0 || ibv_dealloc_pd(rc->pd) != 0 ||
		ibv_close_device(rc->ctx) != 0)
		rc_die("closing the device");
	munmap(rc->mem, rc->len);
}

struct ibv_qp *rc_qp(struct rc *rc, uint32_t depth)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = rc->cq,
		.recv_cq = rc->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(rc->pd, &attr);

	if (!qp)
		rc_die("ibv_create_qp");
	return qp;
}

struct rc_peer rc_self(const struct rc *rc, const struct ibv_qp *qp)
{
	return (struct rc_peer){.gid = rc->gid,
		.gid_index = (uint8_t)gid_index(rc),
		.lid = rc->port.lid,
		.qpn = qp->qp_num,
		.rkey = rc->mr->rkey,
		.addr = (uintptr_t)rc->mem};
}

void rc_connect(struct ibv_qp *qp, const struct rc_peer *to)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = ACCESS};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
		0)
		rc_die("to INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = to->qpn;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 12;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1,
		.port_num = PORT,
		.dlid = to->lid,
		.grh = {.dgid = to->gid, .sgid_index = to->gid_index, .hop_limit = 64}};
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
		rc_die("to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 16;
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		rc_die("to RTS");
}

void rc_post(struct rc *rc, struct ibv_qp *qp, enum ibv_wr_opcode op, size_t off, const struct rc_peer *to,
	uint64_t remote_off, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)rc->mem + off, .length = len, .lkey = rc->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = op,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = to->addr + remote_off, .rkey = to->rkey}};

	errno = ibv_post_send(qp, &wr, &bad);
	if (errno != 0)
		rc_die("ibv_post_send");
}

enum ibv_wc_status rc_await(struct rc *rc)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(rc->cq, 1, &wc)) == 0)
		if (time(NULL) > end)
			rc_die("no completion in a minute");
	if (n < 0)
		rc_die("ibv_poll_cq");
	return wc.status;
}

void rc_expect(struct rc *rc, enum ibv_wc_status status)
{
	enum ibv_wc_status got = rc_await(rc);

	if (got != status)
		rc_die("completion \"%s\" instead of \"%s\"", ibv_wc_status_str(got),
			ibv_wc_status_str(status));
}
