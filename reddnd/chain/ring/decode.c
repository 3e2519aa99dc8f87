/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/decode.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/line.h"
#include "reddnd/chain/ir/verbs.h"
#include "reddnd/chain/ring/arm.h"

#include <inttypes.h>

static void add_field(struct chain_line *l, const uint8_t *wqe, enum chain_verb verb, enum chain_field field)
{
	unsigned size;
	int at = chain_field_at(verb, field, 0, &size);

	if (at >= 0)
		chain_line_add(l, " %s=%#" PRIx64, chain_field_name(field), wqe_get(wqe + at, size));
}

static void add_segments(
	struct chain_line *l, const uint8_t *wqe, const struct chain_verb_info *v, unsigned bytes)
{
	const char *sep = v->scatters ? " -> " : " <- ";

	for (unsigned at = v->sge_at; at + WQE_DS <= bytes; at += WQE_DS) {
		chain_line_add(l, "%s%" PRIu64 " B at %#" PRIx64 " (lkey %#" PRIx64 ")", sep,
			wqe_get(wqe + at + WQE_SGE_LEN, 4), wqe_get(wqe + at + WQE_SGE_ADDR, 8),
			wqe_get(wqe + at + WQE_SGE_LKEY, 4));
		sep = ", ";
	}
}

unsigned chain_decode(const uint8_t *wqe, size_t avail, char *text, size_t size)
{
	static const enum chain_field operands[] = {CHAIN_F_COMPARE, CHAIN_F_SWAP, CHAIN_F_COMPARE_MASK,
		CHAIN_F_SWAP_MASK, CHAIN_F_ADD, CHAIN_F_BOUNDARY};
	struct chain_line l = {.text = text, .size = size};
	const struct chain_verb_info *v;
	enum chain_verb verb;
	unsigned ds, bytes;
	uint8_t flags;

	if (size)
		text[0] = '\0';
	if (avail < WQE_DS || size == 0)
		return 1;
	ds = wqe[WQE_DSCOUNT] & WQE_MAX_DS;
	bytes = ds * WQE_DS < avail ? ds * WQE_DS : (unsigned)avail;
	flags = wqe[WQE_FLAGS];
	verb = chain_verb_of(wqe[WQE_OPCODE], wqe[WQE_OPMOD]);
	chain_line_add(&l, "%5" PRIu64 " qp %#" PRIx64 " ds %u ", wqe_get(wqe + WQE_INDEX, 2),
		wqe_get(wqe + WQE_QPN_DS, 3), ds);
	if (verb == CHAIN_VERBS)
		chain_line_add(&l, "opcode %#x", wqe[WQE_OPCODE]);
	else
		chain_line_add(&l, "%s", chain_verb_info(verb)->name);
	chain_line_add(&l, "%s%s%s", flags & WQE_FENCE ? " fenced" : "",
		flags & WQE_SIGNALLED ? " signalled" : "", flags & WQE_SOLICITED ? " solicited" : "");
	if (verb != CHAIN_VERBS && bytes >= chain_wqe_ds(verb, 0) * WQE_DS) {
		v = chain_verb_info(verb);
		add_field(&l, wqe, verb, CHAIN_F_IMM);
		if (v->class == CHAIN_CLASS_SYNC)
			chain_line_add(&l, " %s %#" PRIx64 " index %" PRIu64,
				verb == CHAIN_WAIT ? "cq" : "qp",
				wqe_get(wqe + WQE_SYNC_OBJECT, 4) & 0xffffff,
				wqe_get(wqe + WQE_SYNC_INDEX, 4));
		if (v->remote)
			chain_line_add(&l, " remote %#" PRIx64 " (rkey %#" PRIx64 ")",
				wqe_get(wqe + WQE_RADDR, 8), wqe_get(wqe + WQE_RKEY, 4));
		for (unsigned i = 0; i < sizeof(operands) / sizeof(operands[0]); i++)
			add_field(&l, wqe, verb, operands[i]);
		if (v->data)
			add_segments(&l, wqe, v, bytes);
	}
	return ds ? (ds * WQE_DS + CHAIN_WQEBB - 1) / CHAIN_WQEBB : 1;
}

const char *chain_step_at(
	const struct chain_image *img, unsigned slots, unsigned q, uint16_t index, unsigned *slot)
{
	const struct chain_queue *queue = &img->queue[q];
	uint32_t at = index & (chain_ring_wqebbs(queue, slots) - 1);
	const char *name = "pad";
	unsigned dummy;

	slot = slot ? slot : &dummy;
	*slot = at / queue->wqebbs < slots ? at / queue->wqebbs : slots;
	if (*slot == slots)
		return name;
	for (unsigned i = 0; i < img->nlabels; i++)
		if (img->labels[i].queue == q && img->labels[i].wqebb <= at % queue->wqebbs)
			name = img->labels[i].name;
	return name;
}
