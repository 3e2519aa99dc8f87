/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every field that programs patch, by the scatter list of a READ and by that of a RECV. The WQE lies in the
 * ring with one bit wrong; the patch puts the right bytes in its place, and a SEND_EN enables it. Between two
 * such WQEs lie NOPs of 1 KiB, so that how far a device fetches does not matter here: that is the check
 * "fetch".
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "util/array.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
	PIECES = 4,
	ROUNDS = 8, /* each form so often */
	WRONG = 8,  /* the bit: it turns a WRITE into a NOP, and an address into that of the next word */
};

_Static_assert((int)WQE_OP_WRITE == WRONG && (int)WQE_SIGNALLED == WRONG, "the wrong bit");
_Static_assert((int)PIECES <= (int)BED_RECV_SGES, "a RECV has a data segment for each piece");

struct memory {
	alignas(16) uint64_t value;
	uint64_t other;
	alignas(16) uint64_t out;
	uint64_t trash, old;
	uint8_t right[64];
};

#define VALUE 0x0123456789abcde0ull
#define BEFORE 0x00000000000000f8ull

enum kind { WRITE, INLINE, IMM, CAS, ADD, MASKED_CAS, MASKED_ADD, WAIT, ENABLE };

struct piece {
	uint8_t at, size; /* bytes of the WQE */
	uint8_t flip;     /* the byte of these with the wrong bit */
};

static const struct form {
	const char *name;
	enum kind kind;
	struct piece piece[PIECES];
} forms[] = {
	{"opcode", WRITE, {{WQE_OPCODE, 1, 0}}},
	{"control segment", WRITE, {{WQE_OPMOD, 8, WQE_OPCODE}}},
	{"flags", WRITE, {{WQE_FLAGS, 1, 0}}},
	{"remote address", WRITE, {{WQE_RADDR, 8, 7}}},
	{"low bytes of a remote address", WRITE, {{WQE_RADDR + 3, 5, 4}}},
	{"remote key", WRITE, {{WQE_RKEY, 4, 3}}},
	{"local address", WRITE, {{WQE_RDMA_SGE + WQE_SGE_ADDR, 8, 7}}},
	{"local key", WRITE, {{WQE_RDMA_SGE + WQE_SGE_LKEY, 4, 3}}},
	{"length", WRITE, {{WQE_RDMA_SGE + WQE_SGE_LEN, 4, 3}}},
	{"opcode, remote address, length and local address", WRITE,
		{{WQE_OPCODE, 1, 0}, {WQE_RADDR, 8, 7}, {WQE_RDMA_SGE + WQE_SGE_LEN, 4, 3},
			{WQE_RDMA_SGE + WQE_SGE_ADDR, 8, 7}}},
	{"inline data", INLINE, {{WQE_RDMA_SGE + 4, 8, 0}}},
	{"immediate", IMM, {{WQE_IMM, 4, 3}}},
	{"swap", CAS, {{WQE_ATOMIC, 8, 7}}},
	{"compare", CAS, {{WQE_ATOMIC + 8, 8, 7}}},
	{"add", ADD, {{WQE_ATOMIC, 8, 7}}},
	{"index of a WAIT", WAIT, {{WQE_SYNC_INDEX, 4, 1}}},
	{"index of a SEND_EN", ENABLE, {{WQE_SYNC_INDEX, 4, 3}}},
	/* from here on: masked atomics */
	{"swap mask", MASKED_CAS, {{WQE_ATOMIC + 16, 8, 7}}},
	{"compare mask", MASKED_CAS, {{WQE_ATOMIC + 24, 8, 7}}},
	{"field boundary", MASKED_ADD, {{WQE_ATOMIC + 8, 8, 7}}},
};
enum { MASKED = 3 };

/* ---- the WQE that is patched ------------------------------------------------------------ */

static void write_out(struct bed *bed, struct memory *m)
{
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, WQE_SIGNALLED, &m->out, &m->value, sizeof(m->out));
}

static uint8_t *write_masked(struct bed *bed, struct memory *m, uint8_t opcode, uint8_t ds)
{
	uint8_t *w = bed_wqe(bed, BED_TARGET, opcode, ds, WQE_SIGNALLED);

	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	bed_remote(bed, w, &m->out);
	bed_sge(bed, w + (size_t)(ds - 1) * WQE_DS, &m->old, sizeof(m->old));
	return w;
}

static void write_sync(struct bed *bed, uint8_t opcode, uint32_t index, uint32_t object)
{
	uint8_t *w = bed_wqe(bed, BED_TARGET, opcode, 2, 0);

	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

/* Writes the WQE as it has to be: it makes m->out @kind's VALUE, and has a CQE */
static void write_right(struct bed *bed, struct memory *m, enum kind kind)
{
	unsigned end = bed->posted[BED_TARGET] + BED_GROUP;
	uint8_t *w;

	switch (kind) {
	case WRITE:
		write_out(bed, m);
		break;
	case INLINE:
		w = bed_wqe(bed, BED_TARGET, WQE_OP_WRITE, 3, WQE_SIGNALLED);
		bed_remote(bed, w, &m->out);
		wqe_put32(w + WQE_RDMA_SGE, WQE_INLINE | sizeof(m->out));
		memcpy(w + WQE_RDMA_SGE + 4, &m->value, sizeof(m->out));
		break;
	case IMM:
		w = bed_copy(
			bed, BED_TARGET, WQE_OP_WRITE_IMM, WQE_SIGNALLED, &m->out, &m->value, sizeof(m->out));
		wqe_put32(w + WQE_IMM, (uint32_t)VALUE);
		bed_recv(bed, BED_TARGET);
		rnic_qp_post_recvs(&bed->qp[BED_TARGET], bed->recvs[BED_TARGET]);
		break;
	case CAS:
		bed_cas(bed, BED_TARGET, WQE_SIGNALLED, &m->out, BEFORE, VALUE, &m->old);
		break;
	case ADD:
		bed_add(bed, BED_TARGET, WQE_SIGNALLED, &m->out, VALUE - BEFORE, &m->old);
		break;
	case MASKED_CAS: /* all but one bit is compared, and that bit differs */
		w = write_masked(bed, m, WQE_OP_MASKED_CAS, 5);
		wqe_put64(w + WQE_ATOMIC, VALUE);
		wqe_put64(w + WQE_ATOMIC + 8, BEFORE ^ WRONG);
		wqe_put64(w + WQE_ATOMIC + 16, UINT64_MAX);
		wqe_put64(w + WQE_ATOMIC + 24, UINT64_MAX ^ WRONG);
		break;
	case MASKED_ADD: /* the sum would carry out of the low four bits */
		w = write_masked(bed, m, WQE_OP_MASKED_FETCH_ADD, 4);
		wqe_put64(w + WQE_ATOMIC, (VALUE - (BEFORE & ~0xfull)) | 0x8);
		wqe_put64(w + WQE_ATOMIC + 8, WRONG);
		break;
	case WAIT:
		write_sync(bed, WQE_OP_WAIT, bed->master->cq.consumer - 1, bed->master->cq.cqn);
		write_out(bed, m);
		break;
	case ENABLE:
		write_sync(bed, WQE_OP_SEND_EN, end, bed->qp[BED_TARGET].qpn);
		write_out(bed, m);
		break;
	}
}

/* ---- a trial ---------------------------------------------------------------------------- */

/* Moves the right bytes of the WQE @w from @right into it, by a READ, or a SEND and its RECV */
static void write_patch(struct bed *bed, const struct form *form, uint8_t *w, const uint8_t *right, bool recv)
{
	uint8_t *sge, *by;
	unsigned n = 0, bytes = 0;

	while (n < PIECES && form->piece[n].size)
		bytes += form->piece[n++].size;
	if (recv) {
		by = bed_wqe(bed, BED_WORK, WQE_OP_SEND, 2, 0);
		bed_sge(bed, by + WQE_SEND_SGE, right, bytes);
		sge = bed_recv(bed, BED_WORK);
		rnic_qp_post_recvs(&bed->qp[BED_WORK], bed->recvs[BED_WORK]);
	} else {
		by = bed_wqe(bed, BED_WORK, WQE_OP_READ, (uint8_t)(2 + n), WQE_SIGNALLED);
		bed_remote(bed, by, right);
		sge = by + WQE_RDMA_SGE;
	}
	for (unsigned i = 0; i < n; i++)
		bed_sge(bed, sge + (size_t)i * WQE_DS, w + form->piece[i].at, form->piece[i].size);
}

/* Puts the right bytes aside, and one bit of each piece wrong */
static void spoil(const struct form *form, uint8_t *w, uint8_t *right)
{
	for (unsigned i = 0; i < PIECES && form->piece[i].size; i++) {
		const struct piece *p = &form->piece[i];

		memcpy(right, w + p->at, p->size);
		right += p->size;
		w[p->at + p->flip] ^= WRONG;
	}
}

static int judge(const struct bed *bed, const struct memory *m, const struct form *form, const char *by,
	struct probe_result *result)
{
	const uint8_t *cqe = bed->recv_cq[BED_TARGET].cqes +
			     (size_t)((bed->recvs[BED_TARGET] - 1) % BED_CQES) * RNIC_CQE_BYTES;

	if (__atomic_load_n(&m->out, __ATOMIC_ACQUIRE) == VALUE &&
		(form->kind != IMM || wqe_get32(cqe + CQE_IMM) == (uint32_t)VALUE))
		return 1;
	return probe_denies(
		result, "a WQE was executed without the %s that a %s had put there", form->name, by);
}

/* Trial number @n of the bed */
static int run_trial(
	struct bed *bed, unsigned n, const struct form *form, bool recv, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	const char *by = recv ? "RECV" : "READ";
	unsigned first = bed->posted[BED_TARGET];
	uint8_t *w = bed_at(bed, BED_TARGET, first);
	char missing[120];
	int r;

	m->value = VALUE;
	m->out = BEFORE;
	write_right(bed, m, form->kind);
	spoil(form, w, m->right);
	bed_pad(bed, BED_TARGET, true);
	write_patch(bed, form, w, m->right, recv);
	bed_sync(bed, WQE_OP_WAIT, 0, n, recv ? bed->recv_cq[BED_WORK].cqn : bed->cq[BED_WORK].cqn);
	bed_sync(bed, WQE_OP_SEND_EN, 0, form->kind == ENABLE ? first + 1 : first + BED_GROUP,
		bed->qp[BED_TARGET].qpn);
	bed_pad(bed, BED_WORK, false);
	if (bed->probe->load)
		load_feed(bed->probe->load);
	snprintf(missing, sizeof(missing),
		"a WQE did not run as its %s should make it, which a %s had put there", form->name, by);
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_TARGET], 2 * n + 1, missing, result);
	return r > 0 ? judge(bed, m, form, by, result) : r;
}

static int run(struct bed *bed, struct probe_result *result)
{
	bool masked = rnic_caps_masked_atomics(rnic_device_caps(bed->block.dev));
	unsigned count = COUNT(forms) - (masked ? 0 : MASKED);
	unsigned trials = probe_trials(bed->probe, ROUNDS) * count;
	int r = 1;

	for (unsigned i = 0; i < trials && r > 0; i++)
		r = run_trial(bed, i, &forms[i % count], *(const bool *)bed->arg, result);
	result->tried = result->showed = trials;
	return r > 0 ? probe_measured(
			       result, "%u kinds of fields%s", count, masked ? "" : ", not of masked atomics")
		     : r;
}

int check_read_patch(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, NULL, result, run, &(bool){false});
}

int check_recv_patch(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, NULL, result, run, &(bool){true});
}
