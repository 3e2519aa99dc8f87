/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devx.c - queues made by DEVX through the ordinary libmlx5: to be run under `softcx run`.
 *
 * A managed worker queue holds WRITE, WAIT for its completion, CAS; a master queue starts it with SEND_EN. An
 * event channel reports the completions. Exits 0 when everything went as the firmware commands promise, else
 * 1 after a line about the failure.
 */
#include "mlx5/prm.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond, ...)                                                                                     \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "test-devx:%d: %s: ", __LINE__, #cond);                              \
			fprintf(stderr, __VA_ARGS__);                                                        \
			fputc('\n', stderr);                                                                 \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

/* One shared mapping: queues, doorbell records, data. */
enum {
	MASTER_CQ = 0,
	WORKER_CQ = 4096,
	MASTER_SQ = 8192,
	WORKER_SQ = 12288, /* a page each */
	RECORDS = 16384,
	DATA = 20480,
	ARENA = 24576,
	LOG_CQ = 4,
	LOG_SQ = 6,
};
enum { OP_WRITE = 0x08, OP_WAIT = 0x0f, OP_CAS = 0x11, OP_SEND_EN = 0x17 };

static struct ibv_context *ctx;
static struct mlx5dv_devx_uar *uar;
static struct mlx5dv_devx_umem *umem, *records; /* the device only reads the latter */
static struct ibv_mr *mr;
static uint8_t *arena;
static uint32_t pdn, eqn;

struct cq {
	struct mlx5dv_devx_obj *obj;
	uint32_t cqn;
	uint8_t *ring;
	uint32_t *db;
};

struct qp {
	struct mlx5dv_devx_obj *obj;
	uint32_t qpn;
	uint8_t *sq;
	uint32_t *db;
	uint16_t pi;
};

static void open_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj = {0};
	struct mlx5dv_devx_umem_in queues = {
		.size = DATA, .access = IBV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = 4096};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	CHECK(list && list[0], "no device; run me under softcx");
	ctx = mlx5dv_open_device(list[0], &attr);
	CHECK(ctx, "%s", strerror(errno));
	ibv_free_device_list(list);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(arena != MAP_FAILED, "%s", strerror(errno));
	queues.addr = arena;
	obj.pd.in = ibv_alloc_pd(ctx);
	obj.pd.out = &dvpd;
	CHECK(obj.pd.in && mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) == 0, "%s", strerror(errno));
	pdn = dvpd.pdn;
	mr = ibv_reg_mr(obj.pd.in, arena + DATA, 4096, access);
	CHECK(mr, "%s", strerror(errno));
	uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	CHECK(uar, "%s", strerror(errno));
	umem = mlx5dv_devx_umem_reg_ex(ctx, &queues);
	CHECK(umem, "%s", strerror(errno));
	records = mlx5dv_devx_umem_reg(ctx, arena + RECORDS, DATA - RECORDS, 0);
	CHECK(records, "%s", strerror(errno));
	CHECK(mlx5dv_devx_query_eqn(ctx, 0, &eqn) == 0, "%s", strerror(errno));
}

static uint64_t cap(enum prm_cap_type page, unsigned bit, unsigned width)
{
	uint8_t in[PRM_SIZE_query_hca_cap_in] = {0}, out[PRM_SIZE_query_hca_cap_out] = {0};

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_HCA_CAP);
	prm_set(in, PRM_in_op_mod, page << 1 | 1);
	CHECK(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)) == 0, "%s", strerror(errno));
	return prm_get(out + PRM_query_hca_cap_out_capability_byte, bit, width);
}

/* To the port itself by its link-local address, which GID 1 of RoCE has */
static void set_own_address(uint8_t *ads)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}};
	struct mlx5dv_ah av;
	struct mlx5dv_obj obj = {.ah.out = &av};

	CHECK(ibv_query_gid(ctx, 1, 1, &attr.grh.dgid) == 0, "%s", strerror(errno));
	obj.ah.in = ibv_create_ah(mr->pd, &attr);
	CHECK(obj.ah.in && mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0, "%s", strerror(errno));
	memcpy(ads + PRM_ads_rmac_47_32_byte, av.av->rmac, sizeof(av.av->rmac));
	prm_set(ads, PRM_ads_udp_sport, be16toh(av.av->rlid));
	prm_set(ads, PRM_ads_src_addr_index, attr.grh.sgid_index);
	prm_set(ads, PRM_ads_hop_limit, attr.grh.hop_limit);
	memcpy(ads + PRM_ads_rgid_rip_byte, attr.grh.dgid.raw, sizeof(attr.grh.dgid.raw));
	CHECK(ibv_destroy_ah(obj.ah.in) == 0, "%s", strerror(errno));
}

/* To the port itself, in the way that the device has */
static void set_loopback(uint8_t *ads)
{
	struct ibv_port_attr port;

	CHECK(ibv_query_port(ctx, 1, &port) == 0, "%s", strerror(errno));
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		prm_set(ads, PRM_ads_rlid, port.lid);
	else if (cap(PRM_CAP_ROCE, PRM_roce_cap_fl_rc_qp_when_roce_enabled))
		prm_set(ads, PRM_ads_fl, 1);
	else
		set_own_address(ads);
	prm_set(ads, PRM_ads_vhca_port_num, 1);
}

static struct cq cq_new(uint64_t off, uint64_t db_off)
{
	uint8_t in[PRM_SIZE_create_cq_in] = {0}, out[PRM_SIZE_create_cq_out] = {0};
	uint8_t *cqc = in + PRM_create_cq_in_cq_context_byte;
	struct cq cq = {.ring = arena + off, .db = (uint32_t *)(arena + RECORDS + db_off)};

	memset(cq.ring, 0xf0, 64 << LOG_CQ);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_CQ);
	prm_set(in, PRM_create_cq_in_cq_umem_id, umem->umem_id);
	prm_set(in, PRM_create_cq_in_cq_umem_offset, off);
	prm_set(cqc, PRM_cqc_dbr_umem_id, records->umem_id);
	prm_set(cqc, PRM_cqc_dbr_addr, db_off);
	prm_set(cqc, PRM_cqc_log_cq_size, LOG_CQ);
	prm_set(cqc, PRM_cqc_oi, 1);
	prm_set(cqc, PRM_cqc_uar_page, uar->page_id);
	prm_set(cqc, PRM_cqc_c_eqn_or_apu_element, eqn);
	cq.obj = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(cq.obj, "%s, syndrome %llx", strerror(errno),
		(unsigned long long)prm_get(out, PRM_out_syndrome));
	cq.cqn = (uint32_t)prm_get(out, PRM_create_cq_out_cqn);
	return cq;
}

static struct mlx5dv_devx_obj *qp_create(
	uint64_t off, uint64_t db_off, uint32_t cqn, bool managed, uint8_t *out)
{
	uint8_t in[PRM_SIZE_create_qp_in] = {0}, *qpc = in + PRM_create_qp_in_qpc_byte;

	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_QP);
	prm_set(in, PRM_create_qp_in_wq_umem_id, umem->umem_id);
	prm_set(in, PRM_create_qp_in_wq_umem_offset, off);
	prm_set(qpc, PRM_qpc_pd, pdn);
	prm_set(qpc, PRM_qpc_pm_state, 3);
	prm_set(qpc, PRM_qpc_log_sq_size, LOG_SQ);
	prm_set(qpc, PRM_qpc_rq_type, 3);
	prm_set(qpc, PRM_qpc_uar_page, uar->page_id);
	prm_set(qpc, PRM_qpc_user_index, 0xffffff);
	prm_set(qpc, PRM_qpc_cqn_snd, cqn);
	prm_set(qpc, PRM_qpc_cqn_rcv, cqn);
	prm_set(qpc, PRM_qpc_dbr_umem_id, records->umem_id);
	prm_set(qpc, PRM_qpc_dbr_addr, db_off);
	prm_set(qpc, PRM_qpc_cd_master, 1);
	prm_set(qpc, PRM_qpc_cd_slave_send, managed);
	/* Linux hw/mlx5/qp.c get_qp_ts_format: 0 where there is no choice */
	if (cap(PRM_CAP_GENERAL, PRM_cmd_hca_cap_sq_ts_format))
		prm_set(qpc, PRM_qpc_ts_format, PRM_TS_DEFAULT);
	return mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, PRM_SIZE_create_qp_out);
}

/* Loopback to itself: each command takes from the context what belongs to its transition. */
static void qp_step(const struct qp *qp, uint16_t opcode)
{
	uint8_t in[PRM_SIZE_modify_qp_in] = {0}, out[PRM_SIZE_modify_qp_out] = {0};
	uint8_t *qpc = in + PRM_modify_qp_in_qpc_byte, *ads = qpc + PRM_qpc_primary_address_path_byte;
	int r;

	prm_set(in, PRM_in_opcode, opcode);
	prm_set(in, PRM_in_objn, qp->qpn);
	if (opcode == PRM_OP_INIT2RTR_QP)
		prm_set(in, PRM_modify_qp_in_opt_param_mask, 0xe); /* rre, rae, rwe */
	prm_set(qpc, PRM_qpc_pm_state, 3);
	prm_set(qpc, PRM_qpc_rwe, 1);
	prm_set(qpc, PRM_qpc_rre, 1);
	prm_set(qpc, PRM_qpc_rae, 1);
	prm_set(qpc, PRM_qpc_atomic_mode, 3);
	prm_set(qpc, PRM_qpc_mtu, 5);
	prm_set(qpc, PRM_qpc_log_msg_max, 30);
	prm_set(qpc, PRM_qpc_remote_qpn, qp->qpn);
	prm_set(qpc, PRM_qpc_retry_count, 7);
	prm_set(qpc, PRM_qpc_rnr_retry, 7);
	prm_set(qpc, PRM_qpc_min_rnr_nak, 12);
	prm_set(qpc, PRM_qpc_log_sra_max, 4);
	prm_set(qpc, PRM_qpc_log_rra_max, 4);
	set_loopback(ads);
	prm_set(ads, PRM_ads_ack_timeout, 14);
	r = mlx5dv_devx_obj_modify(qp->obj, in, sizeof(in), out, sizeof(out));
	CHECK(r == 0, "command %x: %s, syndrome %llx", opcode, strerror(errno),
		(unsigned long long)prm_get(out, PRM_out_syndrome));
}

static struct qp qp_new(uint64_t off, uint64_t db_off, const struct cq *cq, bool managed)
{
	uint8_t out[PRM_SIZE_create_qp_out] = {0};
	struct qp qp = {.sq = arena + off, .db = (uint32_t *)(arena + RECORDS + db_off)};

	qp.obj = qp_create(off, db_off, cq->cqn, managed, out);
	CHECK(qp.obj, "%s, syndrome %llx", strerror(errno),
		(unsigned long long)prm_get(out, PRM_out_syndrome));
	qp.qpn = (uint32_t)prm_get(out, PRM_create_qp_out_qpn);
	qp_step(&qp, PRM_OP_RST2INIT_QP);
	qp_step(&qp, PRM_OP_INIT2RTR_QP);
	qp_step(&qp, PRM_OP_RTR2RTS_QP);
	return qp;
}

static uint8_t *wqe(struct qp *qp, uint8_t opcode, uint8_t ds, bool signalled)
{
	uint8_t *w = qp->sq + 64 * (qp->pi % (1 << LOG_SQ));

	memset(w, 0, 64);
	prm_set(w, 8, 16, qp->pi++);
	w[3] = opcode;
	prm_set(w, 32, 24, qp->qpn);
	w[7] = ds;
	w[11] = signalled ? 0x08 : 0;
	return w;
}

static void put_raddr(uint8_t *w, const void *p)
{
	prm_set(w + 16, 0, 64, (uintptr_t)p);
	prm_set(w + 16, 64, 32, mr->rkey);
}

static void put_data(uint8_t *seg, const void *p, uint32_t len)
{
	prm_set(seg, 0, 32, len);
	prm_set(seg, 32, 32, mr->lkey);
	prm_set(seg, 64, 64, (uintptr_t)p);
}

static void ring(struct qp *qp)
{
	uint64_t ctrl;

	memcpy(&ctrl, qp->sq + 64 * ((qp->pi - 1) % (1 << LOG_SQ)), sizeof(ctrl));
	__atomic_store_n(&qp->db[1], htobe32(qp->pi), __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)uar->reg_addr, ctrl, __ATOMIC_SEQ_CST);
}

static void arm(const struct cq *cq)
{
	uint64_t bell = (uint64_t)htobe32(cq->cqn) << 32;

	__atomic_store_n(&cq->db[1], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)((uint8_t *)uar->base_addr + 0x20), bell, __ATOMIC_SEQ_CST);
}

static uint8_t cqe_opcode(const struct cq *cq, unsigned n)
{
	return __atomic_load_n(&cq->ring[64 * n + 63], __ATOMIC_ACQUIRE) >> 4;
}

static void await_cqe(const struct cq *cq, unsigned n)
{
	time_t end = time(NULL) + 20;

	while (cqe_opcode(cq, n) == 0xf && time(NULL) < end)
		usleep(100);
	CHECK(cqe_opcode(cq, n) == 0, "CQE %u has opcode %x, syndrome %x", n, cqe_opcode(cq, n),
		cq->ring[64 * n + 55]);
}

static unsigned qp_state(const struct qp *qp)
{
	uint8_t in[PRM_SIZE_query_qp_in] = {0}, out[PRM_SIZE_query_qp_out] = {0};

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, qp->qpn);
	CHECK(mlx5dv_devx_obj_query(qp->obj, in, sizeof(in), out, sizeof(out)) == 0, "%s", strerror(errno));
	return (unsigned)prm_get(out + PRM_query_qp_out_qpc_byte, PRM_qpc_state);
}

static void check_event(struct mlx5dv_devx_event_channel *ch, uint64_t cookie)
{
	struct {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t data[256];
	} event;
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	ssize_t n;

	CHECK(poll(&p, 1, 20000) == 1, "no event");
	n = mlx5dv_devx_get_event(ch, &event.hdr, sizeof(event));
	CHECK(n >= (ssize_t)sizeof(event.hdr), "%zd bytes", n);
	CHECK(event.hdr.cookie == cookie, "cookie %llx", (unsigned long long)event.hdr.cookie);
}

/* The completions of a CQ in an eventfd, beside those in a channel; nothing else can take them. */
static int redirect_events(struct mlx5dv_devx_event_channel *ch, const struct cq *cq)
{
	int fd = eventfd(0, EFD_CLOEXEC), pair[2];

	CHECK(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%s",
		strerror(errno));
	CHECK(mlx5dv_devx_subscribe_devx_event_fd(ch, pair[0], cq->obj, 0) != 0, "events into a socket");
	CHECK(mlx5dv_devx_subscribe_devx_event_fd(ch, ctx->cmd_fd, cq->obj, 0) != 0, "into the device");
	CHECK(mlx5dv_devx_subscribe_devx_event_fd(ch, fd, cq->obj, 0) == 0, "%s", strerror(errno));
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static void check_eventfd(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n = 0;

	CHECK(poll(&p, 1, 20000) == 1 && read(fd, &n, sizeof(n)) == sizeof(n), "no event in the eventfd");
	CHECK(n == 1, "%llu events of one arm", (unsigned long long)n);
	close(fd);
}

int main(void)
{
	struct mlx5dv_devx_event_channel *ch;
	uint8_t out[PRM_SIZE_create_qp_out] = {0}, *w;
	uint16_t completion[] = {0};
	struct cq master_cq, worker_cq;
	struct qp master, worker;
	uint64_t *data, *old, was;
	int fd;

	open_device();
	CHECK(cap(PRM_CAP_GENERAL, PRM_cmd_hca_cap_cd), "the device reports no cross-channel queues");
	data = (uint64_t *)(arena + DATA);
	old = data + 16;
	master_cq = cq_new(MASTER_CQ, 0);
	worker_cq = cq_new(WORKER_CQ, 64);
	master = qp_new(MASTER_SQ, 128, &master_cq, false);
	worker = qp_new(WORKER_SQ, 192, &worker_cq, true);
	CHECK(qp_state(&worker) == 3, "state %u", qp_state(&worker));

	/* Firmware refuses a CQ that is not there, with a status */
	CHECK(!qp_create(MASTER_SQ, 128, worker_cq.cqn + 1000, false, out), "a QP without a CQ");
	CHECK(errno == EREMOTEIO && prm_get(out, PRM_out_status), "errno %d, status %llu", errno,
		(unsigned long long)prm_get(out, PRM_out_status));

	ch = mlx5dv_devx_create_event_channel(ctx, 0);
	CHECK(ch, "%s", strerror(errno));
	CHECK(mlx5dv_devx_subscribe_devx_event(ch, worker_cq.obj, sizeof(completion), completion, 0xc0ffee) ==
			0,
		"%s", strerror(errno));
	fd = redirect_events(ch, &worker_cq);
	arm(&worker_cq);

	/* worker: data[1] = data[0]; once that is done, swap it for 99 if it is 42 */
	data[0] = 42;
	w = wqe(&worker, OP_WRITE, 3, true);
	put_raddr(w, &data[1]);
	put_data(w + 32, &data[0], 8);
	w = wqe(&worker, OP_WAIT, 2, false);
	prm_set(w + 16, 64, 32, 0);
	prm_set(w + 16, 96, 32, worker_cq.cqn);
	w = wqe(&worker, OP_CAS, 4, true);
	put_raddr(w, &data[1]);
	prm_set(w + 32, 0, 64, 99);
	prm_set(w + 32, 64, 64, 42);
	put_data(w + 48, old, 8);
	usleep(20000);
	CHECK(data[1] == 0 && cqe_opcode(&worker_cq, 0) == 0xf, "a managed queue runs before it is enabled");

	w = wqe(&master, OP_SEND_EN, 2, true);
	prm_set(w + 16, 64, 32, worker.pi);
	prm_set(w + 16, 96, 32, worker.qpn);
	ring(&master);
	await_cqe(&master_cq, 0);
	check_event(ch, 0xc0ffee);
	check_eventfd(fd);
	await_cqe(&worker_cq, 0);
	await_cqe(&worker_cq, 1);
	was = cap(PRM_CAP_ATOMIC, PRM_atomic_caps_atomic_req_8B_endianness_mode) ? *old : be64toh(*old);
	CHECK(data[1] == 99 && was == 42, "data %llu, old %llu", (unsigned long long)data[1],
		(unsigned long long)*old);

	CHECK(mlx5dv_devx_obj_destroy(worker_cq.obj) != 0, "a CQ went away under its QP");
	CHECK(mlx5dv_devx_obj_destroy(worker.obj) == 0 && mlx5dv_devx_obj_destroy(master.obj) == 0, "%s",
		strerror(errno));
	CHECK(mlx5dv_devx_obj_destroy(worker_cq.obj) == 0 && mlx5dv_devx_obj_destroy(master_cq.obj) == 0,
		"%s", strerror(errno));
	mlx5dv_devx_destroy_event_channel(ch);
	CHECK(mlx5dv_devx_umem_dereg(records) == 0, "%s", strerror(errno));
	CHECK(mlx5dv_devx_umem_dereg(umem) == 0, "%s", strerror(errno));
	mlx5dv_devx_free_uar(uar);
	struct ibv_pd *pd = mr->pd;
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(ctx) == 0, "%s",
		strerror(errno));
	return 0;
}
