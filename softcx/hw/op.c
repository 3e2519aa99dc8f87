/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/clock.h"
#include "softcx/hw/dev.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/resp.h"
#include "util/array.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The 40 bytes before the data of a received datagram.
 *
 * On RoCE v2 they hold the IP header of the packet: IPv6 fills them, IPv4 the last 20, where
 * ibv_init_ah_from_wc() of libibverbs looks for it. mlx5 leaves the bytes before an IPv4 header undefined;
 * here they are 0.
 */

enum { HW_GRH_BYTES = 40 };

/* Bits 27:24 of flags_rqpn in the CQE of a datagram: over UDP, with which IP header. */
enum hw_packet_type { HW_PACKET_IPV6 = 8 | 1, HW_PACKET_IPV4 = 8 | 2 };

/* UDP header, BTH, DETH and ICRC around the data of a datagram */
#define ROCE_BYTES (8 + 12 + 8 + 4)
/* BTH, DETH and ICRC of one on InfiniBand */
#define IB_BYTES (12 + 8 + 4)
#define NEXT_IBA 0x1b

static int is_v4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

static uint16_t ip_checksum(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void put_ipv6(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16],
	uint8_t tclass, uint8_t hop_limit, size_t len, uint8_t next)
{
	struct ip6_hdr ip = {0};

	ip.ip6_flow = htonl(6u << 28 | (uint32_t)tclass << 20);
	ip.ip6_plen = htons((uint16_t)len);
	ip.ip6_nxt = next;
	ip.ip6_hlim = hop_limit;
	memcpy(&ip.ip6_src, sgid, 16);
	memcpy(&ip.ip6_dst, dgid, 16);
	memcpy(grh, &ip, sizeof(ip));
}

/* The header of a packet of @len data bytes; both GIDs IPv4-mapped: IPv4. */
static enum hw_packet_type hw_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16],
	uint8_t tclass, uint8_t hop_limit, size_t len)
{
	memset(grh, 0, HW_GRH_BYTES);
	if (is_v4(sgid) && is_v4(dgid)) {
		struct iphdr ip = {
			.version = 4, .ihl = 5, .tos = tclass, .ttl = hop_limit, .protocol = IPPROTO_UDP};

		ip.tot_len = htons((uint16_t)(sizeof(ip) + ROCE_BYTES + len));
		ip.frag_off = htons(IP_DF);
		memcpy(&ip.saddr, sgid + 12, 4);
		memcpy(&ip.daddr, dgid + 12, 4);
		ip.check = ip_checksum(&ip, sizeof(ip));
		memcpy(grh + HW_GRH_BYTES - sizeof(ip), &ip, sizeof(ip));
		return HW_PACKET_IPV4;
	}
	put_ipv6(grh, sgid, dgid, tclass, hop_limit, ROCE_BYTES + len, IPPROTO_UDP);
	return HW_PACKET_IPV6;
}

/* The same on InfiniBand, and of RoCE v1 (annex A16): a GRH, which looks like an IPv6 header whose next
 * header is IBA (IB 8.3). */
static void ib_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16], uint8_t tclass,
	uint8_t hop_limit, size_t len)
{
	put_ipv6(grh, sgid, dgid, tclass, hop_limit, IB_BYTES + len, NEXT_IBA);
}

/*
 * CAS, FETCH_ADD and their masked forms.
 *
 * Operands are big-endian in the WQE, the memory word has the byte order of the host. The old value is
 * returned in host order when it has 8 bytes and the device has that mode (atomic endianness mode 1), else
 * big-endian (UCX, ib_mlx5dv_md.c). Layouts: struct mlx5_wqe_atomic_seg of linux/mlx5/qp.h; masked forms:
 * libmlx5 of MLNX_OFED 4, qp.c, ext_cmp_swp and ext_fetch_add.
 */

/* opmod of masked atomics: 8 | log2(bytes) - 2 */
enum { OPMOD_4B = 0x08, OPMOD_8B = 0x09 };

struct atomic_operands {
	bool cas;
	uint64_t arg, compare;           /* swap or add */
	uint64_t arg_mask, compare_mask; /* FETCH_ADD: arg_mask has the top bit of each field */
};

/* Operand bytes of atomic @w (4, 8), and the DS at which its data segment stands. 0: not a valid atomic. */
static unsigned atomic_size(const struct hw_wqe *w, unsigned *data_ds)
{
	*data_ds = 3;
	switch (w->opcode) {
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
		return w->opmod == 0 ? 8 : 0;
	case WQE_OP_MASKED_CAS:
		if (w->opmod == OPMOD_8B)
			*data_ds = 4;
		break;
	case WQE_OP_MASKED_FETCH_ADD:
		break;
	default:
		return 0;
	}
	return w->opmod == OPMOD_8B ? 8 : w->opmod == OPMOD_4B ? 4 : 0;
}

static struct atomic_operands atomic_parse(const struct hw_wqe *w, unsigned size)
{
	const uint8_t *p = w->p + WQE_ATOMIC;
	struct atomic_operands o = {.cas = true, .arg_mask = UINT64_MAX, .compare_mask = UINT64_MAX};

	switch (w->opcode) {
	case WQE_OP_CAS:
		o.arg = wqe_get64(p);
		o.compare = wqe_get64(p + 8);
		break;
	case WQE_OP_FETCH_ADD:
		o.cas = false;
		o.arg = wqe_get64(p);
		o.arg_mask = 0;
		break;
	case WQE_OP_MASKED_CAS:
		o.arg = size == 8 ? wqe_get64(p) : wqe_get32(p);
		o.compare = size == 8 ? wqe_get64(p + 8) : wqe_get32(p + 4);
		o.arg_mask = size == 8 ? wqe_get64(p + 16) : wqe_get32(p + 8);
		o.compare_mask = size == 8 ? wqe_get64(p + 24) : wqe_get32(p + 12);
		break;
	default:
		o.cas = false;
		o.arg = size == 8 ? wqe_get64(p) : wqe_get32(p);
		o.arg_mask = size == 8 ? wqe_get64(p + 8) : wqe_get32(p + 4);
		break;
	}
	return o;
}

/* Adds field by field: no carry leaves a bit that @tops marks. */
static uint64_t atomic_add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
	/* Without the top bits no carry can leave a field; their sum is the exclusive or with the carry into
	 * them */
	uint64_t low = (a & ~tops) + (b & ~tops);

	return low ^ ((a ^ b) & tops);
}

static uint64_t atomic_apply(const struct atomic_operands *o, uint64_t old)
{
	if (!o->cas)
		return atomic_add_fields(old, o->arg, o->arg_mask);
	if ((old ^ o->compare) & o->compare_mask)
		return old;
	return (old & ~o->arg_mask) | (o->arg & o->arg_mask);
}

static uint64_t atomic_on_word8(uint64_t *word, const struct atomic_operands *o)
{
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (!o->cas && !o->arg_mask)
		return __atomic_fetch_add(word, o->arg, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(
		word, &old, atomic_apply(o, old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return old;
}

static uint32_t atomic_on_word4(uint32_t *word, const struct atomic_operands *o)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		word, &old, (uint32_t)atomic_apply(o, old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return old;
}

/* As the old value arrives: in the order of the host by a mode for operands of 8 bytes alone (ifc
 * atomic_req_8B_endianness_mode) */
static void atomic_put_old(const struct hw_dev *dev, uint64_t word, unsigned size, uint8_t old[8])
{
	uint32_t be = htobe32((uint32_t)word);

	if (size == 4) {
		memcpy(old, &be, 4);
		return;
	}
	word = hw_fact(dev, PROFILE_HOST_ATOMICS) ? htole64(word) : htobe64(word);
	memcpy(old, &word, 8);
}

/* Executes @w on @target; @old gets the old value as software will see it. False: the memory is unreachable.
 */
static bool atomic_exec(const struct hw_wqe *w, const struct hw_span *target, unsigned size, uint8_t old[8])
{
	struct atomic_operands o = atomic_parse(w, size);
	uint64_t word = 0;

	if (!target->host) {
		uint64_t value;

		if (!hw_gather(&word, target, 1, size))
			return false;
		value = atomic_apply(&o, word);
		if (!hw_scatter(target, 1, &value, size))
			return false;
	} else if (size == 8) {
		word = atomic_on_word8((uint64_t *)target->host, &o);
	} else {
		word = atomic_on_word4((uint32_t *)target->host, &o);
	}
	atomic_put_old(w->qp->dev, word, size, old);
	return true;
}

/*
 * CALC: a SEND or WRITE whose opmod names an operation. What is sent is not the operands, which its
 * data segments hold, but their result.
 *
 * Opmod 1 to 6: operands of 16 bytes, a big-endian number of 8 bytes and an id, aligned to 16. The result is
 * big-endian, in the first 8 bytes. CALC of vectors, opmod 0xff, is refused.
 *
 * Sources: libmlx5 of MLNX_OFED 4.1 (qp.c, ec.c). Where it is silent, the strict choice is made, and
 * docs/softcx-conformance.md has "assumed": queues of RC only, no inline operands, syndromes. Whether the
 * result has 8 or 16 bytes is a fact of the profile. Bytes 8 to 15 are noise, or, if the device is lenient,
 * the id of the operand that is the result, of sums the first one's.
 */

enum { CALC_OPERANDS = 32768 /* bytes at most: assumed */ };

static uint64_t calc_sum_of_doubles(uint64_t a, uint64_t b)
{
	double x, y;
	uint64_t raw;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&raw, &x, sizeof(raw));
	return raw;
}

static uint64_t calc_combine(enum wqe_calc op, uint64_t a, uint64_t b)
{
	switch (op) {
	case WQE_CALC_ADD:
		return a + b;
	case WQE_CALC_ADD_F64:
		return calc_sum_of_doubles(a, b);
	case WQE_CALC_MAXLOC:
		return a < b ? b : a;
	case WQE_CALC_AND:
		return a & b;
	case WQE_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* Whether a WQE with an opmod other than 0 is one of CALC that its device and queue can have. */
static bool calc_is_allowed(const struct hw_wqe *w)
{
	const struct hw_dev *dev = w->qp->dev;

	return w->qp->type == HW_RC && (w->qp->cd_master || dev->cfg.lenient) &&
	       hw_fact(dev, PROFILE_CALC) != PROFILE_CALC_NONE && w->opmod <= WQE_CALC_XOR &&
	       (w->opcode == WQE_OP_SEND || w->opcode == WQE_OP_WRITE || w->opcode == WQE_OP_WRITE_IMM);
}

/* Checks form and operands of @w, whose data segments are @sgl, and sets w->bytes to the length of the
 * result. 0 or a fault. */
static int calc_check(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl)
{
	if (!sgl->len || sgl->len > CALC_OPERANDS)
		return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	if (sgl->gathered != sgl->len)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	for (; ds < w->ds; ds++) {
		const uint8_t *seg = w->p + ds * WQE_DS;

		if (wqe_get32(seg) % WQE_CALC_OPERAND)
			return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
		if (wqe_get64(seg + 8) % WQE_CALC_OPERAND)
			return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	}
	w->bytes = hw_fact(w->qp->dev, PROFILE_CALC) == PROFILE_CALC_8 ? 8 : WQE_CALC_OPERAND;
	return 0;
}

/* Reads the operands in @sgl, and makes @sgl the w->bytes of the result, which are in @result. 0 or a fault.
 */
static int calc_exec(const struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static WQE_CALC_OPERAND])
{
	struct hw_dev *dev = w->qp->dev;
	uint8_t operands[CALC_OPERANDS];
	const uint8_t *id = operands + 8;
	uint64_t v;

	if (!hw_gather(operands, sgl->span, sgl->n, sgl->len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	v = wqe_get64(operands);
	for (uint32_t at = WQE_CALC_OPERAND; at < sgl->len; at += WQE_CALC_OPERAND) {
		uint64_t next = wqe_get64(operands + at);

		if (w->opmod == WQE_CALC_MAXLOC && v < next)
			id = operands + at + 8;
		v = calc_combine(w->opmod, v, next);
	}
	wqe_put64(result, v);
	memcpy(result + 8, id, 8);
	for (unsigned i = 8; i < WQE_CALC_OPERAND && !dev->cfg.lenient; i++)
		result[i] = (uint8_t)hw_random(dev);
	sgl->span[0] = (struct hw_span){.host = result, .len = w->bytes};
	sgl->n = 1;
	sgl->len = w->bytes;
	return 0;
}

/*
 * WAIT, SEND_EN and RECV_EN.
 *
 * Sources: the cross-channel patch to libmlx5 (linux-rdma, msg30739), libmlx5 of MLNX_OFED 4 (verbs.c, qp.c),
 * and how DPDK counts (mlx5_txpp.c, mlx5_tx.h).
 *
 * WAIT holds its queue until CQE number `index` of a CQ has been written: 24 bits, inclusive, compared in a
 * cyclic half window. Numbers before that of the first CQE are passed from the start (`wait_index` of OFED's
 * verbs.c starts "at value before 0"). SEND_EN and RECV_EN set the producer index of a managed queue: 16
 * bits, exclusive, absolute; an index that is not ahead has no effect. Where public sources are silent, the
 * strict device refuses and the lenient one allows: all three need cd_master on their own QP; SEND_EN and
 * RECV_EN need a managed queue of the same PD.
 */

enum { SYNC_REFUSED = HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE) };

static bool sync_allowed(const struct hw_wqe *w)
{
	return w->ds >= 2 && w->opmod == 0 && (w->qp->cd_master || w->qp->dev->cfg.lenient);
}

/* WAIT: HW_EXEC_STOP with wait_cq and wait_index set */
static int wait_exec(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	uint32_t index = wqe_get32(w->p + WQE_SYNC_INDEX);
	struct hw_cq *cq = hw_cq_find(qp->dev, wqe_get32(w->p + WQE_SYNC_OBJECT) & 0xffffff);

	if (!cq || !sync_allowed(w))
		return SYNC_REFUSED;
	if (hw_cq_reached(cq, index)) {
		if (qp->clock)
			hw_clock_waited(w, cq, index);
		return HW_EXEC_OK;
	}
	qp->wait_cq = cq;
	qp->wait_index = index;
	return HW_EXEC_STOP;
}

/* SEND_EN, RECV_EN */
static int enable_exec(const struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	uint16_t index = (uint16_t)wqe_get32(w->p + WQE_SYNC_INDEX);
	struct hw_qp *target = hw_qp_find(qp->dev, wqe_get32(w->p + WQE_SYNC_OBJECT) & 0xffffff);
	bool send = w->opcode == WQE_OP_SEND_EN;

	if (!target || !sync_allowed(w))
		return SYNC_REFUSED;
	if (!(send ? target->cd_send : target->cd_recv))
		return qp->dev->cfg.lenient ? HW_EXEC_OK : SYNC_REFUSED;
	if (target->pdn != qp->pdn && !qp->dev->cfg.lenient)
		return SYNC_REFUSED;
	if (send)
		hw_qp_enable(target, index, w);
	else if (hw_fact(qp->dev, PROFILE_RECV_ENABLE))
		hw_qp_enable_recv(target, index);
	return HW_EXEC_OK;
}

/*
 * Work requests that send a message or ask for one: which local and remote memory they name, and
 * what moves.
 *
 * Each takes a WQE of such an opcode, of a queue that may have it, and returns as hw_op_exec() does. The peer
 * of an initiator is found already.
 */

enum { LOG_MAX_MSG = 30 };

/* Immediate data goes from WQE to CQE as it is. */
static uint32_t raw32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Bytes of one message: QPC.log_msg_max */
static uint64_t max_msg(const struct hw_qp *qp)
{
	bool limited = qp->mod.log_max_msg && !qp->dev->cfg.no_msg_limit;

	return 1ull << (limited ? qp->mod.log_max_msg : LOG_MAX_MSG);
}

/* ---- local data ------------------------------------------------------------------------- */

/* Resolves the data segments from DS @ds on, inline ones included when @access is 0 (a source). */
static int local_data(const struct hw_wqe *w, unsigned ds, unsigned access, struct hw_sgl *sgl)
{
	uint64_t total = 0, is_inline = 0;

	sgl->n = 0;
	while (ds < w->ds) {
		const uint8_t *seg = w->p + ds * WQE_DS;
		uint32_t n = wqe_get32(seg);
		struct hw_span *span = &sgl->span[sgl->n++];

		if (n & WQE_INLINE) {
			n &= ~WQE_INLINE;
			if (access || n > (w->ds - ds) * WQE_DS - 4u)
				return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
			*span = (struct hw_span){.host = (uint8_t *)(uintptr_t)seg + 4, .len = n};
			ds += (n + 4 + WQE_DS - 1) / WQE_DS;
			is_inline += n;
		} else {
			/* No library emits a length of 0, and mlx hardware reads it as 2^31 */
			if (!n && !w->qp->dev->cfg.lenient)
				return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			if (!hw_key_span(w->qp->dev, wqe_get32(seg + 4), w->qp->pdn, access,
				    wqe_get64(seg + 8), n, span))
				return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
			ds++;
		}
		total += n;
	}
	if (total > max_msg(w->qp))
		return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	sgl->len = (uint32_t)total;
	sgl->gathered = (uint32_t)(total - is_inline);
	return 0;
}

/* Reads the data of a message if that takes two moments (hw_split_read()), or if they are operands: then @sgl
 * becomes the result. Else they are read when they are moved. */
static int read_early(struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static WQE_CALC_OPERAND])
{
	int ret = hw_split_read(w, sgl->span, &sgl->n, sgl->len);

	return ret || __builtin_expect(!w->opmod, 1) ? ret : calc_exec(w, sgl, result);
}

/* ---- operations ------------------------------------------------------------------------- */

static int find_peer(struct hw_wqe *w)
{
	if (w->qp->type != HW_DCI)
		w->peer = hw_resp_peer(w->qp);
	return w->peer ? 0 : HW_EXEC_LOST;
}

/* The local data of a message, which is paid for even if its peer is gone, and its peer. With CALC, the
 * message has w->bytes, and its data are still operands. */
static int message_begin(struct hw_wqe *w, unsigned ds, unsigned access, struct hw_sgl *sgl)
{
	int ret = local_data(w, ds, access, sgl);

	if (ret)
		return ret;
	w->bytes = sgl->len;
	if (__builtin_expect(w->opmod, 0))
		ret = calc_check(w, ds, sgl);
	return ret ? ret : find_peer(w);
}

/* to a connected queue, or a target */
static int message_send(struct hw_wqe *w)
{
	struct hw_msg msg = {.src = w->qp, .solicited = w->fm_ce_se & WQE_SOLICITED};
	uint8_t result[WQE_CALC_OPERAND];
	struct hw_sgl sgl;
	int ret;

	ret = message_begin(w, 1, 0, &sgl);
	if (ret)
		return ret;
	msg.cqe_opcode = w->opcode == WQE_OP_SEND       ? CQE_OP_RESP_SEND
			 : w->opcode == WQE_OP_SEND_IMM ? CQE_OP_RESP_SEND_IMM
							: CQE_OP_RESP_SEND_INVAL;
	if (w->opcode != WQE_OP_SEND)
		msg.imm_be = raw32(w->p + WQE_IMM);
	if (!hw_segment_choose(w))
		return HW_EXEC_PART;
	ret = read_early(w, &sgl, result);
	if (ret)
		return ret;
	msg.len = sgl.len;
	msg.data = &sgl;
	if (w->qp->clock)
		msg.at = hw_clock_send(w, &sgl);
	hw_inflight_land_writes(w->qp);
	/* The key goes when the message arrives, so not before there is a RECV for it */
	if (w->opcode == WQE_OP_SEND_INVAL && hw_qp_recvs(w->peer) &&
		!hw_key_invalidate(w->peer->dev, wqe_get32(w->p + WQE_IMM), w->peer->pdn, true) &&
		!hw_key_invalidate(
			w->peer->dev, wqe_get32(w->p + WQE_IMM), hw_mw_owner_qp(w->peer->qpn), true))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	return hw_resp_recv(w->peer, &msg);
}

/* of UD */
static int message_datagram(struct hw_wqe *w)
{
	struct hw_msg msg = {.src = w->qp, .solicited = w->fm_ce_se & WQE_SOLICITED, .datagram = true};
	struct hw_qp *qp = w->qp;
	struct hw_av av;
	struct hw_sgl sgl;
	int ret;

	if (w->ds < WQE_UD_SGE_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	av = hw_datagram_av(qp->dev, w->p);
	ret = local_data(w, WQE_UD_SGE_DS, 0, &sgl);
	if (!ret)
		ret = hw_split_read(w, sgl.span, &sgl.n, sgl.len);
	if (ret)
		return ret;
	w->bytes = sgl.len;
	w->peer = hw_resp_datagram_peer(
		qp, &av, wqe_get32(w->p + WQE_UD_DQPN) & 0xffffff, wqe_get32(w->p + WQE_UD_QKEY));
	if (qp->clock)
		msg.at = hw_clock_send(w, &sgl);
	if (!w->peer)
		return 0;
	msg.cqe_opcode = w->opcode == WQE_OP_SEND ? CQE_OP_RESP_SEND : CQE_OP_RESP_SEND_IMM;
	if (w->opcode == WQE_OP_SEND_IMM)
		msg.imm_be = raw32(w->p + WQE_IMM);
	msg.has_grh = av.grh || !hw_is_infiniband(qp->dev);
	msg.slid = hw_lid(qp->dev);
	if (msg.has_grh && (hw_is_infiniband(qp->dev) || hw_gid_is_v1(qp->dev, av.sgid_index)))
		ib_grh(msg.grh, qp->dev->gid[av.sgid_index].raw, av.dgid, w->p[WQE_UD_TCLASS], av.hop_limit,
			sgl.len);
	else if (msg.has_grh)
		msg.packet_type = hw_grh(msg.grh, qp->dev->gid[av.sgid_index].raw, av.dgid,
			w->p[WQE_UD_TCLASS], av.hop_limit, sgl.len);
	msg.len = sgl.len + sizeof(msg.grh);
	msg.data = &sgl;
	return hw_resp_recv(w->peer, &msg);
}

/* A copy failed: on the side whose memory is in another process. */
static int message_unreachable(const struct hw_span *remote)
{
	return remote->host ? HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT)
			    : HW_FAULT(CQE_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
}

/* Its bytes, or those of this part */
static int move_write(struct hw_wqe *w, struct hw_sgl *sgl, struct hw_span *to, bool now)
{
	struct hw_qp *qp = w->qp;
	unsigned one = 1;

	hw_segment_skip(w, sgl->span, &sgl->n);
	hw_segment_skip(w, to, &one);
	if (!now && hw_inflight_write(qp, to, sgl->span, sgl->n, w->part))
		return 0;
	hw_inflight_land_writes(qp);
	return hw_copy(to, 1, sgl->span, sgl->n, w->part) ? 0 : message_unreachable(to);
}

static int message_write(struct hw_wqe *w)
{
	bool imm = w->opcode == WQE_OP_WRITE_IMM, last;
	uint8_t result[WQE_CALC_OPERAND];
	struct hw_sgl sgl;
	struct hw_span to;
	uint64_t at = 0;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = message_begin(w, 2, 0, &sgl);
	if (ret)
		return ret;
	if (sgl.len) {
		ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), wqe_get64(w->p + WQE_RADDR), w->bytes,
			HW_REMOTE_WRITE, &to);
		if (ret)
			return ret;
	}
	if (imm) {
		uint16_t recvs = hw_qp_recvs(w->peer);

		if (!recvs || recvs >= 0x8000)
			return HW_EXEC_RNR;
	}
	last = hw_segment_choose(w);
	ret = read_early(w, &sgl, result);
	if (ret)
		return ret;
	if (w->qp->clock)
		at = hw_clock_send(w, &sgl);
	if (sgl.len)
		ret = move_write(w, &sgl, &to, w->prompt || imm);
	if (ret)
		return ret;
	if (!last)
		return HW_EXEC_PART;
	if (imm) {
		struct hw_msg msg = {
			.cqe_opcode = CQE_OP_RESP_WRITE_IMM,
			.solicited = w->fm_ce_se & WQE_SOLICITED,
			.imm_be = raw32(w->p + WQE_IMM),
			.src = w->qp,
			.len = sgl.len,
			.at = at,
		};

		hw_inflight_land_writes(w->qp);
		return hw_resp_recv(w->peer, &msg);
	}
	return 0;
}

/* More READs and atomics under way than the responder has resources for. */
static bool too_many(const struct hw_wqe *w)
{
	unsigned can = w->peer->mod.max_dest_rd_atomic, does = w->qp->mod.max_rd_atomic;

	return can && does > can && hw_inflight_reads(w->qp) >= can;
}

/* How many bytes of a response may be delivered in the CQE instead of memory. */
static uint32_t cqe_room(const struct hw_wqe *w)
{
	return !w->cqe || !w->qp->cs_req ? 0 : w->qp->scq->cqe_bytes == 128 ? 64 : 32;
}

static int message_read(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	_Alignas(8) uint8_t buf[HW_INFLIGHT_READ];
	struct hw_sgl sgl;
	struct hw_span from;
	unsigned one = 1;
	bool ok, last;
	int ret;

	if (w->ds < 2)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = message_begin(w, 2, HW_LOCAL_WRITE, &sgl);
	if (ret)
		return ret;
	if (qp->clock)
		hw_clock_fetch_data(w, sgl.len, false);
	if (!sgl.len)
		return 0;
	ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), wqe_get64(w->p + WQE_RADDR), sgl.len,
		HW_REMOTE_READ, &from);
	if (ret)
		return ret;
	if (too_many(w))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	hw_inflight_land_writes(qp);
	last = hw_segment_choose(w);
	ret = hw_split_read(w, &from, &one, sgl.len);
	if (ret)
		return ret == HW_EXEC_STOP ? ret : message_unreachable(&from);
	if (sgl.len <= cqe_room(w)) {
		w->inl = true;
		ok = hw_gather(w->inl_data, &from, 1, sgl.len);
	} else if (!w->prompt && sgl.len <= sizeof(buf)) {
		uint8_t *room = hw_inflight_room(qp), *data = room ? room : buf;

		ok = hw_gather(data, &from, 1, sgl.len) &&
		     (hw_inflight_read(qp, sgl.span, sgl.n, data, sgl.len) ||
			     hw_scatter(sgl.span, sgl.n, data, sgl.len));
	} else {
		hw_inflight_land_reads(qp);
		hw_segment_skip(w, sgl.span, &sgl.n);
		hw_segment_skip(w, &from, &one);
		ok = hw_copy(sgl.span, sgl.n, &from, 1, w->part);
	}
	return !ok ? message_unreachable(&from) : last ? 0 : HW_EXEC_PART;
}

static int message_atomic(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;
	unsigned data_ds, size = atomic_size(w, &data_ds);
	uint64_t va = wqe_get64(w->p + WQE_RADDR);
	struct hw_sgl sgl;
	struct hw_span target;
	uint8_t old[8];
	int ret;

	if (!size || w->ds < data_ds + 1)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	ret = local_data(w, data_ds, HW_LOCAL_WRITE, &sgl);
	if (!ret && sgl.len < size)
		ret = HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	if (!ret)
		ret = find_peer(w);
	if (ret)
		return ret;
	w->bytes = size;
	ret = hw_resp_span(w->peer, wqe_get32(w->p + WQE_RKEY), va, size, HW_REMOTE_ATOMIC, &target);
	if (ret)
		return ret;
	if (va & (size - 1) || (uintptr_t)target.host & (size - 1) || too_many(w))
		return HW_FAULT(CQE_SYND_REMOTE_INVAL, HW_VENDOR_INVAL) | HW_FAULT_PEER | HW_FAULT_PEER_REQ;
	if (qp->clock)
		hw_clock_fetch_data(w, size, true);
	hw_inflight_land_writes(qp);
	if (!atomic_exec(w, &target, size, old))
		return HW_FAULT(CQE_SYND_REMOTE_OP, HW_VENDOR_REMOTE_OP);
	/* poll_cq of libmlx5 copies data out of the CQE for plain atomics only */
	if (cqe_room(w) && (w->opcode == WQE_OP_CAS || w->opcode == WQE_OP_FETCH_ADD)) {
		w->inl = true;
		memcpy(w->inl_data, old, size);
		return 0;
	}
	if (!w->prompt && hw_inflight_read(qp, sgl.span, sgl.n, old, size))
		return 0;
	hw_inflight_land_reads(qp);
	return hw_scatter(sgl.span, sgl.n, old, size) ? 0 : HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
}

/* The opmod of these asks for CALC; atomics and WAIT look at theirs themselves. */
static bool op_calculates(const struct hw_wqe *w)
{
	return w->opmod && w->opcode <= WQE_OP_READ && w->opcode != WQE_OP_NOP && w->opcode != WQE_OP_WAIT;
}

static int op_exec(struct hw_wqe *w)
{
	struct hw_qp *qp = w->qp;

	switch (w->opcode) {
	case WQE_OP_NOP:
		return 0;
	case WQE_OP_WAIT:
		return wait_exec(w);
	case WQE_OP_SEND_EN:
	case WQE_OP_RECV_EN:
		return enable_exec(w);
	case WQE_OP_UMR:
		if (qp->type != HW_UD) /* IB: windows are for RC and UC; of keys assumed */
			return hw_umr_exec(w);
		break;
	case WQE_OP_LOCAL_INVAL:
		return hw_key_invalidate(qp->dev, wqe_get32(w->p + WQE_IMM), qp->pdn, false)
			       ? 0
			       : HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	case WQE_OP_SEND_INVAL:
		if (hw_qp_is_reliable(qp)) /* IB 9.2: UC and UD have no such packet */
			return message_send(w);
		break;
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return qp->type == HW_UD ? message_datagram(w) : message_send(w);
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
		if (qp->type != HW_UD)
			return message_write(w);
		break;
	case WQE_OP_READ:
		if (hw_qp_is_reliable(qp))
			return message_read(w);
		break;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		if (hw_qp_is_reliable(qp))
			return message_atomic(w);
		break;
	}
	return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
}

/* Packets for the peer of the queue, or, from an initiator, for a target. */
static bool is_message(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
	case WQE_OP_SEND_INVAL:
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
	case WQE_OP_READ:
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		return true;
	default:
		return false;
	}
}

/* The address of the target follows the control segment, and then comes what an RC WQE has (rdma-core
 * providers/mlx5/qp.c, mlx5_send_wr_set_dc_addr). */
static int exec_to_target(struct hw_wqe *w)
{
	enum { ADDRESS_DS = WQE_UD_SGE_DS - 1 };
	_Alignas(16) uint8_t rc[WQE_MAX_DS * WQE_DS];
	const uint8_t *all = w->p;
	struct hw_av av;
	uint32_t dctn;
	int ret;

	dctn = w->ds < WQE_UD_SGE_DS ? 0 : wqe_get32(all + WQE_UD_DQPN);
	if (!(dctn & WQE_UD_EXTENDED))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	av = hw_datagram_av(w->qp->dev, all);
	w->peer = hw_resp_target(w->qp, &av, dctn & 0xffffff, wqe_get64(all + WQE_DC_KEY));
	memcpy(rc, all, WQE_DS);
	memcpy(rc + WQE_DS, all + (ADDRESS_DS + 1) * WQE_DS, (w->ds - ADDRESS_DS - 1u) * WQE_DS);
	w->p = rc;
	w->ds -= ADDRESS_DS;
	ret = op_exec(w);
	w->p = all;
	w->ds += ADDRESS_DS;
	return ret;
}

/* Where the message goes, as far as the queue and the WQE say. */
static const struct hw_dev *message_destination(const struct hw_wqe *w)
{
	struct hw_av av;

	if (w->qp->type != HW_UD && w->qp->type != HW_DCI)
		return hw_resp_dev(w->qp);
	if (w->ds < WQE_UD_SGE_DS)
		return NULL;
	av = hw_datagram_av(w->qp->dev, w->p);
	return hw_route(w->qp->dev, &av, NULL);
}

uint32_t hw_op_pus(const struct hw_wqe *w)
{
	const struct hw_dev *to;

	if (w->qp->dev->faults_armed || w->opcode == WQE_OP_UMR)
		return HW_PU_EVERY;
	to = is_message(w->opcode) ? message_destination(w) : NULL;
	return to ? 1u << to->pu->index : 0;
}

uint64_t hw_op_lacking(const struct hw_dev *dev)
{
	static const struct {
		enum profile_fact fact;
		uint64_t opcodes;
	} needs[] = {
		{PROFILE_CROSS_CHANNEL,
			1ull << WQE_OP_WAIT | 1ull << WQE_OP_SEND_EN | 1ull << WQE_OP_RECV_EN},
		{PROFILE_IMMEDIATES, 1ull << WQE_OP_WRITE_IMM | 1ull << WQE_OP_SEND_IMM},
		{PROFILE_ATOMICS, 1ull << WQE_OP_CAS | 1ull << WQE_OP_FETCH_ADD | 1ull << WQE_OP_MASKED_CAS |
					  1ull << WQE_OP_MASKED_FETCH_ADD},
		{PROFILE_MASKED_ATOMICS, 1ull << WQE_OP_MASKED_CAS | 1ull << WQE_OP_MASKED_FETCH_ADD},
	};
	uint64_t lacking = 0;

	for (size_t i = 0; i < COUNT(needs); i++)
		if (!hw_fact(dev, needs[i].fact))
			lacking |= needs[i].opcodes;
	return lacking;
}

static bool is_lacking(const struct hw_wqe *w)
{
	return w->opcode < 64 && w->qp->dev->lacking >> w->opcode & 1;
}

int hw_op_exec(struct hw_wqe *w)
{
	if (__builtin_expect(is_lacking(w), 0))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	if (__builtin_expect(op_calculates(w), 0) && !calc_is_allowed(w))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	return w->qp->type == HW_DCI && is_message(w->opcode) ? exec_to_target(w) : op_exec(w);
}
