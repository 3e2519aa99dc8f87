/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/devx.h"

#include "mlx5/barrier.h"
#include "mlx5/prm.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/array.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_ATTRS = 6 };

struct call {
	struct { /* as struct ib_uverbs_ioctl_hdr, without its flexible array */
		uint16_t length, object, method, num_attrs;
		uint64_t reserved1;
		uint32_t driver, reserved2;
	} hdr;
	struct ib_uverbs_attr attrs[MAX_ATTRS];
};
_Static_assert(offsetof(struct call, attrs) == sizeof(struct ib_uverbs_ioctl_hdr), "no room between them");

static struct call call_of(uint16_t object, uint16_t method)
{
	return (struct call){.hdr = {.object = object, .method = method, .driver = RDMA_DRIVER_MLX5}};
}

static struct ib_uverbs_attr *add(struct call *c, uint16_t id, size_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];

	assert(c->hdr.num_attrs <= MAX_ATTRS && len <= UINT16_MAX);
	*a = (struct ib_uverbs_attr){
		.attr_id = id, .len = (uint16_t)len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data};
	return a;
}

/* Input of up to 8 bytes stands in the attribute itself (core/uverbs_ioctl.c, uverbs_attr_ptr_is_inline). */
static void add_in(struct call *c, uint16_t id, const void *p, size_t len)
{
	uint64_t data = (uintptr_t)p;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, p, len);
	}
	add(c, id, len, data);
}

static void add_out(struct call *c, uint16_t id, void *p, size_t len)
{
	add(c, id, len, (uintptr_t)p);
}

/* Constants have 8 bytes (rdma/uverbs_ioctl.h, UVERBS_ATTR_CONST_IN), numbers those of their type */
static void add_const(struct call *c, uint16_t id, uint64_t value)
{
	add(c, id, sizeof(value), value);
}

static void add_u32(struct call *c, uint16_t id, uint32_t value)
{
	add(c, id, sizeof(value), value);
}

/* Handles and descriptors, given and new */
static struct ib_uverbs_attr *add_handle(struct call *c, uint16_t id, int64_t handle)
{
	return add(c, id, 0, (uint64_t)handle);
}

static int run(int fd, struct call *c)
{
	int r;

	c->hdr.length = (uint16_t)(sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]));
	do {
		r = ioctl(fd, RDMA_VERBS_IOCTL, c);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* ---- objects of any type ---- */

static const struct {
	uint16_t object, destroy, handle, resp, resp_size; /* ids of the method and of its attribute */
} kinds[RNIC_DEVX_TYPES] = {
	[RNIC_DEVX_VERBS_QP] = {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, UVERBS_ATTR_DESTROY_QP_HANDLE,
		UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp)},
	[RNIC_DEVX_VERBS_CQ] = {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, UVERBS_ATTR_DESTROY_CQ_HANDLE,
		UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp)},
	[RNIC_DEVX_OBJ] = {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
		MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, 0, 0},
	[RNIC_DEVX_MR] = {UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE, 0, 0},
	[RNIC_DEVX_UMEM] = {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
		MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, 0, 0},
	[RNIC_DEVX_AH] = {UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, UVERBS_ATTR_DESTROY_AH_HANDLE, 0, 0},
	[RNIC_DEVX_UAR] = {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
		MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 0, 0},
	[RNIC_DEVX_PD] = {UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, 0},
};

int rnic_devx_destroy(int fd, enum rnic_devx_type type, uint32_t handle)
{
	struct call c = call_of(kinds[type].object, kinds[type].destroy);
	uint32_t resp[4] = {0};

	add_handle(&c, kinds[type].handle, handle);
	if (kinds[type].resp_size)
		add_out(&c, kinds[type].resp, resp, kinds[type].resp_size);
	return run(fd, &c);
}

/* The number has 4 bytes, and no other length (core/uverbs_std_types_device.c) */
int rnic_devx_list(int fd, enum rnic_devx_type type, uint32_t handles[static RNIC_DEVX_LIST_MAX])
{
	struct call c = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	uint32_t n = 0;
	int r;

	add_const(&c, UVERBS_ATTR_INFO_OBJECT_ID, kinds[type].object);
	add_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, &n, sizeof(n));
	add_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, handles, RNIC_DEVX_LIST_MAX * sizeof(handles[0]));
	r = run(fd, &c);
	return r < 0 ? r : (int)n;
}

/* ---- firmware commands ---- */

/* Linux mlx5/core/cmd.c, cmd_status_to_err(): what older kernels made of a status themselves */
static int status_error(const uint8_t *out)
{
	static const struct {
		uint8_t status;
		int error;
	} known[] = {{0x06, -EBUSY}, {0x08, -ENOMEM}, {0x0f, -EAGAIN}, {0x01, -EIO}, {0x04, -EIO},
		{0x50, -EIO}, {0x51, -EIO}};
	uint8_t status = (uint8_t)prm_get(out, PRM_out_status);

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].status == status)
			return known[i].error;
	return -EINVAL;
}

static int run_command(int fd, struct call *c, const uint8_t *out)
{
	int r = run(fd, c);

	return r == -EREMOTEIO ? status_error(out) : r;
}

/* @in, @out: mailboxes. *@handle: what the other calls name the object by. */
static int rnic_devx_create(
	int fd, const void *in, size_t in_size, void *out, size_t out_size, uint32_t *handle)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	const struct ib_uverbs_attr *made = add_handle(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0);
	int r;

	add_in(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_size);
	add_out(&c, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, out_size);
	r = run_command(fd, &c, out);
	if (r == 0)
		*handle = (uint32_t)made->data;
	return r;
}

int rnic_devx_query(int fd, uint32_t handle, const void *in, size_t in_size, void *out, size_t out_size)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY);

	add_handle(&c, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle);
	add_in(&c, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, in, in_size);
	add_out(&c, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, out, out_size);
	return run_command(fd, &c, out);
}

int rnic_devx_modify(int fd, uint32_t handle, const void *in, size_t in_size, void *out, size_t out_size)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);

	add_handle(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle);
	add_in(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, in, in_size);
	add_out(&c, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, out, out_size);
	return run_command(fd, &c, out);
}

/* ---- memory ---- */

int rnic_devx_umem_reg(int fd, void *mem, uint64_t size, uint64_t page, uint32_t *handle, uint32_t *id)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	const struct ib_uverbs_attr *made = add_handle(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0);
	uint64_t address = (uintptr_t)mem;
	int r;

	add_in(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, &address, sizeof(address));
	add_in(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, &size, sizeof(size));
	add_u32(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, IBV_ACCESS_LOCAL_WRITE);
	add_in(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, &page, sizeof(page));
	add_out(&c, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, id, sizeof(*id));
	r = run(fd, &c);
	if (r == 0)
		*handle = (uint32_t)made->data;
	return r;
}

/* ---- doorbell pages ---- */

static int uar_alloc(int fd, uint64_t type, struct rnic_devx_uar *uar)
{
	struct call c = call_of(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	const struct ib_uverbs_attr *made = add_handle(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
	uint32_t size;
	int r;

	add_const(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type);
	add_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &uar->mmap_off, sizeof(uar->mmap_off));
	add_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &size, sizeof(size));
	add_out(&c, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page_id, sizeof(uar->page_id));
	r = run(fd, &c);
	if (r == 0) {
		uar->handle = (uint32_t)made->data;
		uar->mmap_size = size;
	}
	return r;
}

int rnic_devx_uar_alloc(int fd, struct rnic_devx_uar *uar)
{
	int r = uar_alloc(fd, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC, uar);

	/* older kernels have only write-combining pages */
	return r < 0 ? uar_alloc(fd, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, uar) : 0;
}

/* ---- events ---- */

int rnic_devx_event_fd(int fd, int *events)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC);
	const struct ib_uverbs_attr *made = add_handle(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0);
	int r, flags;

	add_u32(&c, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
	r = run(fd, &c);
	if (r < 0)
		return r;
	*events = (int)made->data_s64;
	flags = fcntl(*events, F_GETFL);
	if (flags >= 0 && fcntl(*events, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	r = -errno;
	close(*events);
	return r;
}

/* Events of these types of an object; @cookie comes with each. */
static int rnic_devx_subscribe(
	int fd, int events, uint32_t handle, const uint16_t *types, size_t n, uint64_t cookie)
{
	struct call c = call_of(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);

	add_handle(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, events);
	add_handle(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, handle);
	add_in(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types, n * sizeof(*types));
	add_in(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, &cookie, sizeof(cookie));
	return run(fd, &c);
}

int rnic_devx_next_event(int events, uint64_t *cookie)
{
	ssize_t n = read(events, cookie, sizeof(*cookie));

	if (n == (ssize_t)sizeof(*cookie))
		return 1;
	if (n >= 0)
		return -EIO;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int rnic_queue_create(struct rnic_device *dev, const char *what, const uint8_t *in, size_t in_size,
	uint32_t *handle, uint32_t *number)
{
	uint8_t out[16] = {0};
	int r = rnic_devx_create(dev->ctx->cmd_fd, in, in_size, out, sizeof(out), handle);

	if (r < 0)
		return log_errno(r, "cannot make a %s (firmware status %#x, syndrome %#x)", what,
			(unsigned)prm_get(out, PRM_out_status), (unsigned)prm_get(out, PRM_out_syndrome));
	*number = (uint32_t)prm_get(out, PRM_out_objn);
	return 0;
}

int rnic_queue_subscribe(
	struct rnic_device *dev, int fd, uint32_t handle, const uint16_t *events, size_t n, uint64_t cookie)
{
	return rnic_devx_subscribe(dev->ctx->cmd_fd, fd ? fd : dev->events, handle, events, n, cookie);
}

void rnic_queue_store_record(uint32_t *p, uint32_t v)
{
	barrier_to_device();
	__atomic_store_n(p, htobe32(v), __ATOMIC_RELAXED);
}

void rnic_queue_ring(void *reg, uint64_t be_value)
{
	barrier_doorbell();
	__atomic_store_n((uint64_t *)reg, be_value, __ATOMIC_RELAXED);
	barrier_doorbell();
}
