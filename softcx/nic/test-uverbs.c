/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side of uverbs on the real engine, with the calling application played by this
 * process: commands are built by hand, memory is our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reddnd/rnic/prm.h"
#include "softcx/nic/call.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the application -------------------------------------------------------------------- */

enum { ARENA = 1 << 20, MAX_KNOWN = 64, MAX_ATTRS = 16 };

static struct {
	struct hw_dev *dev;
	struct uverbs_file *file;
	uint8_t *arena; /* page-aligned memory that may be pinned */
	size_t used;
	pid_t pid;
	struct {
		uint64_t va, len;
	} known[MAX_KNOWN]; /* ranges that the driver has been asked for */
	unsigned num_known, again;
	uint64_t known_fds;
	uint64_t fuzz; /* state of the generator; not 0: commands are damaged before they are given */
	int async_fd;
	uint32_t uar_page;
	uint64_t *uar;
} app;

struct nic_call {
	const uint8_t *bytes;
	size_t len;
	bool ioctl;
};

pid_t nic_call_pid(const struct nic_call *call)
{
	(void)call;
	return app.pid;
}

const void *nic_call_bytes(const struct nic_call *call, size_t *len)
{
	*len = call->len;
	return call->bytes;
}

uint64_t nic_call_va(const struct nic_call *call)
{
	return (uintptr_t)call->bytes;
}

static bool readable(uint64_t va, uint64_t len)
{
	uintptr_t a = (uintptr_t)app.arena;

	return va >= a && len <= ARENA && va - a <= ARENA - len;
}

const void *nic_call_attr(const struct nic_call *call, unsigned i)
{
	const struct ib_uverbs_ioctl_hdr *hdr = (const void *)call->bytes;
	const struct ib_uverbs_attr *a = &hdr->attrs[i];

	assert_true(i < hdr->num_attrs);
	if (a->len <= 8 || !readable(a->data, a->len))
		return NULL;
	return (const void *)(uintptr_t)a->data;
}

int nic_call_store(struct nic_call *call, uint64_t va, const void *bytes, size_t len)
{
	bool own =
		call->ioctl && va >= (uintptr_t)call->bytes && va + len <= (uintptr_t)call->bytes + call->len;

	if (!own && !readable(va, len))
		return -EFAULT;
	memcpy((void *)(uintptr_t)va, bytes, len);
	return 0;
}

int nic_call_fd(struct nic_call *call, uint64_t va, int fd)
{
	int32_t number = fd, r = nic_call_store(call, va, &number, sizeof(number));

	if (r < 0)
		close(fd);
	return r;
}

/* The driver has to be asked the first time, as in real life. */
int nic_call_fstat(struct nic_call *call, int fd, struct stat *st)
{
	(void)call;
	if (fd < 64 && !(app.known_fds >> fd & 1)) {
		app.known_fds |= 1ull << fd;
		app.again++;
		return NIC_AGAIN;
	}
	return fstat(fd, st) < 0 ? -EBADF : 0;
}

static void mem_release(struct hw_mem *mem)
{
	free(mem);
}

int nic_call_mem(
	struct nic_call *call, uint64_t va, uint64_t len, bool writable, bool direct, struct hw_mem **out)
{
	unsigned i = 0;

	(void)call;
	(void)direct;
	if (!readable(va, len))
		return -EFAULT;
	while (i < app.num_known && (app.known[i].va != va || app.known[i].len != len))
		i++;
	if (i == app.num_known) {
		i = app.num_known = app.num_known % MAX_KNOWN;
		app.known[i].va = va;
		app.known[i].len = len;
		app.num_known++;
		app.again++;
		return NIC_AGAIN;
	}
	struct hw_mem *mem = calloc(1, sizeof(*mem));
	mem->host = (uint8_t *)(uintptr_t)va;
	mem->va = va;
	mem->len = len;
	mem->writable = writable;
	mem->refs = 1;
	mem->release = mem_release;
	*out = mem;
	return 0;
}

void nic_dev_gids(unsigned dev, uint8_t gids[16][16], unsigned *ngids)
{
	static const uint8_t lo[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};

	(void)dev;
	memset(gids, 0, 256);
	gids[0][0] = 0xfe;
	gids[0][1] = 0x80;
	memcpy(gids[1], lo, 16);
	*ngids = 2;
}

uint64_t nic_dev_guid(unsigned dev)
{
	return htobe64(0x0002c90300000000 + dev);
}

static void *arena_alloc(size_t len, size_t align)
{
	void *p;

	app.used = (app.used + align - 1) / align * align;
	p = app.arena + app.used;
	app.used += len;
	assert_true(app.used <= ARENA);
	memset(p, 0, len);
	return p;
}

static uint64_t va(const void *p)
{
	return (uintptr_t)p;
}

static void run(void)
{
	while (hw_poll(app.dev))
		;
}

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void mutate(uint8_t *p, size_t len, uint64_t *s)
{
	for (unsigned n = rnd(s) % 4; len && n; n--)
		p[rnd(s) % len] = rnd(s) & 1 ? (uint8_t)rnd(s) : (uint8_t[]){0, 1, 0xff, 0x80}[rnd(s) % 4];
}

/* A legacy command: core and driver structures one after the other, both ways. */
static ssize_t cmd(uint32_t number, void *req, size_t req_len, const void *drv, size_t drv_len,
	size_t resp_len, size_t drv_resp_len, void **resp)
{
	uint8_t *bytes = arena_alloc(8 + req_len + drv_len, 8),
		*out = arena_alloc(resp_len + drv_resp_len, 8);
	struct ib_uverbs_cmd_hdr hdr = {
		.command = number,
		.in_words = (uint16_t)((8 + req_len + drv_len) / 4),
		.out_words = (uint16_t)((resp_len + drv_resp_len) / 4),
	};
	struct nic_call call = {.bytes = bytes, .len = 8 + req_len + drv_len};
	uint64_t response = va(out);
	ssize_t r;

	if (resp_len)
		memcpy(req, &response, 8);
	memcpy(bytes, &hdr, 8);
	if (req_len)
		memcpy(bytes + 8, req, req_len);
	if (drv_len)
		memcpy(bytes + 8 + req_len, drv, drv_len);
	if (app.fuzz)
		mutate(bytes + 8, req_len + drv_len, &app.fuzz);
	do
		r = uverbs_write(app.file, &call);
	while (r == NIC_AGAIN);
	if (resp)
		*resp = out;
	return r < 0 ? r : 0;
}

#define CMD(number, req) cmd(number, &(req), sizeof(req), NULL, 0, 0, 0, NULL)
#define CMD_OUT(number, req, resp)                                                                           \
	cmd(number, &(req), sizeof(req), NULL, 0, sizeof(*(resp)), 0, (void **)&(resp))

/* ---- ioctl ------------------------------------------------------------------------------ */

struct ioc {
	struct { /* as struct ib_uverbs_ioctl_hdr, without its flexible array */
		uint16_t length, object_id, method_id, num_attrs;
		uint64_t reserved1;
		uint32_t driver_id, reserved2;
	} hdr;
	struct ib_uverbs_attr attrs[MAX_ATTRS];
};

static void ioc_start(struct ioc *c, uint16_t object, uint16_t method)
{
	memset(c, 0, sizeof(*c));
	c->hdr.object_id = object;
	c->hdr.method_id = method;
	c->hdr.driver_id = RDMA_DRIVER_MLX5;
}

static struct ib_uverbs_attr *ioc_add(struct ioc *c, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];

	a->attr_id = id;
	a->len = len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	a->data = data;
	return a;
}

/* Bytes of more than 8 go through the arena, as they would through the driver. */
static struct ib_uverbs_attr *ioc_in(struct ioc *c, uint16_t id, const void *p, uint16_t len)
{
	uint64_t data = 0;

	if (len <= 8) {
		memcpy(&data, p, len);
	} else {
		void *copy = arena_alloc(len, 8);

		memcpy(copy, p, len);
		data = va(copy);
	}
	return ioc_add(c, id, len, data);
}

static void *ioc_out(struct ioc *c, uint16_t id, uint16_t len)
{
	void *p = arena_alloc(len, 8);

	ioc_add(c, id, len, va(p));
	return p;
}

static int ioc_run(struct ioc *c)
{
	struct nic_call call = {.bytes = (void *)c, .ioctl = true};
	int r;

	c->hdr.length = (uint16_t)(sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]));
	call.len = c->hdr.length;
	do
		r = uverbs_ioctl(app.file, &call);
	while (r == NIC_AGAIN);
	return r;
}

static int destroy_by_ioctl(uint16_t object, uint16_t method, uint16_t id, uint64_t handle)
{
	struct ioc c;

	ioc_start(&c, object, method);
	ioc_add(&c, id, 0, handle);
	return ioc_run(&c);
}

/* ---- steps that many tests take --------------------------------------------------------- */

static int setup(void **state)
{
	const struct hw_config cfg = {.lenient = true};
	uint8_t gids[16][16];
	unsigned n;

	(void)state;
	memset(&app, 0, sizeof(app));
	signal(SIGPIPE, SIG_IGN);
	app.arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	app.pid = 100;
	app.async_fd = -1;
	nic_dev_gids(0, gids, &n);
	assert_int_equal(hw_dev_new(&app.dev, &cfg, gids, n), 0);
	return uverbs_open(app.dev, 0, &app.file);
}

static int teardown(void **state)
{
	struct hw_counts n;

	(void)state;
	if (app.uar)
		munmap(app.uar, 4096);
	if (app.async_fd >= 0)
		close(app.async_fd);
	uverbs_close(app.file);
	hw_counts(app.dev, &n);
	assert_int_equal(n.pds + n.mkeys + n.uars + n.cqs + n.qps + n.srqs + n.mems, 0);
	hw_dev_free(app.dev);
	munmap(app.arena, ARENA);
	return 0;
}

static ssize_t get_context(void)
{
	const struct mlx5_ib_alloc_ucontext_req_v2 drv = {
		.flags = MLX5_IB_ALLOC_UCTX_DEVX,
		.max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
	struct ib_uverbs_get_context req = {0};
	struct ib_uverbs_get_context_resp *resp;
	ssize_t r = cmd(IB_USER_VERBS_CMD_GET_CONTEXT, &req, sizeof(req), &drv, sizeof(drv), sizeof(*resp),
		sizeof(struct mlx5_ib_alloc_ucontext_resp), (void **)&resp);

	if (r == 0) {
		const struct mlx5_ib_alloc_ucontext_resp *d = (void *)(resp + 1);

		app.async_fd = (int)resp->async_fd;
		assert_int_equal(d->response_length, sizeof(*d));
		assert_int_equal(d->cqe_version, 1);
		assert_int_equal(d->tot_bfregs, 0);
	}
	return r;
}

static void open_context(void)
{
	uint64_t *offset, fd_offset;
	uint32_t *page, *length;
	struct ioc c;
	int fd;

	assert_int_equal(get_context(), 0);
	ioc_start(&c, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	ioc_add(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0);
	ioc_add(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
	offset = ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8);
	length = ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4);
	page = ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4);
	assert_int_equal(ioc_run(&c), 0);
	assert_int_equal(*length, 4096);
	assert_true(c.attrs[2].flags & UVERBS_ATTR_F_VALID_OUTPUT);
	app.uar_page = *page;
	assert_int_equal(uverbs_mmap(app.file, *offset, 4096, &fd, &fd_offset), 0);
	app.uar = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)fd_offset);
	assert_ptr_not_equal(app.uar, MAP_FAILED);
	assert_int_equal(uverbs_mmap(app.file, *offset, 8192, &fd, &fd_offset), -EINVAL);
	assert_int_equal(uverbs_mmap(app.file, 7u << 8 << 12, 4096, &fd, &fd_offset), -EINVAL);
}

static uint32_t new_pd(uint32_t *pdn)
{
	uint32_t *resp; /* handle, then the driver's PDN */
	struct ib_uverbs_alloc_pd req;

	assert_int_equal(cmd(IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), NULL, 0,
				 sizeof(struct ib_uverbs_alloc_pd_resp), sizeof(struct mlx5_ib_alloc_pd_resp),
				 (void **)&resp),
		0);
	if (pdn)
		*pdn = resp[1];
	return resp[0];
}

static ssize_t reg_mr(uint32_t pd, void *p, uint64_t len, uint64_t iova, uint32_t access,
	struct ib_uverbs_reg_mr_resp **resp)
{
	struct ib_uverbs_reg_mr req = {
		.start = va(p), .length = len, .hca_va = iova, .pd_handle = pd, .access_flags = access};

	return CMD_OUT(IB_USER_VERBS_CMD_REG_MR, req, *resp);
}

struct cq {
	uint32_t handle, cqn;
	uint8_t *ring;
	uint32_t *db;
};

static ssize_t new_cq(struct cq *cq, uint32_t cqe, int channel)
{
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct mlx5_ib_create_cq_resp drv;
	} * resp;
	struct ib_uverbs_create_cq req = {.user_handle = va(cq), .cqe = cqe, .comp_channel = channel};
	struct mlx5_ib_create_cq drv;
	ssize_t r;

	cq->ring = arena_alloc(64 * 64, 4096);
	memset(cq->ring, 0xf0, 64 * 64); /* as the library does: opcode invalid */
	cq->db = arena_alloc(8, 64);
	memset(&drv, 0, sizeof(drv));
	drv.buf_addr = va(cq->ring);
	drv.db_addr = va(cq->db);
	drv.cqe_size = 64;
	drv.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
	drv.uar_page_index = (uint16_t)app.uar_page;
	r = cmd(IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), &drv, sizeof(drv), sizeof(resp->core),
		sizeof(resp->drv), (void **)&resp);
	if (r == 0) {
		cq->handle = resp->core.cq_handle;
		cq->cqn = resp->drv.cqn;
	}
	return r;
}

static void arm_cq(const struct cq *cq, uint32_t ci)
{
	uint32_t word = htobe32(ci & 0xffffff);

	cq->db[1] = word;
	app.uar[4] = (uint64_t)htobe32(cq->cqn) << 32 | word;
}

struct qp {
	uint32_t handle, qpn;
	uint8_t *buf;
	uint32_t *db;
	uint16_t pi;
};

enum { RQ_BYTES = 16 * 64 };

static ssize_t new_qp(struct qp *qp, uint32_t pd, const struct cq *cq, uint8_t type)
{
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct mlx5_ib_create_qp_resp drv;
	} * resp;
	struct ib_uverbs_create_qp req = {
		.user_handle = va(qp),
		.pd_handle = pd,
		.send_cq_handle = cq->handle,
		.recv_cq_handle = cq->handle,
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 1,
		.max_recv_sge = 4,
		.qp_type = type,
	};
	struct mlx5_ib_create_qp drv;
	ssize_t r;

	memset(qp, 0, sizeof(*qp));
	qp->buf = arena_alloc(RQ_BYTES + 64 * 64, 4096);
	qp->db = arena_alloc(8, 64);
	memset(&drv, 0, sizeof(drv));
	drv.buf_addr = va(qp->buf);
	drv.db_addr = va(qp->db);
	drv.sq_wqe_count = 64;
	drv.rq_wqe_count = 16;
	drv.rq_wqe_shift = 6;
	drv.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX;
	drv.bfreg_index = app.uar_page;
	r = cmd(IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), &drv, sizeof(drv), sizeof(resp->core),
		sizeof(resp->drv), (void **)&resp);
	if (r == 0) {
		qp->handle = resp->core.qp_handle;
		qp->qpn = resp->core.qpn;
	}
	return r;
}

static ssize_t modify(const struct qp *qp, uint32_t mask, uint8_t state)
{
	struct ib_uverbs_modify_qp req = {
		.dest = {.dgid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
			.sgid_index = 1,
			.is_global = 1,
			.port_num = 1},
		.qp_handle = qp->handle,
		.attr_mask = mask | IBV_QP_STATE,
		.dest_qp_num = qp->qpn,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.qp_state = state,
		.path_mtu = IBV_MTU_1024,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	return CMD(IB_USER_VERBS_CMD_MODIFY_QP, req);
}

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
};

/* One signalled WQE of a single WQEBB at @sq: ctrl, then @seg. */
static void post(
	uint8_t *sq, uint32_t *db, uint32_t qpn, uint16_t *pi, uint8_t op, uint8_t ds, const void *seg)
{
	uint8_t *w = sq + 64 * (*pi % 64);
	uint64_t ctrl;

	memset(w, 0, 64);
	prm_set(w, 8, 16, *pi);
	w[3] = op;
	prm_set(w, 32, 24, qpn);
	w[7] = ds;
	w[11] = 8;
	if (seg)
		memcpy(w + 16, seg, (ds - 1u) * 16);
	(*pi)++;
	db[1] = htobe32(*pi);
	memcpy(&ctrl, w, 8);
	app.uar[0x800 / 8] = ctrl;
}

static unsigned waiting(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* ---- tests: context and device ---------------------------------------------------------- */

static void test_context(void **state)
{
	struct ib_uverbs_query_port req = {.port_num = 1};
	struct ib_uverbs_query_port_resp *resp;

	(void)state;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), -EINVAL);
	assert_int_equal(get_context(), 0);
	assert_true(app.async_fd >= 0);
	assert_false(waiting(app.async_fd));
	assert_int_equal(get_context(), -EINVAL);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), 0);
	assert_int_equal(resp->link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(resp->state, IBV_PORT_ACTIVE);
	req.port_num = 2;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), -EINVAL);
	app.pid = 101;
	req.port_num = 1;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), -EACCES);
}

static void test_device(void **state)
{
	struct ib_uverbs_query_device req;
	struct ib_uverbs_query_device_resp *resp;
	struct ioc c;
	struct ib_uverbs_gid_entry *gid;
	uint64_t *n;

	(void)state;
	open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_DEVICE, req, resp), 0);
	assert_int_equal(resp->vendor_part_id, 4119);
	assert_int_equal(resp->atomic_cap, IBV_ATOMIC_HCA);

	ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	ioc_add(&c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, sizeof(*gid));
	ioc_add(&c, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0);
	gid = ioc_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 4 * sizeof(*gid));
	n = ioc_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8);
	assert_int_equal(ioc_run(&c), 0);
	assert_int_equal(*n, 2);
	assert_int_equal(gid[1].gid_type, IB_UVERBS_GID_TYPE_ROCE_V2);
	c.attrs[2].len = sizeof(*gid); /* room for one of two */
	assert_int_equal(ioc_run(&c), -EINVAL);
}

static void test_ioctl_checks(void **state)
{
	struct ioc c;

	(void)state;
	open_context();
	ioc_start(&c, 0x0fff, 0);
	assert_int_equal(ioc_run(&c), -EPROTONOSUPPORT);
	ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	ioc_add(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	assert_int_equal(ioc_run(&c), -EINVAL); /* no place for the answer */
	ioc_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex));
	assert_int_equal(ioc_run(&c), 0);
	ioc_add(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	assert_int_equal(ioc_run(&c), -EINVAL); /* twice */
	c.attrs[2].attr_id = 77;
	assert_int_equal(ioc_run(&c), -EPROTONOSUPPORT);
	c.attrs[2].flags = 0; /* unknown, but not important */
	assert_int_equal(ioc_run(&c), 0);
	c.hdr.driver_id = RDMA_DRIVER_RXE;
	assert_int_equal(ioc_run(&c), -EINVAL);
	c.hdr.driver_id = RDMA_DRIVER_MLX5;
	c.hdr.reserved1 = 1;
	assert_int_equal(ioc_run(&c), -EPROTONOSUPPORT);
}

/* The library asks like this whether write commands may go through ioctl. */
static void test_invoke_write(void **state)
{
	struct ib_uverbs_query_device_resp *resp;
	struct ib_uverbs_query_device req = {0};
	struct ioc c;

	(void)state;
	open_context();
	ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	ioc_add(&c, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_QUERY_DEVICE);
	assert_int_equal(ioc_run(&c), -ENOSPC);
	ioc_in(&c, UVERBS_ATTR_CORE_IN, &req, sizeof(req));
	resp = ioc_out(&c, UVERBS_ATTR_CORE_OUT, sizeof(*resp));
	app.pid = 101; /* unlike write(), from anyone who holds the file */
	assert_int_equal(ioc_run(&c), 0);
	assert_int_equal(resp->vendor_id, 0x02c9);
}

/* ---- tests: objects --------------------------------------------------------------------- */

static void test_mr(void **state)
{
	struct ib_uverbs_dealloc_pd dealloc;
	struct ib_uverbs_dereg_mr dereg;
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *p;

	(void)state;
	open_context();
	dealloc.pd_handle = new_pd(NULL);
	p = arena_alloc(8192, 4096);
	assert_int_equal(reg_mr(dealloc.pd_handle, p, 100, va(p), IBV_ACCESS_REMOTE_WRITE, &mr), -EINVAL);
	assert_int_equal(reg_mr(dealloc.pd_handle, p, 100, va(p), IBV_ACCESS_ON_DEMAND, &mr), -EOPNOTSUPP);
	assert_int_equal(reg_mr(dealloc.pd_handle, p, 100, 1, IBV_ACCESS_LOCAL_WRITE, &mr), -EINVAL);
	assert_int_equal(reg_mr(dealloc.pd_handle, p, 0, va(p), IBV_ACCESS_LOCAL_WRITE, &mr), -EINVAL);
	assert_int_equal(reg_mr(dealloc.pd_handle, (void *)4096, 100, 4096, 0, &mr), -EFAULT);
	assert_int_equal(reg_mr(999, p, 100, va(p), 0, &mr), -EINVAL);
	assert_int_equal(reg_mr(dealloc.pd_handle, p, 100, 0x100000, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_true(app.again > 0);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, dealloc), -EBUSY);
	dereg.mr_handle = dealloc.pd_handle; /* a PD is no MR */
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), -EINVAL);
	dereg.mr_handle = mr->mr_handle;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), 0);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), -ENOENT);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, dealloc), 0);
	assert_int_equal(new_pd(NULL), dealloc.pd_handle); /* the lowest free handle */
}

static void test_rereg(void **state)
{
	struct ib_uverbs_rereg_mr req = {.flags = IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD};
	struct ib_uverbs_rereg_mr_resp *resp;
	struct ib_uverbs_dealloc_pd first;
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *p;

	(void)state;
	open_context();
	first.pd_handle = new_pd(NULL);
	p = arena_alloc(4096, 4096);
	assert_int_equal(reg_mr(first.pd_handle, p, 4096, va(p), 0, &mr), 0);
	req.mr_handle = mr->mr_handle;
	req.pd_handle = new_pd(NULL);
	req.access_flags = IBV_ACCESS_LOCAL_WRITE;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_REREG_MR, req, resp), 0);
	assert_int_not_equal(resp->lkey, mr->lkey);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, first), 0);
	first.pd_handle = req.pd_handle;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, first), -EBUSY);
}

static void test_qp_states(void **state)
{
	struct cq cq;
	struct qp qp;
	uint32_t pd;

	(void)state;
	open_context();
	pd = new_pd(NULL);
	assert_int_equal(new_cq(&cq, 63, -1), 0);
	assert_int_equal(new_qp(&qp, pd, &cq, IBV_QPT_RAW_PACKET), -EOPNOTSUPP);
	assert_int_equal(new_qp(&qp, pd, &cq, IBV_QPT_RC), 0);
	assert_int_equal(modify(&qp, TO_RTR, IBV_QPS_RTR), -EINVAL);
	assert_int_equal(modify(&qp, TO_INIT & ~IBV_QP_PORT, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(modify(&qp, TO_INIT | IBV_QP_QKEY, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	assert_int_equal(modify(&qp, TO_RTR | IBV_QP_ALT_PATH, IBV_QPS_RTR), -EINVAL);
	assert_int_equal(modify(&qp, TO_RTR, IBV_QPS_RTR), 0);
	assert_int_equal(modify(&qp, TO_RTS, IBV_QPS_RTS), 0);
	assert_int_equal(modify(&qp, IBV_QP_MIN_RNR_TIMER, IBV_QPS_RTS), 0);
	assert_int_equal(modify(&qp, 0, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(modify(&qp, 0, 9), -EINVAL);

	struct ib_uverbs_query_qp req = {.qp_handle = qp.handle};
	struct ib_uverbs_query_qp_resp *q;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_QP, req, q), 0);
	assert_int_equal(q->qp_state, IBV_QPS_RTS);
	assert_int_equal(q->path_mtu, IBV_MTU_1024);
	assert_int_equal(q->dest_qp_num, qp.qpn);
	assert_int_equal(q->dest.sgid_index, 1);
	assert_int_equal(q->min_rnr_timer, 12);
	assert_int_equal(modify(&qp, 0, IBV_QPS_ERR), 0);
	assert_int_equal(modify(&qp, 0, IBV_QPS_RESET), 0);
}

/* Without a GRH a RoCE path leads nowhere; an SRQ and an AH work alike. */
static void test_grh(void **state)
{
	struct ib_uverbs_create_ah ah = {.attr = {.port_num = 1}};
	struct ib_uverbs_create_ah_resp *resp;
	struct ib_uverbs_modify_qp bad = {.attr_mask = IBV_QP_STATE | TO_RTR, .qp_state = IBV_QPS_RTR};
	struct cq cq;
	struct qp qp;

	(void)state;
	open_context();
	ah.pd_handle = new_pd(NULL);
	assert_int_equal(new_cq(&cq, 63, -1), 0);
	assert_int_equal(new_qp(&qp, ah.pd_handle, &cq, IBV_QPT_RC), 0);
	assert_int_equal(modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	bad.qp_handle = qp.handle;
	bad.path_mtu = IBV_MTU_1024;
	bad.dest.port_num = 1;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_MODIFY_QP, bad), -EINVAL);
	bad.dest.is_global = 1;
	bad.dest.sgid_index = 2;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_MODIFY_QP, bad), -EINVAL);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_AH, ah, resp), -EINVAL);
	ah.attr.is_global = 1;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_AH, ah, resp), 0);
}

static void test_completion_events(void **state)
{
	struct ib_uverbs_create_comp_channel req;
	struct ib_uverbs_create_comp_channel_resp *ch;
	struct ib_uverbs_comp_event_desc event;
	struct ib_uverbs_destroy_cq_resp *done;
	struct ib_uverbs_destroy_cq destroy = {0};
	struct ib_uverbs_destroy_qp destroy_q = {0};
	struct ib_uverbs_destroy_qp_resp *done_q;
	struct cq cq;
	struct qp qp;

	(void)state;
	open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, req, ch), 0);
	int fd = (int)ch->fd;
	assert_int_equal(new_cq(&cq, 63, app.async_fd), -EBADF); /* not a completion channel */
	assert_int_equal(new_cq(&cq, 63, fd), 0);
	assert_int_equal(new_qp(&qp, new_pd(NULL), &cq, IBV_QPT_RC), 0);
	assert_int_equal(modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	assert_int_equal(modify(&qp, TO_RTR, IBV_QPS_RTR), 0);
	assert_int_equal(modify(&qp, TO_RTS, IBV_QPS_RTS), 0);
	arm_cq(&cq, 0);
	run();
	assert_false(waiting(fd));
	for (unsigned i = 0; i < 2; i++) {
		post(qp.buf + RQ_BYTES, qp.db, qp.qpn, &qp.pi, 0, 1, NULL);
		run();
		assert_true(waiting(fd));
		if (i == 0)
			assert_int_equal(read(fd, &event, sizeof(event)), sizeof(event));
		cq.db[0] = htobe32(i + 1);
		arm_cq(&cq, i + 1);
	}
	assert_int_equal(event.cq_handle, va(&cq));
	destroy.cq_handle = cq.handle;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_CQ, destroy, done), -EBUSY);
	destroy_q.qp_handle = qp.handle;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_QP, destroy_q, done_q), 0);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_CQ, destroy, done), 0);
	assert_int_equal(done->comp_events_reported, 1); /* read; the other one was taken back */
	assert_false(waiting(fd));
	close(fd);
}

/* ---- tests: DEVX ------------------------------------------------------------------------ */

static int umem_reg(const void *p, uint64_t len, uint32_t access, uint32_t *id, uint64_t *handle)
{
	uint32_t *out;
	struct ioc c;
	int r;

	ioc_start(&c, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, 0);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, va(p));
	ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, len);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, access);
	out = ioc_out(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4);
	r = ioc_run(&c);
	*id = *out;
	*handle = c.attrs[0].data;
	return r;
}

/* @method: create, modify or query; their attributes are numbered alike. */
static int devx(
	uint16_t method, uint64_t *handle, const void *in, uint16_t in_len, uint16_t out_len, uint8_t **out)
{
	struct ioc c;
	int r;

	ioc_start(&c, MLX5_IB_OBJECT_DEVX_OBJ, method);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, *handle);
	ioc_in(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_len);
	*out = ioc_out(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out_len);
	if (app.fuzz)
		mutate((uint8_t *)(uintptr_t)c.attrs[1].data, in_len, &app.fuzz);
	r = ioc_run(&c);
	*handle = c.attrs[0].data;
	return r;
}

struct devx_cq {
	uint64_t handle;
	uint32_t cqn;
};

static int devx_cq_new(struct devx_cq *cq, uint32_t umem, uint64_t off, uint64_t db_off, uint8_t **out)
{
	uint8_t in[PRM_SIZE_create_cq_in] = {0}, *cqc = in + PRM_create_cq_in_cq_context_byte;
	int r;

	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_CQ);
	prm_set(in, PRM_create_cq_in_cq_umem_id, umem);
	prm_set(in, PRM_create_cq_in_cq_umem_offset, off);
	prm_set(cqc, PRM_cqc_dbr_umem_id, umem);
	prm_set(cqc, PRM_cqc_dbr_addr, db_off);
	prm_set(cqc, PRM_cqc_log_cq_size, 4);
	prm_set(cqc, PRM_cqc_oi, 1);
	prm_set(cqc, PRM_cqc_uar_page, app.uar_page);
	prm_set(cqc, PRM_cqc_c_eqn_or_apu_element, 8);
	cq->handle = 0;
	r = devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &cq->handle, in, sizeof(in), PRM_SIZE_create_cq_out, out);
	cq->cqn = (uint32_t)prm_get(*out, PRM_create_cq_out_cqn);
	return r;
}

static int devx_qp_new(uint64_t *handle, uint32_t *qpn, uint32_t pdn, uint32_t cqn, uint32_t umem,
	uint64_t off, uint64_t db_off, uint8_t **out)
{
	uint8_t in[PRM_SIZE_create_qp_in] = {0}, *qpc = in + PRM_create_qp_in_qpc_byte;
	int r;

	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_QP);
	prm_set(in, PRM_create_qp_in_wq_umem_id, umem);
	prm_set(in, PRM_create_qp_in_wq_umem_offset, off);
	prm_set(qpc, PRM_qpc_pd, pdn);
	prm_set(qpc, PRM_qpc_pm_state, 3);
	prm_set(qpc, PRM_qpc_log_sq_size, 6);
	prm_set(qpc, PRM_qpc_rq_type, 3);
	prm_set(qpc, PRM_qpc_uar_page, app.uar_page);
	prm_set(qpc, PRM_qpc_cqn_snd, cqn);
	prm_set(qpc, PRM_qpc_cqn_rcv, cqn);
	prm_set(qpc, PRM_qpc_dbr_umem_id, umem);
	prm_set(qpc, PRM_qpc_dbr_addr, db_off);
	*handle = 0;
	r = devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, handle, in, sizeof(in), PRM_SIZE_create_qp_out, out);
	*qpn = (uint32_t)prm_get(*out, PRM_create_qp_out_qpn);
	return r;
}

static int devx_qp_to(uint64_t handle, uint32_t qpn, uint16_t opcode, uint8_t mtu, uint8_t **out)
{
	uint8_t in[PRM_SIZE_modify_qp_in] = {0}, *qpc = in + PRM_modify_qp_in_qpc_byte;
	uint8_t *ads = qpc + PRM_qpc_primary_address_path_byte;

	prm_set(in, PRM_in_opcode, opcode);
	prm_set(in, PRM_in_objn, qpn);
	prm_set(qpc, PRM_qpc_mtu, mtu);
	prm_set(qpc, PRM_qpc_remote_qpn, qpn);
	prm_set(qpc, PRM_qpc_rwe, 1);
	prm_set(qpc, PRM_qpc_rre, 1);
	prm_set(ads, PRM_ads_fl, 1);
	prm_set(ads, PRM_ads_vhca_port_num, 1);
	return devx(MLX5_IB_METHOD_DEVX_OBJ_MODIFY, &handle, in, sizeof(in), PRM_SIZE_modify_qp_out, out);
}

static uint32_t syndrome(const uint8_t *out)
{
	assert_int_not_equal(prm_get(out, PRM_out_status), 0);
	return (uint32_t)prm_get(out, PRM_out_syndrome);
}

static int subscribe(int fd, uint64_t obj, uint16_t event, uint64_t cookie)
{
	struct ioc c;

	ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 0, (uint64_t)fd);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, 0, obj);
	ioc_in(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &event, 2);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, cookie);
	return ioc_run(&c);
}

static int event_channel(uint32_t flags)
{
	struct ioc c;

	ioc_start(&c, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0, 0);
	ioc_add(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 4, flags);
	assert_int_equal(ioc_run(&c), 0);
	return (int)c.attrs[0].data;
}

enum { CQ_OFF = 0, QP_OFF = 4096, DB_OFF = 8192, UMEM = 12288 };

static void test_devx(void **state)
{
	uint8_t *mem, *data, *out, event[256], seg[32] = {0};
	struct ib_uverbs_reg_mr_resp *mr;
	struct devx_cq cq;
	uint64_t umem_handle, qp;
	uint32_t umem, pdn, pd, qpn;
	uint16_t pi = 0;
	int fd, omit;

	(void)state;
	open_context();
	pd = new_pd(&pdn);
	mem = arena_alloc(UMEM, 4096);
	data = arena_alloc(4096, 4096);
	memset(mem + CQ_OFF, 0xf0, 4096);
	assert_int_equal(umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &umem_handle), 0);
	assert_int_equal(devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);
	assert_int_equal(devx_qp_new(&qp, &qpn, pdn, cq.cqn, umem, QP_OFF, DB_OFF + 64, &out), 0);
	assert_int_equal(
		reg_mr(pd, data, 4096, va(data), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 5, &out), 0);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_RTR2RTS_QP, 0, &out), 0);

	fd = event_channel(0);
	omit = event_channel(MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
	assert_int_equal(subscribe(fd, cq.handle, 0, 0x1234), 0);
	assert_int_equal(subscribe(omit, cq.handle, 0, 0x5678), 0);
	assert_int_equal(subscribe(fd, cq.handle, 0x42, 0), -EINVAL);
	assert_int_equal(subscribe(app.async_fd, cq.handle, 0, 0), -EBADF);

	/* WRITE data[0..8) to data[64..72) */
	memcpy(data, "loopback", 8);
	prm_set(seg, 0, 64, va(data + 64));
	prm_set(seg, 64, 32, mr->rkey);
	prm_set(seg, 128, 32, 8);
	prm_set(seg, 160, 32, mr->lkey);
	prm_set(seg, 192, 64, va(data));
	for (uint32_t i = 0; i < 2; i++) {
		const struct cq arm = {.cqn = cq.cqn, .db = (uint32_t *)(mem + DB_OFF)};

		arm.db[0] = htobe32(i);
		arm_cq(&arm, i);
		run();
		post(mem + QP_OFF, (uint32_t *)(mem + DB_OFF + 64), qpn, &pi, 8, 3, seg);
		run();
	}
	assert_memory_equal(data + 64, "loopback", 8);
	assert_int_equal(mem[CQ_OFF + 63] >> 4, 0); /* a good requester CQE */
	for (unsigned i = 0; i < 2; i++) {          /* one event per read, however large the buffer */
		uint64_t cookie;

		assert_int_equal(read(fd, event, sizeof(event)), 8 + 64);
		memcpy(&cookie, event, 8);
		assert_int_equal(cookie, 0x1234);
		assert_int_equal(prm_get(event + 8, 0x38 * 8 + 8, 24), cq.cqn);
	}
	assert_false(waiting(fd));
	assert_int_equal(read(omit, event, sizeof(event)), 8);
	assert_false(waiting(omit)); /* without data, two are one */

	uint8_t in[PRM_SIZE_query_qp_in] = {0};
	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, qpn);
	assert_int_equal(
		devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out), 0);
	out += PRM_query_qp_out_qpc_byte;
	assert_int_equal(prm_get(out, PRM_qpc_state), HW_RTS);
	assert_int_equal(prm_get(out, PRM_qpc_mtu), 5);
	assert_int_equal(prm_get(out, PRM_qpc_hw_sq_wqebb_counter), 2);
	assert_int_equal(prm_get(out, PRM_qpc_sw_sq_wqebb_counter), 2);
	prm_set(in, PRM_in_objn, qpn + 1); /* the kernel compares it with the handle */
	assert_int_equal(
		devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out),
		-EINVAL);

	assert_int_equal(destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
				 MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, umem_handle),
		-EBUSY);
	assert_int_equal(destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, cq.handle),
		-EBUSY);
	close(fd);
	close(omit);
}

static void test_devx_refusals(void **state)
{
	uint8_t *mem, *out, cap[PRM_SIZE_query_hca_cap_in] = {0};
	struct devx_cq cq, bad;
	uint64_t handle, qp;
	uint32_t umem, readonly, pdn, qpn;

	(void)state;
	open_context();
	new_pd(&pdn);
	mem = arena_alloc(UMEM, 4096);
	assert_int_equal(umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	assert_int_equal(umem_reg(mem, UMEM, 0, &readonly, &handle), 0);
	assert_int_equal(devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);

	assert_int_equal(devx_cq_new(&bad, 4711, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0010);
	assert_int_equal(devx_cq_new(&bad, umem, UMEM - 512, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0012);
	assert_int_equal(devx_cq_new(&bad, umem, UMEM, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0011);
	assert_int_equal(devx_cq_new(&bad, umem, UINT64_MAX - 4095, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(devx_cq_new(&bad, readonly, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0013);
	assert_int_equal(
		devx_qp_new(&qp, &qpn, pdn + 100, cq.cqn, umem, QP_OFF, DB_OFF + 64, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0016);
	assert_int_equal(
		devx_qp_new(&qp, &qpn, pdn, cq.cqn + 100, umem, QP_OFF, DB_OFF + 64, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0017);
	assert_int_equal(devx_qp_new(&qp, &qpn, pdn, cq.cqn, readonly, QP_OFF, DB_OFF + 64, &out), 0);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 3, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0020);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 0, &out), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0021);
	assert_int_equal(devx_qp_to(qp, qpn, PRM_OP_CREATE_QP, 0, &out), -EINVAL);
	handle = 0;
	assert_int_equal(devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &handle, cap, 16, 16, &out), -EINVAL);

	struct ioc c;
	ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	prm_set(cap, PRM_in_opcode, PRM_OP_QUERY_HCA_CAP);
	prm_set(cap, PRM_in_op_mod, PRM_CAP_ROCE << 1 | 1);
	ioc_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, cap, sizeof(cap));
	out = ioc_out(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, PRM_SIZE_query_hca_cap_out);
	assert_int_equal(ioc_run(&c), 0);
	assert_int_equal(
		prm_get(out + PRM_query_hca_cap_out_capability_byte, PRM_roce_cap_fl_rc_qp_when_roce_enabled),
		1);
	prm_set((uint8_t *)(uintptr_t)c.attrs[0].data, PRM_in_op_mod, 0x7f);
	assert_int_equal(ioc_run(&c), -EREMOTEIO);
	assert_int_equal(syndrome(out), 0x5c0003);
}

/* Queues that ask for more than one needs, and a process that dies with all of it open. */
static void test_close_with_everything(void **state)
{
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *mem, *out;
	uint64_t handle;
	struct devx_cq cq;
	struct cq plain;
	struct qp qp;
	uint32_t pd, pdn, umem, qpn;

	(void)state;
	open_context();
	mem = arena_alloc(UMEM, 4096);
	assert_int_equal(umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	pd = new_pd(&pdn);
	assert_int_equal(reg_mr(pd, mem, 4096, va(mem), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(new_cq(&plain, 15, -1), 0);
	assert_int_equal(new_qp(&qp, pd, &plain, IBV_QPT_UD), 0);
	assert_int_equal(devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);
	assert_int_equal(devx_qp_new(&handle, &qpn, pdn, plain.cqn, umem, QP_OFF, DB_OFF + 64, &out), 0);
	/* teardown counts what is left */
}

/* ---- tests: garbage --------------------------------------------------------------------- */

/* Every command number with random words, small handles and addresses that often exist. */
static void test_garbage_write(void **state)
{
	uint64_t s = 0x9e3779b97f4a7c15;
	size_t mark;

	(void)state;
	open_context();
	new_pd(NULL);
	mark = app.used;
	for (unsigned i = 0; i < 60000; i++) {
		uint8_t *p;
		size_t len = rnd(&s) % 40 * 4;
		struct nic_call call = {.len = len};
		ssize_t r;

		app.used = mark;
		p = arena_alloc(256, 8);
		call.bytes = p;
		for (size_t w = 0; w + 4 <= len; w += 4) {
			uint32_t v = (uint32_t)rnd(&s);
			uint64_t a = va(app.arena) + rnd(&s) % (ARENA / 2) / 4096 * 4096;

			v = v & 3 ? v >> 24 & 7 : v;
			memcpy(p + w, &v, 4);
			if (w % 8 == 0 && w + 8 <= len && rnd(&s) % 3 == 0)
				memcpy(p + w, &a, 8), w += 4;
		}
		if (len >= 8) {
			const struct ib_uverbs_cmd_hdr hdr = {
				.command = (uint32_t)(rnd(&s) % 60) |
					   (rnd(&s) % 4 ? 0 : IB_USER_VERBS_CMD_FLAG_EXTENDED),
				.in_words = (uint16_t)(rnd(&s) % 8 ? len / 4 : rnd(&s)),
				.out_words = (uint16_t)(rnd(&s) % 8 ? 64 : rnd(&s)),
			};

			memcpy(p, &hdr, 8);
		}
		if (len >= 16 && rnd(&s) % 4) {
			uint64_t out = va(app.arena + ARENA / 2);

			memcpy(p + 8, &out, 8);
		}
		for (unsigned again = 0; (r = uverbs_write(app.file, &call)) == NIC_AGAIN; again++)
			assert_true(again < 16);
		assert_true(r < 0 || r == (ssize_t)len);
		if (i % 64 == 0)
			run();
	}
}

/* Good commands with up to three bytes changed, on objects that exist: many succeed, none may crash. */
static void test_damaged_commands(void **state)
{
	static const uint8_t types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	static const uint16_t steps[] = {PRM_OP_RST2INIT_QP, PRM_OP_INIT2INIT_QP, PRM_OP_INIT2RTR_QP,
		PRM_OP_RTR2RTS_QP, PRM_OP_RTS2RTS_QP, PRM_OP_2ERR_QP, PRM_OP_2RST_QP, PRM_OP_QUERY_QP};
	uint32_t umem, pdn, pd, qpn, ok[6] = {0};
	uint64_t umem_handle, handle;
	struct devx_cq dcq;
	struct cq base, cq;
	uint8_t *mem, *out;
	struct qp qp;
	size_t mark;

	(void)state;
	open_context();
	pd = new_pd(&pdn);
	assert_int_equal(new_cq(&base, 63, -1), 0);
	mem = arena_alloc(UMEM, 4096);
	assert_int_equal(umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &umem_handle), 0);
	mark = app.used;
	app.fuzz = 0x2545f4914f6cdd1d;
	for (unsigned i = 0; i < 3000; i++) {
		struct ib_uverbs_reg_mr_resp *mr;

		app.used = mark;
		ok[0] += new_cq(&cq, 63, -1) == 0;
		ok[1] += reg_mr(pd, mem, UMEM, va(mem), IBV_ACCESS_LOCAL_WRITE, &mr) == 0;
		if (new_qp(&qp, pd, &base, types[i % 3]) == 0) {
			struct ib_uverbs_destroy_qp destroy = {.qp_handle = qp.handle};
			struct ib_uverbs_destroy_qp_resp *done;
			bool init = modify(&qp, TO_INIT, IBV_QPS_INIT) == 0;

			ok[2]++;
			if (init && modify(&qp, TO_RTR, IBV_QPS_RTR) == 0 &&
				modify(&qp, TO_RTS, IBV_QPS_RTS) == 0)
				ok[3]++;
			post(qp.buf + RQ_BYTES, qp.db, qp.qpn, &qp.pi, (uint8_t)rnd(&app.fuzz), 1, NULL);
			run();
			CMD_OUT(IB_USER_VERBS_CMD_DESTROY_QP, destroy, done);
		}
		if (devx_cq_new(&dcq, umem, CQ_OFF, DB_OFF, &out) == 0) {
			ok[4]++;
			destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, dcq.handle);
		}
		if (devx_qp_new(&handle, &qpn, pdn, base.cqn, umem, QP_OFF, DB_OFF + 64, &out) == 0) {
			ok[5]++;
			for (unsigned n = 0; n < 6; n++)
				devx_qp_to(
					handle, qpn, steps[n < 4 && i % 2 ? n : rnd(&app.fuzz) % 8], 3, &out);
			destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle);
		}
	}
	for (unsigned i = 0; i < 6; i++)
		assert_true(ok[i] > 100); /* else nothing was tried */
}

/* Attribute arrays of any shape to every method there is. */
static void test_garbage_ioctl(void **state)
{
	uint64_t s = 0x6a09e667f3bcc909;
	size_t mark;

	(void)state;
	open_context();
	new_pd(NULL);
	mark = app.used;
	for (unsigned i = 0; i < 60000; i++) {
		struct ioc c;

		app.used = mark;
		ioc_start(&c, (uint16_t)(rnd(&s) % 2 ? rnd(&s) % 20 : (1u << 12) + rnd(&s) % 12),
			(uint16_t)(rnd(&s) % 2 ? rnd(&s) % 8 : (1u << 12) + rnd(&s) % 6));
		for (unsigned a = rnd(&s) % 8, first = rnd(&s) % 2; a; a--)
			ioc_add(&c, (uint16_t)((first ? 0 : 1u << 12) + (rnd(&s) % 4 ? a - 1 : rnd(&s) % 16)),
				(uint16_t)(rnd(&s) % 3 ? rnd(&s) % 3 * 4 : rnd(&s) % 300),
				rnd(&s) % 2 ? rnd(&s) % 16 : va(app.arena + ARENA / 2));
		assert_true(ioc_run(&c) <= 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_context),
		T(test_device),
		T(test_ioctl_checks),
		T(test_invoke_write),
		T(test_mr),
		T(test_rereg),
		T(test_qp_states),
		T(test_grh),
		T(test_completion_events),
		T(test_devx),
		T(test_devx_refusals),
		T(test_close_with_everything),
		T(test_garbage_write),
		T(test_damaged_commands),
		T(test_garbage_ioctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
