/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/fw.h"

#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <endian.h>
#include <stdlib.h>
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

/* @len bytes at @off of umem @id, whose address is a multiple of @align; @write: the device writes there. */
static int uverbs_fw_umem(struct uverbs_file *file, const struct uverbs_mbox *m, uint32_t id, uint64_t off,
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

/*
 * A queue or key may begin at @off. Linux chooses pages of any size for a umem whose pgsz_bitmap does not
 * limit them, and then "the user promises not to use umem_offset != 0" (hw/mlx5/devx.c,
 * devx_umem_reg_cmd_alloc); with a limit offsets are multiples of a 64th of a page. Doorbell records may be
 * anywhere: DPDK and UCX place them so.
 */
static int umem_offset(const struct uverbs_mbox *m, const struct uverbs_umem *umem, uint64_t off)
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
		r = umem_offset(m, ring->buf, at->off);
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
/* Callbacks of the hardware; @arg: the object. */
static void uverbs_fw_on_comp(void *arg)
{
	struct uverbs_devx *devx = arg;

	devx->on_event(devx, 0);
}

void uverbs_fw_on_event(void *arg, int event)
{
	struct uverbs_devx *devx = arg;

	devx->on_event(devx, event);
}

/* Linux hw/mlx5/devx.c, devx_is_general_cmd: commands that need no object. Others do not reach the firmware.
 */
/* Commands that Linux passes to firmware: those without an object, and those that make one. */
static bool is_general(unsigned op)
{
	static const uint16_t known[] = {
		PRM_OP_QUERY_HCA_CAP, PRM_OP_QUERY_LAG, 0x101, /* QUERY_ADAPTER */
		0x10a,                                         /* QUERY_ISSI */
		0x740,                                         /* QUERY_ESW_FUNCTIONS */
		0x750,                                         /* QUERY_VPORT_STATE */
		0x752,                                         /* QUERY_ESW_VPORT_CONTEXT */
		0x754,                                         /* QUERY_NIC_VPORT_CONTEXT */
		0x760,                                         /* QUERY_ROCE_ADDRESS */
		0x762,                                         /* QUERY_HCA_VPORT_CONTEXT */
		0x76f,                                         /* QUERY_VNIC_ENV */
		0x770,                                         /* QUERY_VPORT_COUNTER */
		0x80a,                                         /* GET_DROPPED_PACKET_LOG */
		0x80d,                                         /* NOP */
		0x822,                                         /* QUERY_CONG_STATUS */
		0x824,                                         /* QUERY_CONG_PARAMS */
		0x826,                                         /* QUERY_CONG_STATISTICS */
	};

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i] == op)
			return true;
	return op >= 0xb00 && op < 0xd00;
}

/* The same, devx_is_obj_create_cmd: commands that make an object. */
static bool uverbs_fw_creates(const struct uverbs_mbox *m)
{
	static const uint16_t known[] = {
		0x700, /* CREATE_SRQ */
		0x705, /* CREATE_XRC_SRQ */
		0x717, /* CREATE_XRQ */
		0x771, /* ALLOC_Q_COUNTER */
		0x782, /* CREATE_SCHEDULING_ELEMENT */
		0x800, /* ALLOC_PD */
		0x806, /* ATTACH_TO_MCG */
		0x80e, /* ALLOC_XRCD */
		0x816, /* ALLOC_TRANSPORT_DOMAIN */
		0x827, /* ADD_VXLAN_UDP_DPORT */
		0x829, /* SET_L2_TABLE_ENTRY */
		0x900, /* CREATE_TIR */
		0x904, /* CREATE_SQ */
		0x908, /* CREATE_RQ */
		0x912, /* CREATE_TIS */
		0x916, /* CREATE_RQT */
		0x930, /* CREATE_FLOW_TABLE */
		0x933, /* CREATE_FLOW_GROUP */
		0x939, /* ALLOC_FLOW_COUNTER */
		0x93d, /* ALLOC_PACKET_REFORMAT_CONTEXT */
		0x940, /* ALLOC_MODIFY_HEADER_CONTEXT */
	};
	enum { SET_FLOW_TABLE_ENTRY = 0x936 };
	unsigned op = (unsigned)prm_get(m->in, PRM_in_opcode);

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i] == op)
			return true;
	return op == SET_FLOW_TABLE_ENTRY && prm_get(m->in, PRM_in_op_mod) == 0;
}

#define MODIFY_CQ_SELECT 0x060, 32 /* modify_cq_in.modify_field_select */

static int create_cq(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *cqc = m->in + PRM_create_cq_in_cq_context_byte;
	unsigned log_size, cqe_sz;
	struct uverbs_fw_ring ring;
	struct uverbs_uar *uar;
	uint32_t eqn;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_cq_in, PRM_SIZE_create_cq_out) < 0)
		return -EREMOTEIO;
	log_size = (unsigned)prm_get(cqc, PRM_cqc_log_cq_size);
	cqe_sz = (unsigned)prm_get(cqc, PRM_cqc_cqe_sz);
	if (log_size > UVERBS_LOG_MAX_CQ_SZ || cqe_sz > 1)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	if (prm_get(cqc, PRM_cqc_cqe_comp_en))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	eqn = (uint32_t)prm_get(cqc, PRM_cqc_c_eqn_or_apu_element);
	if (eqn < UVERBS_EQN || eqn >= UVERBS_EQN + UVERBS_COMP_VECTORS)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_EQN);
	if (uverbs_uar_find(file, (uint32_t)prm_get(cqc, PRM_cqc_uar_page), &uar) < 0)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_UAR);
	const struct uverbs_fw_place place = {
		.umem = (uint32_t)prm_get(m->in, PRM_create_cq_in_cq_umem_id),
		.db_umem = (uint32_t)prm_get(cqc, PRM_cqc_dbr_umem_id),
		.off = prm_get(m->in, PRM_create_cq_in_cq_umem_offset),
		.db_off = prm_get(cqc, PRM_cqc_dbr_addr),
		.bytes = (uint64_t)(64u << cqe_sz) << log_size,
		.write = true,
	};
	r = uverbs_fw_ring(file, m, &place, &ring);
	if (r < 0)
		return r;

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	const struct hw_cq_attr attr = {
		.buf = ring.buf->mem,
		.buf_off = uverbs_fw_mem_off(ring.buf, ring.off),
		.db = ring.db->mem,
		.db_off = uverbs_fw_mem_off(ring.db, ring.db_off),
		.uar = hw_uar_index(uar->hw),
		.log_size = (uint8_t)log_size,
		.cqe_bytes = (uint8_t)(64u << cqe_sz),
		.software = file->software,
		.time = file->time,
		.oi = prm_get(cqc, PRM_cqc_oi),
		.cc = prm_get(cqc, PRM_cqc_cc),
		.period_us = (uint16_t)prm_get(cqc, PRM_cqc_cq_period),
		.max_count = (uint16_t)prm_get(cqc, PRM_cqc_cq_max_count),
		.on_comp = uverbs_fw_on_comp,
		.on_error = uverbs_fw_on_event,
		.arg = devx,
	};
	r = hw_cq_create(file->dev, &attr, &devx->cq);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	memcpy(devx->cqc, cqc, sizeof(devx->cqc));
	devx->db = ring.db;
	devx->db_off = ring.db_off;
	uverbs_fw_need_ring(devx, &ring);
	uverbs_obj_need(&devx->obj, &uar->obj);
	prm_set(m->out, PRM_create_cq_out_cqn, hw_cqn(devx->cq));
	pending = NULL;
	*out = devx;
	return 0;
}
static int modify_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	enum { PERIOD = 1, COUNT = 2 }; /* modify_field_select */
	const uint8_t *cqc = m->in + PRM_create_cq_in_cq_context_byte;
	uint32_t select;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_cq_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	select = (uint32_t)prm_get(m->in, MODIFY_CQ_SELECT);
	if (select != (PERIOD | COUNT))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	r = hw_cq_moderate(t->cq, (uint16_t)prm_get(cqc, PRM_cqc_cq_period),
		(uint16_t)prm_get(cqc, PRM_cqc_cq_max_count));
	return r < 0 ? uverbs_fw_device_refuses(m, r) : 0;
}
static int query_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	uint8_t *cqc = m->out + PRM_query_cq_out_cq_context_byte;

	if (uverbs_fw_lengths(m, PRM_SIZE_query_qp_in, PRM_query_cq_out_cq_context_byte + PRM_SIZE_cqc) < 0)
		return -EREMOTEIO;
	if (t->devx) {
		memcpy(cqc, t->devx->cqc, PRM_SIZE_cqc);
		prm_set(cqc, PRM_cqc_consumer_counter, uverbs_fw_doorbell(t->devx, 0));
	}
	prm_set(cqc, PRM_cqc_producer_counter, hw_cq_producer(t->cq));
	return 0;
}

/* CREATE_MKEY over a umem or over other keys, and what can be asked of such a key. */

enum { MODE_MTT = 1, MODE_KLM = 2, MODE_KSM = 3 };
enum { NO_QPN = 0xffffff, MIN_LOG_PAGE = 12, MTT_PER_OCTOWORD = 2 };

static unsigned access_of(const uint8_t *mkc)
{
	unsigned access = 0;

	if (prm_get(mkc, PRM_mkc_lw))
		access |= HW_LOCAL_WRITE;
	if (prm_get(mkc, PRM_mkc_rw))
		access |= HW_REMOTE_WRITE;
	if (prm_get(mkc, PRM_mkc_rr))
		access |= HW_REMOTE_READ;
	if (prm_get(mkc, PRM_mkc_a))
		access |= HW_REMOTE_ATOMIC;
	return access;
}

/* One translation for every page that the key touches: 8 bytes each, counted in units of 16. */
static bool translations_reach(const struct uverbs_mbox *m, const uint8_t *mkc)
{
	unsigned log_page = (unsigned)prm_get(mkc, PRM_mkc_log_page_size);
	uint64_t start = prm_get(mkc, PRM_mkc_start_addr), len = prm_get(mkc, PRM_mkc_len), pages;
	uint64_t have = prm_get(m->in, PRM_create_mkey_in_translations_octword_actual_size);

	if (log_page < MIN_LOG_PAGE || len == 0 || start + len - 1 < start)
		return false;
	pages = ((start + len - 1) >> log_page) - (start >> log_page) + 1;
	return have * MTT_PER_OCTOWORD >= pages;
}

static struct hw_piece *read_pieces(const uint8_t *at, unsigned n, unsigned log_size)
{
	struct hw_piece *all = calloc(n, sizeof(*all));

	for (unsigned i = 0; all && i < n; i++, at += PRM_SIZE_klm)
		all[i] = (struct hw_piece){
			.va = prm_get(at, PRM_klm_address),
			.key = (uint32_t)prm_get(at, PRM_klm_mkey),
			.len = log_size ? 1u << log_size : (uint32_t)prm_get(at, PRM_klm_byte_count),
		};
	return all;
}

/* Pieces come with the command, or later by UMR: one octoword each, of which the key may have as many as its
 * context claims. */
static int create_indirect(struct uverbs_file *file, const struct uverbs_mbox *m, const struct uverbs_pd *pd,
	struct uverbs_devx *devx)
{
	const uint8_t *mkc = m->in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	bool ksm = prm_get(mkc, PRM_mkc_access_mode_1_0) == MODE_KSM;
	unsigned log_size = ksm ? (unsigned)prm_get(mkc, PRM_mkc_log_page_size) : 0;
	struct hw_indirect_attr attr = {
		.pdn = pd->pdn,
		.iova = prm_get(mkc, PRM_mkc_start_addr),
		.len = prm_get(mkc, PRM_mkc_len),
		.access = access_of(mkc),
		.variant = (uint8_t)prm_get(mkc, PRM_mkc_mkey_7_0),
		.remote_inval = prm_get(mkc, PRM_mkc_en_rinval),
		.umr = prm_get(mkc, PRM_mkc_umr_en),
		.free = prm_get(mkc, PRM_mkc_free),
		.max = (unsigned)prm_get(mkc, PRM_mkc_translations_octword_size),
		.n = (unsigned)prm_get(m->in, PRM_create_mkey_in_translations_octword_actual_size),
	};
	struct hw_piece *pieces;
	int r;

	if (attr.n > (m->in_len - PRM_create_mkey_in_klm_pas_mtt_byte) / PRM_SIZE_klm)
		return uverbs_fw_refuse(m, FW_BAD_IN_LEN, FW_SYN_LENGTH);
	if (!attr.max || attr.max > HW_MAX_PIECES || attr.n > attr.max || (ksm && log_size < MIN_LOG_PAGE))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	pieces = read_pieces(m->in + PRM_create_mkey_in_klm_pas_mtt_byte, attr.n, log_size);
	if (!pieces && attr.n)
		return -ENOMEM;
	attr.pieces = pieces;
	r = hw_indirect_create(file->dev, &attr, &devx->mkey);
	free(pieces);
	return r < 0 ? uverbs_fw_device_refuses(m, r) : 0;
}

static int create_direct(struct uverbs_file *file, const struct uverbs_mbox *m, const struct uverbs_pd *pd,
	struct uverbs_devx *devx)
{
	const uint8_t *mkc = m->in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	struct hw_mkey_attr attr = {.has_variant = true};
	struct uverbs_umem *umem;
	uint64_t off, page;
	int r;

	/* Linux sets it itself, so that pages are those of a umem: hw/mlx5/devx.c, devx_handle_mkey_create */
	if (!prm_get(m->in, PRM_create_mkey_in_mkey_umem_valid))
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_UMEM);
	if (!translations_reach(m, mkc))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	/* The umem begins with the page of the first byte, which the key's address shares the low bits with
	 */
	attr.iova = prm_get(mkc, PRM_mkc_start_addr);
	attr.len = prm_get(mkc, PRM_mkc_len);
	attr.access = access_of(mkc);
	attr.remote_inval = prm_get(mkc, PRM_mkc_en_rinval);
	page = 1ull << prm_get(mkc, PRM_mkc_log_page_size);
	off = prm_get(m->in, PRM_create_mkey_in_mkey_umem_offset) + (attr.iova & (page - 1));
	r = uverbs_fw_umem(file, m, (uint32_t)prm_get(m->in, PRM_create_mkey_in_mkey_umem_id), off, attr.len,
		1, attr.access & (HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_ATOMIC), &umem);
	if (r == 0)
		r = umem_offset(m, umem, prm_get(m->in, PRM_create_mkey_in_mkey_umem_offset));
	if (r < 0)
		return r;
	attr.pdn = pd->pdn;
	attr.mem = umem->mem;
	attr.mem_off = uverbs_fw_mem_off(umem, off);
	attr.variant = (uint8_t)prm_get(mkc, PRM_mkc_mkey_7_0);
	r = hw_mkey_create(file->dev, &attr, &devx->mkey);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	uverbs_obj_need(&devx->obj, &umem->obj);
	return 0;
}

static int create_mkey(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *mkc = m->in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	struct uverbs_pd *pd;
	unsigned mode;
	bool direct;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_mkey_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	mode = (unsigned)prm_get(mkc, PRM_mkc_access_mode_1_0);
	direct = mode == MODE_MTT;
	if ((!direct && mode != MODE_KLM && mode != MODE_KSM) || prm_get(mkc, PRM_mkc_access_mode_4_2) ||
		(direct && (prm_get(mkc, PRM_mkc_free) || prm_get(mkc, PRM_mkc_umr_en))) ||
		prm_get(mkc, PRM_mkc_qpn) != NO_QPN || prm_get(mkc, PRM_mkc_bsf_en))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	pd = uverbs_fw_pd(file, (uint32_t)prm_get(mkc, PRM_mkc_pd));
	if (!pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	r = direct ? create_direct(file, m, pd, devx) : create_indirect(file, m, pd, devx);
	if (r < 0)
		return r;
	memcpy(devx->mkc, mkc, sizeof(devx->mkc));
	uverbs_obj_need(&devx->obj, &pd->obj);
	prm_set(m->out, PRM_create_mkey_out_mkey_index, devx->mkey >> 8);
	pending = NULL;
	*out = devx;
	return 0;
}

static int query_mkey(const struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	if (uverbs_fw_lengths(m, PRM_SIZE_query_qp_in, PRM_query_mkey_out_mkc_byte + PRM_SIZE_mkc) < 0)
		return -EREMOTEIO;
	memcpy(m->out + PRM_query_mkey_out_mkc_byte, devx->mkc, PRM_SIZE_mkc);
	return 0;
}

/*
 * Scheduling elements, as mlx5dv_sched_node_create(3) and its like ask for them: nodes and leaves (queue
 * groups) with a maximum rate, and queues that are put into leaves. Shares of bandwidth are not offered.
 */

enum { HIERARCHY_NIC = 3, TYPE_TSAR = 0, TYPE_QUEUE_GROUP = 4, TSAR_DWRR = 0 };
enum { SELECT_MAX_AVG_BW = 1 << 1 }; /* enum mlx5dv_sched_elem_attr_flags; bit 0 is the share */
enum { OPT_QUEUE_GROUP = 1 << 1 };   /* rdma-core, MLX5_QPC_OPT_MASK_32_QOS_QUEUE_GROUP_ID */

static bool is_element(const struct uverbs_mbox *m)
{
	return prm_get(m->in, PRM_general_obj_type) == PRM_OBJ_SCHED_ELEMENT;
}

static unsigned type_of(const uint8_t *element)
{
	return (unsigned)prm_get(element, PRM_sched_element_element_type);
}

/* A live element of this context; 0 is the root, which no context owns. */
static struct uverbs_devx *find_element(struct uverbs_file *file, uint32_t id)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		struct uverbs_obj *obj = uverbs_obj_any(file, h);
		struct uverbs_devx *devx = (struct uverbs_devx *)obj;

		if (obj && obj->type == UVERBS_DEVX && devx->rate && hw_rate_id(devx->rate) == id)
			return devx;
	}
	return NULL;
}

static int check_element(const struct uverbs_mbox *m, const uint8_t *element)
{
	unsigned type = type_of(element);

	if (prm_get(element, PRM_sched_element_hierarchy) != HIERARCHY_NIC ||
		(type != TYPE_TSAR && type != TYPE_QUEUE_GROUP) ||
		prm_get(element, PRM_sched_element_tsar_type) != TSAR_DWRR)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (prm_get(element, PRM_sched_element_modify_field_select) & ~(uint64_t)SELECT_MAX_AVG_BW)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	return 0;
}

static int create_general(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *element = m->in + PRM_sched_element_byte;
	struct uverbs_devx *parent = NULL;
	uint32_t parent_id;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_destroy_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	if (!is_element(m))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (uverbs_fw_lengths(m, PRM_SIZE_sched_element_in, PRM_SIZE_destroy_out) < 0 ||
		check_element(m, element) < 0)
		return -EREMOTEIO;
	parent_id = (uint32_t)prm_get(element, PRM_sched_element_parent_id);
	if (parent_id) {
		parent = find_element(file, parent_id);
		if (!parent || type_of(parent->element) != TYPE_TSAR)
			return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	} else if (type_of(element) != TYPE_TSAR) {
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	}

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	r = hw_rate_create(file->dev, parent ? parent->rate : NULL, &devx->rate);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	memcpy(devx->element, element, sizeof(devx->element));
	hw_rate_set(devx->rate, (uint32_t)prm_get(element, PRM_sched_element_max_average_bw));
	uverbs_obj_need(&devx->obj, parent ? &parent->obj : NULL);
	prm_set(m->out, PRM_general_obj_id, hw_rate_id(devx->rate));
	pending = NULL;
	*out = devx;
	return 0;
}

static int modify_element(struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	const uint8_t *element = m->in + PRM_sched_element_byte;
	uint32_t mbps;

	if (uverbs_fw_lengths(m, PRM_SIZE_sched_element_in, PRM_SIZE_destroy_out) < 0 ||
		check_element(m, element) < 0)
		return -EREMOTEIO;
	if (!is_element(m) || type_of(element) != type_of(devx->element))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (!prm_get(element, PRM_sched_element_modify_field_select))
		return 0;
	mbps = (uint32_t)prm_get(element, PRM_sched_element_max_average_bw);
	prm_set(devx->element, PRM_sched_element_max_average_bw, mbps);
	hw_rate_set(devx->rate, mbps);
	return 0;
}

static int query_element(const struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	if (uverbs_fw_lengths(m, PRM_SIZE_destroy_in, PRM_sched_element_byte + PRM_SIZE_sched_element) < 0)
		return -EREMOTEIO;
	memcpy(m->out + PRM_sched_element_byte, devx->element, PRM_SIZE_sched_element);
	return 0;
}

int uverbs_fw_modify_queue_group(struct uverbs_file *file, struct hw_qp *qp, const struct uverbs_mbox *m)
{
	struct uverbs_devx *leaf = NULL;
	uint32_t id;
	uint64_t opt;

	if (!prm_get(m->in, PRM_modify_qp_in_qpc_ext))
		return 0;
	if (uverbs_fw_lengths(m, PRM_SIZE_modify_qp_ext_in, PRM_SIZE_modify_qp_out) < 0)
		return -EREMOTEIO;
	opt = prm_get(m->in, PRM_modify_qp_in_opt_param_mask_95_32);
	/* the rate of answers to READs is not limited here */
	if ((opt & ~(uint64_t)OPT_QUEUE_GROUP) || prm_get(m->in, PRM_modify_qp_in_queue_group_responder))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	if (!opt)
		return 0;
	id = (uint32_t)prm_get(m->in, PRM_modify_qp_in_queue_group_requester);
	if (id) {
		leaf = find_element(file, id);
		if (!leaf || type_of(leaf->element) != TYPE_QUEUE_GROUP)
			return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	}
	hw_qp_limit(qp, leaf ? leaf->rate : NULL);
	return 0;
}

unsigned uverbs_fw_opcode(const struct uverbs_mbox *m)
{
	return (unsigned)prm_get(m->in, PRM_in_opcode);
}

int uverbs_fw_refuse(const struct uverbs_mbox *m, enum uverbs_fw_status status, enum uverbs_fw_syndrome why)
{
	memset(m->out, 0, m->out_len);
	prm_set(m->out, PRM_out_status, status);
	prm_set(m->out, PRM_out_syndrome, why);
	return -EREMOTEIO;
}

int uverbs_fw_lengths(const struct uverbs_mbox *m, size_t in, size_t out)
{
	if (m->in_len < in)
		return uverbs_fw_refuse(m, FW_BAD_IN_LEN, FW_SYN_LENGTH);
	return m->out_len < out ? uverbs_fw_refuse(m, FW_BAD_OUT_LEN, FW_SYN_LENGTH) : 0;
}

int uverbs_fw_device_refuses(const struct uverbs_mbox *m, int r)
{
	switch (r) {
	case -EBUSY:
		return uverbs_fw_refuse(m, FW_BUSY, FW_SYN_DEVICE);
	case -ENOMEM:
	case -ENOSPC:
		return uverbs_fw_refuse(m, FW_NO_RESOURCES, FW_SYN_DEVICE);
	default:
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_DEVICE);
	}
}

static int query_caps(struct uverbs_file *file, const struct uverbs_mbox *m)
{
	uint8_t page[4096];
	size_t room;

	if (uverbs_fw_lengths(m, PRM_SIZE_query_hca_cap_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	if (!uverbs_caps_hca(file->dev, (unsigned)prm_get(m->in, PRM_in_op_mod), page))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_CAP_TYPE);
	room = m->out_len - PRM_query_hca_cap_out_capability_byte;
	memcpy(m->out + PRM_query_hca_cap_out_capability_byte, page,
		room < sizeof(page) ? room : sizeof(page));
	return 0;
}

int uverbs_fw_general(struct uverbs_file *file, const struct uverbs_mbox *m)
{
	if (!is_general(uverbs_fw_opcode(m)))
		return -EINVAL;
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_QUERY_HCA_CAP:
		return query_caps(file, m);
	case PRM_OP_QUERY_LAG: /* no bond: the context is all 0 */
		return uverbs_fw_lengths(m, PRM_SIZE_query_lag_in, PRM_SIZE_query_lag_out);
	default:
		return uverbs_fw_refuse(m, FW_BAD_OP, FW_SYN_OPCODE);
	}
}

int uverbs_fw_create(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **devx)
{
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_CREATE_CQ:
		return create_cq(file, m, handler, devx);
	case PRM_OP_CREATE_QP:
		return uverbs_fw_create_qp(file, m, handler, devx);
	case PRM_OP_CREATE_DCT:
		return uverbs_fw_create_dct(file, m, handler, devx);
	case PRM_OP_CREATE_RMP:
		return uverbs_fw_create_rmp(file, m, handler, devx);
	case PRM_OP_CREATE_MKEY:
		return create_mkey(file, m, handler, devx);
	case PRM_OP_CREATE_GENERAL:
		return create_general(file, m, handler, devx);
	default:
		return uverbs_fw_creates(m) ? uverbs_fw_refuse(m, FW_BAD_OP, FW_SYN_OPCODE) : -EINVAL;
	}
}
int uverbs_fw_modify(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	if (uverbs_fw_opcode(m) == PRM_OP_MODIFY_CQ)
		return modify_cq(t, m);
	if (uverbs_fw_opcode(m) == PRM_OP_MODIFY_GENERAL)
		return modify_element(t->devx, m);
	return uverbs_fw_modify_qp(file, t, m);
}
int uverbs_fw_query(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	(void)file;
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_QUERY_CQ:
		return query_cq(t, m);
	case PRM_OP_QUERY_QP:
		return uverbs_fw_query_qp(t, m);
	case PRM_OP_QUERY_MKEY:
		return query_mkey(t->devx, m);
	case PRM_OP_QUERY_GENERAL:
		return query_element(t->devx, m);
	default:
		return -EINVAL;
	}
}
