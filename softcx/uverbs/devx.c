/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_MBOX = 16384, EQE_BYTES = 64 };

/* ---- mailboxes -------------------------------------------------------------------------- */

static int mbox_open(const struct uverbs_bundle *b, uint16_t in_id, uint64_t out_len, struct uverbs_mbox *m)
{
	if (!b->file->devx || out_len < PRM_SIZE_destroy_out)
		return -EINVAL;
	m->in = uverbs_attr_bytes(b, in_id, &m->in_len);
	m->out_len = out_len < MAX_MBOX ? out_len : MAX_MBOX;
	m->out = calloc(1, m->out_len);
	return m->out ? 0 : -ENOMEM;
}

static void mbox_free(struct uverbs_mbox *m)
{
	free(m->out);
}

static int mbox_open_out(
	const struct uverbs_bundle *b, uint16_t in_id, uint16_t out_id, struct uverbs_mbox *m)
{
	return mbox_open(b, in_id, uverbs_attr(b, out_id)->len, m);
}

/* Gives the out mailbox to the application: after success and after a refusal by firmware. */
static int mbox_answer(
	const struct uverbs_bundle *b, uint16_t out_id, const struct uverbs_mbox *m, int result)
{
	int r;

	if (result != 0 && result != -EREMOTEIO)
		return result;
	r = uverbs_attr_out(b, out_id, m->out, m->out_len);
	return r < 0 ? r : result;
}

static unsigned opcode(const struct uverbs_mbox *m)
{
	return (unsigned)prm_get(m->in, PRM_in_opcode);
}

static int devx_other(struct uverbs_bundle *b)
{
	CLEANUP(mbox_free) struct uverbs_mbox m = {0};
	int r = mbox_open_out(b, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &m);

	if (r == 0)
		r = uverbs_fw_general(b->file, &m);
	return mbox_answer(b, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &m, r);
}

/* ---- user memory ------------------------------------------------------------------------ */

static int umem_destroy(struct uverbs_obj *obj)
{
	hw_mem_put(((struct uverbs_umem *)obj)->mem);
	return 0;
}

/* Linux devx_umem_find_best_pgsize(): pages from 4 KiB to those that the umem fills, of those sizes only */
static int umem_max_page(uint64_t bitmap, uint64_t len, uint64_t *max_page)
{
	uint64_t most = UVERBS_PAGE;

	while (most < len && most < 1ull << 62)
		most *= 2;
	bitmap &= (2 * most - 1) & ~(uint64_t)(UVERBS_PAGE - 1);
	if (!bitmap)
		return -EINVAL;
	*max_page = 1ull << (63 - __builtin_clzll(bitmap));
	return 0;
}

static int devx_umem_reg(struct uverbs_bundle *b)
{
	const uint64_t known = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
			       IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
	CLEANUP(hw_mem_putp) struct hw_mem *mem = NULL;
	uint64_t addr = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	uint64_t len = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	uint64_t access = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS);
	uint64_t max_page = 0;
	struct uverbs_umem *umem;
	uint32_t id;
	int r;

	if (uverbs_attr(b, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP)) {
		r = umem_max_page(
			uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP), len, &max_page);
		if (r < 0)
			return r;
	}
	if (!b->file->devx || (access & ~known) || len == 0 || addr + len < addr)
		return -EINVAL;
	if ((access & IB_UVERBS_ACCESS_REMOTE_WRITE) && !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	r = nic_call_mem(b->call, addr, len, access & IB_UVERBS_ACCESS_LOCAL_WRITE, true, &mem);
	if (r)
		return r;
	umem = uverbs_obj_new(b->file, UVERBS_UMEM, sizeof(*umem));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)umem;
	if (!umem)
		return -ENOMEM;
	umem->mem = mem;
	umem->va = addr;
	umem->len = len;
	umem->max_page = max_page;
	mem = NULL;
	uverbs_obj_commit(&pending, umem_destroy);
	id = uverbs_umem_id(umem);
	r = uverbs_attr_new_handle(b, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, umem->obj.handle);
	return r < 0 ? r : uverbs_attr_out(b, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &id, sizeof(id));
}

static int devx_umem_dereg(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, UVERBS_UMEM, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

/* ---- events ----------------------------------------------------------------------------- */

struct uverbs_sub {
	LIST_ENTRY(uverbs_sub) link;
	struct uverbs_channel *ch;
	int eventfd; /* to signal in place of @ch; or -1 */
	uint16_t event;
	uint64_t cookie;
};

static void sub_free(struct uverbs_sub *sub)
{
	LIST_REMOVE(sub, link);
	if (sub->eventfd >= 0)
		close(sub->eventfd);
	uverbs_channel_put(sub->ch);
	free(sub);
}

/*
 * The kernel ends the subscriptions of an event file when it is closed (hw/mlx5/devx.c,
 * devx_async_event_destroy_uobj), those with an eventfd included; the objects stay. Here they end before the
 * next event of their object and before the next event file.
 */
static void subs_sweep(struct uverbs_devx *devx)
{
	struct uverbs_sub *sub = LIST_FIRST(&devx->subs);

	while (sub) {
		struct uverbs_sub *next = LIST_NEXT(sub, link);

		if (uverbs_channel_closed(sub->ch))
			sub_free(sub);
		sub = next;
	}
}

unsigned uverbs_devx_subscriptions(const struct uverbs_file *file)
{
	const struct uverbs_obj *obj;
	const struct uverbs_sub *sub;
	unsigned n = 0;

	LIST_FOREACH (obj, &file->live, in_file)
		if (obj->type == UVERBS_DEVX)
			LIST_FOREACH (sub, &((const struct uverbs_devx *)obj)->subs, link)
				n += !uverbs_channel_closed(sub->ch);
	return n;
}

/* struct mlx5_eqe: type in byte 1, the object where the kind of event has it */
static void make_eqe(const struct uverbs_devx *devx, int event, uint8_t eqe[EQE_BYTES])
{
	uint32_t number = htobe32(devx->cq   ? hw_cqn(devx->cq)
				  : devx->qp ? hw_qpn(devx->qp)
					     : hw_srqn(devx->srq));

	memset(eqe, 0, EQE_BYTES);
	eqe[1] = (uint8_t)event;
	memcpy(eqe + (event == HW_EV_CQ_ERROR ? 0x20 : 0x38), &number, sizeof(number));
	if (event == HW_EV_CQ_ERROR)
		eqe[0x2b] = 1; /* struct mlx5_eqe_cq_err, syndrome: overrun */
}

static void on_event(struct uverbs_devx *devx, int event)
{
	struct uverbs_sub *sub;

	subs_sweep(devx);
	LIST_FOREACH (sub, &devx->subs, link) {
		uint8_t record[sizeof(sub->cookie) + EQE_BYTES];
		bool omit = uverbs_channel_kind(sub->ch) == UVERBS_CH_DEVX_OMIT;

		if (sub->event != event)
			continue;
		if (sub->eventfd >= 0) {
			uverbs_eventfd_signal(sub->eventfd);
			continue;
		}
		memcpy(record, &sub->cookie, sizeof(sub->cookie));
		make_eqe(devx, event, record + sizeof(sub->cookie));
		if (omit) /* without data, several unread events are as good as one */
			uverbs_channel_purge(sub->ch, sub->cookie);
		uverbs_channel_post(sub->ch, record, omit ? sizeof(sub->cookie) : sizeof(record));
	}
}

static bool event_of_object(uint16_t event)
{
	/* completion, path, established, drained, CQ error, WQ errors, SRQ, DCT, XRQ: Linux devx.c */
	static const uint16_t known[] = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x07, 0x10, 0x11, 0x12, 0x13, 0x14, 0x18, 0x1c, 0x1d};

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i] == event)
			return true;
	return false;
}

static int subscribe_channel(const struct uverbs_bundle *b, struct uverbs_channel **ch)
{
	int64_t fd = (int64_t)uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
	int r = uverbs_channel_find(b->file, b->call, fd, UVERBS_CH_DEVX, ch);

	return r < 0 ? uverbs_channel_find(b->file, b->call, fd, UVERBS_CH_DEVX_OMIT, ch) : r;
}

static int subscribe(const struct uverbs_bundle *b, struct uverbs_devx *devx, struct uverbs_channel *ch,
	const uint16_t *events, size_t n)
{
	const struct ib_uverbs_attr *redirect = uverbs_attr(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);

	for (size_t i = 0; i < n; i++) {
		struct uverbs_sub *sub;
		int eventfd = -1, r = 0;

		if (redirect)
			r = uverbs_eventfd_take(b->call,
				(int32_t)uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM),
				&eventfd);
		if (r)
			return r;
		sub = calloc(1, sizeof(*sub));
		if (!sub) {
			if (eventfd >= 0)
				close(eventfd);
			return -ENOMEM;
		}
		sub->ch = uverbs_channel_get(ch);
		sub->eventfd = eventfd;
		sub->event = events[i];
		sub->cookie = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
		LIST_INSERT_HEAD(&devx->subs, sub, link);
	}
	return 0;
}

static int devx_subscribe(struct uverbs_bundle *b)
{
	enum { PORT_CHANGE = 9, MAX_EVENTS = 16 };
	struct uverbs_channel *ch;
	struct uverbs_obj *obj = NULL;
	uint16_t events[MAX_EVENTS];
	const void *list;
	size_t len;
	int r;

	if (!b->file->devx)
		return -EINVAL;
	if (uverbs_attr(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM) &&
		uverbs_attr(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE))
		return -EINVAL;
	r = subscribe_channel(b, &ch);
	if (r == 0 && uverbs_attr(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE))
		r = uverbs_attr_obj(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, UVERBS_DEVX, &obj);
	if (r)
		return r;
	if (obj && !((struct uverbs_devx *)obj)->cq && !((struct uverbs_devx *)obj)->qp &&
		!((struct uverbs_devx *)obj)->srq)
		return -EINVAL; /* nothing ever happens to it */
	list = uverbs_attr_bytes(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &len);
	if (len % sizeof(events[0]) || len > sizeof(events))
		return -EINVAL;
	memcpy(events, list, len);
	for (size_t i = 0; i < len / sizeof(events[0]); i++)
		if (obj ? !event_of_object(events[i]) : events[i] != PORT_CHANGE)
			return -EINVAL;
	if (!obj) /* the port never changes */
		return 0;
	return subscribe(b, (struct uverbs_devx *)obj, ch, events, len / sizeof(events[0]));
}

static int new_channel(struct uverbs_bundle *b, enum uverbs_channel_kind kind, uint16_t id)
{
	struct uverbs_channel *ch;
	int fd, r = uverbs_channel_new(b->file, kind, &fd, &ch);

	return r < 0 ? r : uverbs_attr_new_fd(b, id, fd);
}

static int devx_event_fd(struct uverbs_bundle *b)
{
	uint64_t flags = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);
	struct uverbs_obj *obj;

	LIST_FOREACH (obj, &b->file->live, in_file)
		if (obj->type == UVERBS_DEVX)
			subs_sweep((struct uverbs_devx *)obj);
	if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA)
		return -EINVAL;
	return new_channel(b, flags ? UVERBS_CH_DEVX_OMIT : UVERBS_CH_DEVX,
		MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
}

static int devx_cmd_fd(struct uverbs_bundle *b)
{
	return new_channel(b, UVERBS_CH_DEVX_CMD, MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE);
}

/* ---- objects ---------------------------------------------------------------------------- */

static int destroy_on_device(struct hw_dev *dev, struct uverbs_devx *devx)
{
	if (devx->cq)
		return hw_cq_destroy(dev, devx->cq);
	if (devx->qp)
		return hw_qp_destroy(dev, devx->qp);
	if (devx->srq)
		return hw_srq_destroy(dev, devx->srq);
	if (devx->rate)
		return hw_rate_destroy(dev, devx->rate);
	return hw_mkey_destroy(dev, devx->mkey);
}

static int devx_destroy(struct uverbs_obj *obj)
{
	struct uverbs_devx *devx = (struct uverbs_devx *)obj;
	int r = destroy_on_device(obj->file->dev, devx);

	if (r < 0)
		return r;
	while (!LIST_EMPTY(&devx->subs))
		sub_free(LIST_FIRST(&devx->subs));
	return 0;
}

static int devx_create(struct uverbs_bundle *b)
{
	CLEANUP(mbox_free) struct uverbs_mbox m = {0};
	struct uverbs_devx *devx = NULL;
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = NULL;
	int r = mbox_open_out(
		b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &m);

	if (r == 0)
		r = uverbs_fw_create(b->file, &m, on_event, &devx);
	if (r == 0) {
		pending = &devx->obj;
		r = uverbs_attr_new_handle(b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, devx->obj.handle);
		uverbs_obj_commit(&pending, devx_destroy);
	}
	return mbox_answer(b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &m, r);
}

static int uverbs_devx_destroy(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, UVERBS_DEVX, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

/* The kernel compares the number in the mailbox with the object that the handle stands for. */
static int find_target(
	const struct uverbs_bundle *b, uint16_t id, const struct uverbs_mbox *m, struct uverbs_fw_target *t)
{
	struct uverbs_obj *obj = uverbs_obj_any(b->file, uverbs_attr_value(b, id));
	uint32_t number = (uint32_t)prm_get(m->in, PRM_in_objn);

	memset(t, 0, sizeof(*t));
	if (!obj)
		return -ENOENT;
	switch (obj->type) {
	case UVERBS_DEVX:
		t->devx = (struct uverbs_devx *)obj;
		t->cq = t->devx->cq;
		t->qp = t->devx->qp;
		break;
	case UVERBS_CQ:
		t->cq = ((struct uverbs_cq *)obj)->hw;
		break;
	case UVERBS_QP:
		t->qp = ((struct uverbs_qp *)obj)->hw;
		break;
	default:
		return -EINVAL;
	}
	switch (opcode(m)) {
	case PRM_OP_QUERY_CQ:
	case PRM_OP_MODIFY_CQ:
		return t->cq && hw_cqn(t->cq) == number ? 0 : -EINVAL;
	case PRM_OP_QUERY_MKEY:
		return t->devx && t->devx->mkey && t->devx->mkey >> 8 == number ? 0 : -EINVAL;
	case PRM_OP_MODIFY_GENERAL:
	case PRM_OP_QUERY_GENERAL:
		number = (uint32_t)prm_get(m->in, PRM_general_obj_id);
		return t->devx && t->devx->rate && hw_rate_id(t->devx->rate) == number ? 0 : -EINVAL;
	default:
		return t->qp && hw_qpn(t->qp) == number ? 0 : -EINVAL;
	}
}

static int devx_modify(struct uverbs_bundle *b)
{
	CLEANUP(mbox_free) struct uverbs_mbox m = {0};
	struct uverbs_fw_target t;
	int r = mbox_open_out(
		b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &m);

	if (r == 0)
		r = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, &m, &t);
	if (r == 0)
		r = uverbs_fw_modify(b->file, &t, &m);
	return mbox_answer(b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &m, r);
}

static int devx_query(struct uverbs_bundle *b)
{
	CLEANUP(mbox_free) struct uverbs_mbox m = {0};
	struct uverbs_fw_target t;
	int r = mbox_open_out(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &m);

	if (r == 0)
		r = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, &m, &t);
	if (r == 0)
		r = uverbs_fw_query(b->file, &t, &m);
	return mbox_answer(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &m, r);
}

/* The answer goes to a command channel instead of an attribute, refusals too. */
static int devx_query_async(struct uverbs_bundle *b)
{
	CLEANUP(mbox_free) struct uverbs_mbox m = {0};
	uint64_t wr_id = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID);
	uint64_t out_len = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN);
	uint8_t record[4096];
	struct uverbs_channel *ch;
	struct uverbs_fw_target t;
	int r;

	if (out_len > sizeof(record) - sizeof(wr_id))
		return -EINVAL;
	r = mbox_open(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, out_len, &m);
	if (r == 0)
		r = uverbs_channel_find(b->file, b->call,
			(int64_t)uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
			UVERBS_CH_DEVX_CMD, &ch);
	if (r == 0)
		r = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, &m, &t);
	if (r == 0)
		r = uverbs_fw_query(b->file, &t, &m);
	if (r && r != -EREMOTEIO)
		return r;
	memcpy(record, &wr_id, sizeof(wr_id));
	memcpy(record + sizeof(wr_id), m.out, m.out_len);
	return uverbs_channel_post(ch, record, sizeof(wr_id) + m.out_len) ? 0 : -EAGAIN;
}

static int uar_alloc(struct uverbs_bundle *b)
{
	struct uverbs_uar *uar;
	uint64_t offset;
	uint32_t page, length = UVERBS_PAGE;
	int r;

	if (uverbs_attr_value(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) > MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	r = uverbs_uar_create(b->file, &uar);
	if (r < 0)
		return r;
	offset = uverbs_uar_offset(uar);
	page = hw_uar_index(uar->hw);
	r = uverbs_attr_new_handle(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page, sizeof(page));
	return r;
}

static int uar_destroy(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, UVERBS_UAR, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

static int pd_query(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_QUERY_PD_HANDLE, UVERBS_PD, &obj);

	if (r < 0)
		return r;
	return uverbs_attr_out(
		b, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &((struct uverbs_pd *)obj)->pdn, sizeof(uint32_t));
}

static int query_eqn(struct uverbs_bundle *b)
{
	uint64_t vector = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
	uint32_t eqn;

	if (vector >= UVERBS_COMP_VECTORS)
		return -EINVAL;
	eqn = UVERBS_EQN + (uint32_t)vector;
	return uverbs_attr_out(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn, sizeof(eqn));
}

static int query_uar(struct uverbs_bundle *b)
{
	(void)b; /* translates static doorbell registers, which this context has none of */
	return -EINVAL;
}

const struct uverbs_ioctl_method uverbs_mlx5_methods[] = {
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, false, uar_alloc,
		{UVERBS_NEW(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), UVERBS_VALUE(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, false, uar_destroy,
		{UVERBS_HANDLE(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, false, pd_query,
		{UVERBS_HANDLE(MLX5_IB_ATTR_QUERY_PD_HANDLE), UVERBS_OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4),
			UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, false, query_eqn,
		{UVERBS_VALUE(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, false, query_uar,
		{UVERBS_VALUE(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, false, devx_other,
		{UVERBS_IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, false, devx_subscribe,
		{UVERBS_FD(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
			UVERBS_MAYBE_HANDLE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 2),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, false, devx_umem_reg,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, false, devx_umem_dereg,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, false, devx_create,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, false, uverbs_devx_destroy,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, false, devx_modify,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, false, devx_query,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, false, devx_query_async,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, 16),
			UVERBS_FD(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, false, devx_event_fd,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, false, devx_cmd_fd,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE), UVERBS_ATTR_END}},
};
const unsigned uverbs_mlx5_methods_len = COUNT(uverbs_mlx5_methods);
