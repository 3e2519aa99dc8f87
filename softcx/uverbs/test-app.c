/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/test-app.h"
#include "util/xorshift.h"

/* ---- the application -------------------------------------------------------------------- */

struct app app;

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
	if (fd < 64 && !(app.known_fds >> fd & 1)) {
		app.known_fds |= 1ull << fd;
		app.again++;
		return NIC_AGAIN;
	}
	return fstat(fd, st) < 0 ? -EBADF : 0;
}

int nic_call_take_fd(struct nic_call *call, int fd, int *copy)
{
	struct stat st;
	int r = nic_call_fstat(call, fd, &st);

	if (r == 0)
		*copy = dup(fd);
	return r;
}

static void mem_release(struct hw_mem *mem)
{
	free(mem);
}

int nic_call_mem(
	struct nic_call *call, uint64_t va, uint64_t len, bool writable, bool direct, struct hw_mem **out)
{
	unsigned i = 0;

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

void nic_dev_gids(unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids)
{
	static const uint8_t lo[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};

	memset(gids, 0, 2 * sizeof(gids[0]));
	gids[0].raw[0] = 0xfe;
	gids[0].raw[1] = 0x80;
	gids[0].roce_v1 = true;
	memcpy(gids[1].raw, lo, 16);
	*ngids = 2;
}

uint64_t nic_dev_guid(unsigned dev)
{
	return htobe64(0x0002c90300000000 + dev);
}

void *app_arena_alloc(size_t len, size_t align)
{
	void *p;

	app.used = (app.used + align - 1) / align * align;
	p = app.arena + app.used;
	app.used += len;
	assert_true(app.used <= ARENA);
	memset(p, 0, len);
	return p;
}

uint64_t app_va(const void *p)
{
	return (uintptr_t)p;
}

void app_run(void)
{
	while (hw_poll(app.dev))
		;
}

uint64_t app_rnd(uint64_t *s)
{
	return xorshift(s);
}

static void mutate(uint8_t *p, size_t len, uint64_t *s)
{
	for (unsigned n = app_rnd(s) % 4; len && n; n--)
		p[app_rnd(s) % len] =
			app_rnd(s) & 1 ? (uint8_t)app_rnd(s) : (uint8_t[]){0, 1, 0xff, 0x80}[app_rnd(s) % 4];
}

/* A legacy command: core and driver structures one after the other, both ways. */
ssize_t app_cmd(uint32_t number, void *req, size_t req_len, const void *drv, size_t drv_len, size_t resp_len,
	size_t drv_resp_len, void **resp)
{
	uint8_t *bytes = app_arena_alloc(8 + req_len + drv_len, 8),
		*out = app_arena_alloc(resp_len + drv_resp_len, 8);
	struct ib_uverbs_cmd_hdr hdr = {
		.command = number,
		.in_words = (uint16_t)((8 + req_len + drv_len) / 4),
		.out_words = (uint16_t)((resp_len + drv_resp_len) / 4),
	};
	struct nic_call call = {.bytes = bytes, .len = 8 + req_len + drv_len};
	uint64_t response = app_va(out);
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

/* ---- ioctl ------------------------------------------------------------------------------ */

void app_ioc_start(struct ioc *c, uint16_t object, uint16_t method)
{
	memset(c, 0, sizeof(*c));
	c->hdr.object_id = object;
	c->hdr.method_id = method;
	c->hdr.driver_id = RDMA_DRIVER_MLX5;
}

struct ib_uverbs_attr *app_ioc_add(struct ioc *c, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];

	a->attr_id = id;
	a->len = len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	a->data = data;
	return a;
}

/* Bytes of more than 8 go through the arena, as they would through the driver. */
struct ib_uverbs_attr *app_ioc_in(struct ioc *c, uint16_t id, const void *p, uint16_t len)
{
	uint64_t data = 0;

	if (len <= 8) {
		memcpy(&data, p, len);
	} else {
		void *copy = app_arena_alloc(len, 8);

		memcpy(copy, p, len);
		data = app_va(copy);
	}
	return app_ioc_add(c, id, len, data);
}

void *app_ioc_out(struct ioc *c, uint16_t id, uint16_t len)
{
	void *p = app_arena_alloc(len, 8);

	app_ioc_add(c, id, len, app_va(p));
	return p;
}

int app_ioc_run(struct ioc *c)
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

int app_destroy_by_ioctl(uint16_t object, uint16_t method, uint16_t id, uint64_t handle)
{
	struct ioc c;

	app_ioc_start(&c, object, method);
	app_ioc_add(&c, id, 0, handle);
	return app_ioc_run(&c);
}

/* ---- steps that many tests take --------------------------------------------------------- */

int app_setup_profile(const struct profile *profile)
{
	const struct hw_config cfg = {.lenient = true, .profile = profile};
	struct hw_gid gids[HW_GIDS];
	unsigned n;

	memset(&app, 0, sizeof(app));
	signal(SIGPIPE, SIG_IGN);
	app.arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	app.async_fd = -1;
	nic_dev_gids(0, gids, &n);
	assert_int_equal(hw_dev_new(&app.dev, &cfg, gids, n), 0);
	return uverbs_open(app.dev, 0, &app.file);
}

int app_setup(void **state)
{
	return app_setup_profile(NULL);
}

int app_teardown(void **state)
{
	struct hw_counts n;

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

ssize_t app_get_context(void)
{
	const struct mlx5_ib_alloc_ucontext_req_v2 drv = {
		.flags = MLX5_IB_ALLOC_UCTX_DEVX,
		.max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
	struct ib_uverbs_get_context req = {0};
	struct ib_uverbs_get_context_resp *resp;
	ssize_t r = app_cmd(IB_USER_VERBS_CMD_GET_CONTEXT, &req, sizeof(req), &drv, sizeof(drv),
		sizeof(*resp), sizeof(struct mlx5_ib_alloc_ucontext_resp), (void **)&resp);

	if (r == 0) {
		const struct mlx5_ib_alloc_ucontext_resp *d = (void *)(resp + 1);

		app.async_fd = (int)resp->async_fd;
		assert_int_equal(d->response_length, sizeof(*d));
		assert_int_equal(d->cqe_version, 1);
		assert_int_equal(d->tot_bfregs, 0);
	}
	return r;
}

void app_open_context(void)
{
	uint64_t *offset, fd_offset;
	uint32_t *page, *length;
	struct ioc c;
	int fd;

	assert_int_equal(app_get_context(), 0);
	app_ioc_start(&c, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	app_ioc_add(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0);
	app_ioc_add(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
	offset = app_ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8);
	length = app_ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4);
	page = app_ioc_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4);
	assert_int_equal(app_ioc_run(&c), 0);
	assert_int_equal(*length, 4096);
	assert_true(c.attrs[2].flags & UVERBS_ATTR_F_VALID_OUTPUT);
	app.uar_page = *page;
	assert_int_equal(uverbs_mmap(app.file, *offset, 4096, &fd, &fd_offset), 0);
	app.uar = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)fd_offset);
	assert_ptr_not_equal(app.uar, MAP_FAILED);
	assert_int_equal(uverbs_mmap(app.file, *offset, 8192, &fd, &fd_offset), -EINVAL);
	assert_int_equal(uverbs_mmap(app.file, 8u << 8 << 12, 4096, &fd, &fd_offset), -EINVAL);
}

uint32_t app_new_pd(uint32_t *pdn)
{
	uint32_t *resp; /* handle, then the driver's PDN */
	struct ib_uverbs_alloc_pd req;

	assert_int_equal(app_cmd(IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), NULL, 0,
				 sizeof(struct ib_uverbs_alloc_pd_resp), sizeof(struct mlx5_ib_alloc_pd_resp),
				 (void **)&resp),
		0);
	if (pdn)
		*pdn = resp[1];
	return resp[0];
}

ssize_t app_reg_mr(uint32_t pd, void *p, uint64_t len, uint64_t iova, uint32_t access,
	struct ib_uverbs_reg_mr_resp **resp)
{
	struct ib_uverbs_reg_mr req = {
		.start = app_va(p), .length = len, .hca_va = iova, .pd_handle = pd, .access_flags = access};

	return CMD_OUT(IB_USER_VERBS_CMD_REG_MR, req, *resp);
}

ssize_t app_new_cq(struct cq *cq, uint32_t cqe, int channel)
{
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct mlx5_ib_create_cq_resp drv;
	} * resp;
	struct ib_uverbs_create_cq req = {.user_handle = app_va(cq), .cqe = cqe, .comp_channel = channel};
	struct mlx5_ib_create_cq drv;
	ssize_t r;

	cq->ring = app_arena_alloc(64 * 64, 4096);
	memset(cq->ring, 0xf0, 64 * 64); /* as the library does: opcode invalid */
	cq->db = app_arena_alloc(8, 64);
	memset(&drv, 0, sizeof(drv));
	drv.buf_addr = app_va(cq->ring);
	drv.db_addr = app_va(cq->db);
	drv.cqe_size = 64;
	drv.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
	drv.uar_page_index = (uint16_t)app.uar_page;
	r = app_cmd(IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), &drv, sizeof(drv), sizeof(resp->core),
		sizeof(resp->drv), (void **)&resp);
	if (r == 0) {
		cq->handle = resp->core.cq_handle;
		cq->cqn = resp->drv.cqn;
	}
	return r;
}

void app_arm_cq(const struct cq *cq, uint32_t ci)
{
	uint32_t word = htobe32(ci & 0xffffff);

	cq->db[1] = word;
	app.uar[4] = (uint64_t)htobe32(cq->cqn) << 32 | word;
}

ssize_t app_new_qp(struct qp *qp, uint32_t pd, const struct cq *cq, uint8_t type)
{
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct mlx5_ib_create_qp_resp drv;
	} * resp;
	struct ib_uverbs_create_qp req = {
		.user_handle = app_va(qp),
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
	qp->buf = app_arena_alloc(RQ_BYTES + 64 * 64, 4096);
	qp->db = app_arena_alloc(8, 64);
	memset(&drv, 0, sizeof(drv));
	drv.buf_addr = app_va(qp->buf);
	drv.db_addr = app_va(qp->db);
	drv.sq_wqe_count = 64;
	drv.rq_wqe_count = 16;
	drv.rq_wqe_shift = 6;
	drv.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX;
	drv.bfreg_index = app.uar_page;
	r = app_cmd(IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), &drv, sizeof(drv), sizeof(resp->core),
		sizeof(resp->drv), (void **)&resp);
	if (r == 0) {
		qp->handle = resp->core.qp_handle;
		qp->qpn = qp->dest = resp->core.qpn;
	}
	return r;
}

ssize_t app_modify(const struct qp *qp, uint32_t mask, uint8_t state)
{
	struct ib_uverbs_modify_qp req = {
		.dest = {.dgid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
			.sgid_index = 1,
			.is_global = 1,
			.port_num = 1},
		.qp_handle = qp->handle,
		.attr_mask = mask | IBV_QP_STATE,
		.dest_qp_num = qp->dest,
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

/* One signalled WQE of a single WQEBB at @sq: ctrl, then @seg. */
void app_post(uint8_t *sq, uint32_t *db, uint32_t qpn, uint16_t *pi, uint8_t op, uint8_t ds, const void *seg)
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

unsigned app_waiting(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* ---- DEVX ------------------------------------------------------------------------ */

int app_umem_reg(const void *p, uint64_t len, uint32_t access, uint32_t *id, uint64_t *handle)
{
	return app_umem_reg_pages(p, len, access, 4096, id, handle);
}

int app_umem_reg_pages(
	const void *p, uint64_t len, uint32_t access, uint64_t pgsz_bitmap, uint32_t *id, uint64_t *handle)
{
	uint32_t *out;
	struct ioc c;
	int r;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, 0);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, app_va(p));
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, len);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, access);
	if (pgsz_bitmap)
		app_ioc_add(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, pgsz_bitmap);
	out = app_ioc_out(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4);
	r = app_ioc_run(&c);
	*id = *out;
	*handle = c.attrs[0].data;
	return r;
}

/* @method: create, modify or query; their attributes are numbered alike. */
int app_devx(
	uint16_t method, uint64_t *handle, const void *in, uint16_t in_len, uint16_t out_len, uint8_t **out)
{
	struct ioc c;
	int r;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX_OBJ, method);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, *handle);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_len);
	*out = app_ioc_out(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out_len);
	if (app.fuzz)
		mutate((uint8_t *)(uintptr_t)c.attrs[1].data, in_len, &app.fuzz);
	r = app_ioc_run(&c);
	*handle = c.attrs[0].data;
	return r;
}

int app_devx_cq_new(struct devx_cq *cq, uint32_t umem, uint64_t off, uint64_t db_off, uint8_t **out)
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
	r = app_devx(
		MLX5_IB_METHOD_DEVX_OBJ_CREATE, &cq->handle, in, sizeof(in), PRM_SIZE_create_cq_out, out);
	cq->cqn = (uint32_t)prm_get(*out, PRM_create_cq_out_cqn);
	return r;
}

int app_devx_qp_new(uint64_t *handle, uint32_t *qpn, uint32_t pdn, uint32_t cqn, uint32_t umem, uint64_t off,
	uint64_t db_off, uint8_t **out)
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
	r = app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, handle, in, sizeof(in), PRM_SIZE_create_qp_out, out);
	*qpn = (uint32_t)prm_get(*out, PRM_create_qp_out_qpn);
	return r;
}

void app_open_devx_cq(struct devx_queues *q)
{
	uint8_t *out;

	app_open_context();
	q->pd = app_new_pd(&q->pdn);
	q->mem = app_arena_alloc(UMEM, 4096);
	assert_int_equal(app_umem_reg(q->mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &q->umem, &q->umem_handle), 0);
	assert_int_equal(app_devx_cq_new(&q->cq, q->umem, CQ_OFF, DB_OFF, &out), 0);
}

void app_open_devx_qp(struct devx_queues *q)
{
	uint8_t *out;

	app_open_devx_cq(q);
	assert_int_equal(
		app_devx_qp_new(&q->qp, &q->qpn, q->pdn, q->cq.cqn, q->umem, QP_OFF, DB_OFF + 64, &out), 0);
}

int app_devx_qp_to(uint64_t handle, uint32_t qpn, uint16_t opcode, uint8_t mtu, uint8_t **out)
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
	return app_devx(MLX5_IB_METHOD_DEVX_OBJ_MODIFY, &handle, in, sizeof(in), PRM_SIZE_modify_qp_out, out);
}

uint32_t app_syndrome(const uint8_t *out)
{
	assert_int_not_equal(prm_get(out, PRM_out_status), 0);
	return (uint32_t)prm_get(out, PRM_out_syndrome);
}

int app_query_caps(uint16_t type, uint8_t **page)
{
	uint8_t in[PRM_SIZE_query_hca_cap_in] = {0};
	struct ioc c;
	int r;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_HCA_CAP);
	prm_set(in, PRM_in_op_mod, type << 1 | 1);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, sizeof(in));
	*page = app_ioc_out(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, PRM_SIZE_query_hca_cap_out);
	r = app_ioc_run(&c);
	*page += PRM_query_hca_cap_out_capability_byte;
	return r;
}

int app_subscribe(int fd, uint64_t obj, uint16_t event, uint64_t cookie)
{
	struct ioc c;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 0, (uint64_t)fd);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, 0, obj);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &event, 2);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, cookie);
	return app_ioc_run(&c);
}

int app_event_channel(uint32_t flags)
{
	struct ioc c;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0, 0);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 4, flags);
	assert_int_equal(app_ioc_run(&c), 0);
	return (int)c.attrs[0].data;
}
