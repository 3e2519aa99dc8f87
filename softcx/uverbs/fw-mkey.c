/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE_MKEY over a umem or over other keys, and what can be asked of such a key. */
#include "softcx/uverbs/fw-obj.h"

#include "softcx/uverbs/prm.h"

#include <stdlib.h>
#include <string.h>

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
		r = uverbs_fw_umem_offset(m, umem, prm_get(m->in, PRM_create_mkey_in_mkey_umem_offset));
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

int uverbs_fw_create_mkey(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
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

int uverbs_fw_query_mkey(const struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	if (uverbs_fw_lengths(m, PRM_SIZE_query_qp_in, PRM_query_mkey_out_mkc_byte + PRM_SIZE_mkc) < 0)
		return -EREMOTEIO;
	memcpy(m->out + PRM_query_mkey_out_mkc_byte, devx->mkc, PRM_SIZE_mkc);
	return 0;
}
