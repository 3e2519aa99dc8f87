/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/fw-obj.h"

#include "softcx/uverbs/srq.h"
#include "softcx/uverbs/uar.h"

#include <endian.h>
#include <string.h>

static struct uverbs_umem *find_umem(struct uverbs_file *file, uint32_t id)
{
	struct uverbs_obj *obj;

	if (id == 0 || uverbs_obj_find(file, UVERBS_UMEM, id - 1, &obj) < 0)
		return NULL;
	return (struct uverbs_umem *)obj;
}

struct uverbs_pd *uverbs_fw_pd(struct uverbs_file *file, uint32_t pdn)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		struct uverbs_pd *pd;

		if (uverbs_pd_find(file, h, &pd) == 0 && pd->pdn == pdn)
			return pd;
	}
	return NULL;
}

struct uverbs_obj *uverbs_fw_cq(struct uverbs_file *file, uint32_t cqn, struct hw_cq **cq)
{
	struct uverbs_obj *obj;

	*cq = hw_cq_find(file->dev, cqn);
	obj = *cq ? hw_cq_arg(*cq) : NULL;
	return obj && obj->live && obj->file == file ? obj : NULL;
}

struct uverbs_obj *uverbs_fw_srq(struct uverbs_file *file, uint32_t srqn, struct hw_srq **srq)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		struct uverbs_obj *obj = uverbs_obj_any(file, h);

		if (!obj || (obj->type != UVERBS_SRQ && obj->type != UVERBS_DEVX))
			continue;
		*srq = obj->type == UVERBS_SRQ ? ((struct uverbs_srq *)obj)->hw
					       : ((struct uverbs_devx *)obj)->srq;
		if (*srq && hw_srqn(*srq) == srqn)
			return obj;
	}
	return NULL;
}

int uverbs_fw_umem(struct uverbs_file *file, const struct uverbs_mbox *m, uint32_t id, uint64_t off,
	uint64_t len, unsigned align, bool write, struct uverbs_umem **umem)
{
	*umem = find_umem(file, id);
	if (!*umem)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_UMEM);
	if (((*umem)->va + off) % align)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_UMEM_ALIGN);
	if (off > (*umem)->len || len > (*umem)->len - off)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_UMEM_RANGE);
	if (write && !(*umem)->mem->writable)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_UMEM_RO);
	return 0;
}

int uverbs_fw_umem_offset(const struct uverbs_mbox *m, const struct uverbs_umem *umem, uint64_t off)
{
	bool good = off == 0 || (umem->max_page && off % (umem->max_page / 64) == 0);

	return good ? 0 : uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_OFFSET);
}

uint64_t uverbs_fw_mem_off(const struct uverbs_umem *umem, uint64_t off)
{
	return umem->va - umem->mem->va + off;
}
int uverbs_fw_ring(struct uverbs_file *file, const struct uverbs_mbox *m, const struct uverbs_fw_place *at,
	struct uverbs_fw_ring *ring)
{
	int r = 0;

	*ring = (struct uverbs_fw_ring){.off = at->off, .db_off = at->db_off};
	if (at->bytes)
		r = uverbs_fw_umem(file, m, at->umem, at->off, at->bytes, UVERBS_PAGE, at->write, &ring->buf);
	if (r == 0 && ring->buf)
		r = uverbs_fw_umem_offset(m, ring->buf, at->off);
	return r < 0 ? r : uverbs_fw_umem(file, m, at->db_umem, at->db_off, 8, 8, false, &ring->db);
}

void uverbs_fw_need_ring(struct uverbs_devx *devx, const struct uverbs_fw_ring *ring)
{
	uverbs_obj_need(&devx->obj, ring->buf ? &ring->buf->obj : NULL);
	uverbs_obj_need(&devx->obj, &ring->db->obj);
}

uint32_t uverbs_fw_doorbell(const struct uverbs_devx *devx, unsigned word)
{
	uint32_t v;

	memcpy(&v, devx->db->mem->host + uverbs_fw_mem_off(devx->db, devx->db_off) + 4 * word, sizeof(v));
	return be32toh(v);
}
struct uverbs_devx *uverbs_fw_new(struct uverbs_file *file, uverbs_fw_event *handler)
{
	struct uverbs_devx *devx = uverbs_obj_new(file, UVERBS_DEVX, sizeof(*devx));

	if (devx) {
		devx->on_event = handler;
		LIST_INIT(&devx->subs);
	}
	return devx;
}
void uverbs_fw_on_comp(void *arg)
{
	struct uverbs_devx *devx = arg;

	devx->on_event(devx, 0);
}

void uverbs_fw_on_event(void *arg, int event)
{
	struct uverbs_devx *devx = arg;

	devx->on_event(devx, event);
}
