/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/test-rig.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RQ_STRIDE = 64 };

static void no_release(struct hw_mem *mem)
{
}

void rig_open_gid(struct rig *r, const struct hw_config *cfg, uint8_t gid_byte)
{
	const struct hw_gid gids[] = {{.raw = {0xfe, 0x80, [15] = gid_byte}},
		{.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = gid_byte}},
		{.raw = {0xfe, 0x80, [15] = gid_byte}, .roce_v1 = true}};
	struct hw_mkey_attr key = {.len = RIG_MEM_BYTES,
		.access = HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC};

	memset(r, 0, sizeof(*r));
	assert_int_equal(hw_dev_new(&r->dev, cfg, gids, 3), 0);
	assert_int_equal(hw_uar_alloc(r->dev, &r->uar), 0);
	r->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, hw_uar_fd(r->uar), 0);
	assert_true(r->page != MAP_FAILED);
	assert_int_equal(hw_pd_alloc(r->dev, &r->pdn), 0);
	r->mem.host = mmap(NULL, RIG_MEM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(r->mem.host != MAP_FAILED);
	r->mem.va = (uintptr_t)r->mem.host;
	r->mem.len = RIG_MEM_BYTES;
	r->mem.writable = true;
	r->mem.refs = 1;
	r->mem.release = no_release;
	key.pdn = r->pdn;
	key.iova = r->mem.va;
	key.mem = &r->mem;
	assert_int_equal(hw_mkey_create(r->dev, &key, &r->key), 0);
}

void rig_open(struct rig *r, const struct hw_config *cfg)
{
	rig_open_gid(r, cfg, 1);
}

void rig_close(struct rig *r)
{
	struct hw_counts c;

	assert_int_equal(hw_mkey_destroy(r->dev, r->key), 0);
	assert_int_equal(hw_pd_free(r->dev, r->pdn), 0);
	assert_int_equal(hw_uar_free(r->dev, r->uar), 0);
	hw_counts(r->dev, &c);
	assert_int_equal(c.pds + c.mkeys + c.uars + c.cqs + c.qps + c.srqs + c.rates + c.mems, 0);
	assert_int_equal(r->mem.refs, 1);
	hw_dev_free(r->dev);
	munmap(r->page, 4096);
	munmap(r->mem.host, RIG_MEM_BYTES);
}

void *rig_alloc(struct rig *r, size_t bytes)
{
	void *p = r->mem.host + r->used;

	r->used += (bytes + 63) & ~(size_t)63;
	assert_true(r->used <= RIG_MEM_BYTES);
	return p;
}

uint64_t rig_off(const struct rig *r, const void *p)
{
	return (uint64_t)((const uint8_t *)p - r->mem.host);
}

void rig_run(struct rig *r)
{
	while (hw_poll(r->dev))
		;
}

void rig_settle(struct rig *r)
{
	uint64_t ns;

	while ((ns = hw_next_timer(r->dev)) != UINT64_MAX) {
		usleep((useconds_t)(ns / 1000));
		rig_run(r);
	}
}

/* ---- CQ --------------------------------------------------------------------------------- */

static void on_comp(void *arg)
{
	((struct rig_cq *)arg)->events++;
}

static void on_cq_error(void *arg, int event)
{
	assert_int_equal(event, HW_EV_CQ_ERROR);
	((struct rig_cq *)arg)->errors++;
}

void rig_cq_new_attr(struct rig *r, struct rig_cq *cq, struct hw_cq_attr attr)
{
	memset(cq, 0, sizeof(*cq));
	cq->rig = r;
	cq->size = 1u << attr.log_size;
	cq->cqe_bytes = attr.cqe_bytes = attr.cqe_bytes ? attr.cqe_bytes : 64;
	cq->ring = rig_alloc(r, (size_t)cq->size * cq->cqe_bytes);
	for (uint32_t i = 0; i < cq->size; i++)
		cq->ring[(i + 1) * cq->cqe_bytes - 1] = 0xf1; /* opcode: invalid, owner: hardware */
	cq->db = rig_alloc(r, 8);
	attr.buf = attr.db = &r->mem;
	attr.buf_off = rig_off(r, cq->ring);
	attr.db_off = rig_off(r, cq->db);
	attr.uar = hw_uar_index(r->uar);
	attr.on_comp = on_comp;
	attr.on_error = on_cq_error;
	attr.arg = cq;
	assert_int_equal(hw_cq_create(r->dev, &attr, &cq->cq), 0);
}

void rig_cq_new(struct rig *r, struct rig_cq *cq, uint8_t log_size)
{
	struct hw_cq_attr attr = {.log_size = log_size};

	rig_cq_new_attr(r, cq, attr);
}

const uint8_t *rig_cq_next(struct rig_cq *cq)
{
	const uint8_t *cqe =
		cq->ring + (size_t)(cq->ci & (cq->size - 1)) * cq->cqe_bytes + cq->cqe_bytes - 64;

	if (cqe[63] >> 4 == 15 || (cqe[63] & 1) != !!(cq->ci & cq->size))
		return NULL;
	cq->ci++;
	cq->db[0] = htobe32(cq->ci & 0xffffff);
	return cqe;
}

unsigned rig_cq_count(struct rig_cq *cq)
{
	unsigned n = 0;

	while (rig_cq_next(cq))
		n++;
	return n;
}

void rig_cq_arm(struct rig_cq *cq, uint32_t sn, bool solicited)
{
	uint32_t word = (sn & 3) << 28 | (solicited ? 1u << 24 : 0) | (cq->ci & 0xffffff);

	cq->db[1] = htobe32(word);
	cq->rig->page[4] = htobe64((uint64_t)word << 32 | hw_cqn(cq->cq));
}

/* ---- QP --------------------------------------------------------------------------------- */

static void on_qp_event(void *arg, int event)
{
	struct rig_qp *q = arg;

	q->last_event = (unsigned)event;
	q->events++;
}

void rig_qp_new_with(
	struct rig *r, struct rig_qp *q, struct rig_cq *scq, struct rig_cq *rcq, struct rig_opt o)
{
	struct hw_qp_attr attr = {
		.type = o.type,
		.pdn = r->pdn,
		.scq = scq->cq,
		.rcq = rcq->cq,
		.srq = o.srq,
		.uar = hw_uar_index(r->uar),
		.user_index = 0x123456,
		.cd_master = !o.no_master,
		.cd_slave_send = o.managed,
		.cd_slave_recv = o.managed_recv,
		.real_time = o.real_time,
		.cs_req = o.cs_req,
		.cs_res = o.cs_res,
		.on_event = on_qp_event,
		.arg = q,
	};

	memset(q, 0, sizeof(*q));
	q->rig = r;
	q->wqebbs = o.wqebbs ? o.wqebbs : 64;
	q->rq_wqes = o.rq_wqes ? o.rq_wqes : 16;
	q->sq = rig_alloc(r, (size_t)q->wqebbs * 64);
	q->rq_stride = o.rq_stride ? o.rq_stride : RQ_STRIDE;
	q->rq = rig_alloc(r, (size_t)q->rq_wqes * q->rq_stride);
	q->db = rig_alloc(r, 8);
	attr.sq = attr.db = &r->mem;
	attr.rq = o.srq ? NULL : &r->mem;
	attr.sq_off = rig_off(r, q->sq);
	attr.sq_wqebbs = q->wqebbs;
	attr.rq_off = rig_off(r, q->rq);
	attr.rq_wqes = q->rq_wqes;
	attr.rq_stride = q->rq_stride;
	attr.db_off = rig_off(r, q->db);
	assert_int_equal(hw_qp_create(r->dev, &attr, &q->qp), 0);
}

void rig_qp_new(struct rig *r, struct rig_qp *q, struct rig_cq *scq, struct rig_cq *rcq)
{
	struct rig_opt o = {0};

	rig_qp_new_with(r, q, scq, rcq, o);
}

void rig_default_mod(struct hw_qp_mod *mod)
{
	*mod = (struct hw_qp_mod){
		.mask = HW_QP_AV | HW_QP_DEST | HW_QP_ACCESS | HW_QP_RNR_TIMER | HW_QP_RETRY |
			HW_QP_RNR_RETRY | HW_QP_TIMEOUT | HW_QP_SQ_PSN | HW_QP_RQ_PSN | HW_QP_RD_ATOMIC |
			HW_QP_DEST_RD_ATOMIC | HW_QP_MTU | HW_QP_QKEY,
		.av = {.loopback = true},
		.access = HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC,
		.min_rnr_timer = 1,
		.retry_cnt = 2,
		.rnr_retry = 7,
		.timeout = 1,
		.sq_psn = 77,
		.rq_psn = 77,
		.qkey = 0x1111,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.mtu = 1024,
	};
}

void rig_qp_to(struct rig_qp *q, enum hw_qp_state to)
{
	struct hw_qp_mod mod = {0};

	assert_int_equal(hw_qp_modify(q->rig->dev, q->qp, to, &mod), 0);
}

void rig_av(struct hw_av *av, const uint8_t *dgid)
{
	*av = (struct hw_av){.hop_limit = 64, .udp_sport = 0xc000};
	memcpy(av->dgid, dgid, sizeof(av->dgid));
	hw_gid_mac(dgid, av->dmac);
}

void rig_qp_connect_to(struct rig_qp *q, uint32_t dest_qpn, const uint8_t *dgid)
{
	struct hw_qp_mod mod;

	rig_default_mod(&mod);
	mod.dest_qpn = dest_qpn;
	if (dgid)
		rig_av(&mod.av, dgid);
	rig_qp_to(q, HW_INIT);
	assert_int_equal(hw_qp_modify(q->rig->dev, q->qp, HW_RTR, &mod), 0);
	rig_qp_to(q, HW_RTS);
}

void rig_connect(struct rig_qp *a, struct rig_qp *b)
{
	rig_qp_connect_to(a, hw_qpn(b->qp), NULL);
	if (b != a)
		rig_qp_connect_to(b, hw_qpn(a->qp), NULL);
}

void rig_destroy(struct rig_qp *q)
{
	assert_int_equal(hw_qp_destroy(q->rig->dev, q->qp), 0);
}

void rig_one_open(struct rig_one *o, struct hw_config cfg, struct hw_cq_attr cqs, struct rig_opt opt)
{
	if (!cqs.log_size)
		cqs.log_size = 4;
	rig_open(&o->rig, &cfg);
	rig_cq_new_attr(&o->rig, &o->scq, cqs);
	rig_cq_new_attr(&o->rig, &o->rcq, cqs);
	rig_qp_new_with(&o->rig, &o->q, &o->scq, &o->rcq, opt);
	rig_connect(&o->q, &o->q);
}

void rig_one_start(struct rig_one *o, uint64_t seed)
{
	rig_one_open(
		o, (struct hw_config){.seed = seed}, (struct hw_cq_attr){.log_size = 6}, (struct rig_opt){0});
}

void rig_one_close(struct rig_one *o)
{
	rig_destroy(&o->q);
	assert_int_equal(hw_cq_destroy(o->rig.dev, o->scq.cq), 0);
	assert_int_equal(hw_cq_destroy(o->rig.dev, o->rcq.cq), 0);
	rig_close(&o->rig);
}

void rig_one_go(struct rig_one *o)
{
	rig_ring(&o->q);
	rig_run(&o->rig);
}

void rig_pair_open(struct rig_pair *p, struct hw_config cfg, struct rig_opt opt)
{
	rig_open(&p->rig, &cfg);
	for (int i = 0; i < 2; i++) {
		rig_cq_new(&p->rig, &p->scq[i], 6);
		rig_cq_new(&p->rig, &p->rcq[i], 6);
		rig_qp_new_with(&p->rig, &p->q[i], &p->scq[i], &p->rcq[i], opt);
	}
	p->src = rig_alloc(&p->rig, 4096);
	p->dst = rig_alloc(&p->rig, 4096);
}

void rig_pair_close(struct rig_pair *p)
{
	for (int i = 0; i < 2; i++)
		rig_destroy(&p->q[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hw_cq_destroy(p->rig.dev, p->scq[i].cq), 0);
		assert_int_equal(hw_cq_destroy(p->rig.dev, p->rcq[i].cq), 0);
	}
	rig_close(&p->rig);
}

/* ---- CQEs ------------------------------------------------------------------------------- */

uint8_t rig_cqe_op(const uint8_t *cqe)
{
	return cqe[63] >> 4;
}

uint8_t rig_cqe_synd(const uint8_t *cqe)
{
	return cqe[55];
}

uint16_t rig_cqe_idx(const uint8_t *cqe)
{
	return wqe_get16(cqe + 60);
}

const uint8_t *rig_expect(struct rig_cq *cq, enum cqe_opcode op)
{
	const uint8_t *cqe = rig_cq_next(cq);

	assert_non_null(cqe);
	if (rig_cqe_op(cqe) >= CQE_OP_REQ_ERR)
		assert_int_equal(rig_cqe_synd(cqe), 0);
	assert_int_equal(rig_cqe_op(cqe), op);
	return cqe;
}

const uint8_t *rig_expect_error(struct rig_cq *cq, uint8_t syndrome)
{
	const uint8_t *cqe = rig_cq_next(cq);

	assert_non_null(cqe);
	assert_in_range(rig_cqe_op(cqe), CQE_OP_REQ_ERR, CQE_OP_RESP_ERR);
	assert_int_equal(rig_cqe_synd(cqe), syndrome);
	return cqe;
}

/* ---- WQEs ------------------------------------------------------------------------------- */

void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

void put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

void put_seg(uint8_t *seg, const void *p, uint32_t len, uint32_t key)
{
	put32(seg, len);
	put32(seg + 4, key);
	put64(seg + 8, (uintptr_t)p);
}

uint8_t *wqe_raw(
	struct rig_qp *q, uint8_t opcode, uint8_t opmod, uint8_t ds, uint8_t fm_ce_se, uint32_t imm_be)
{
	uint8_t *w = q->sq + (size_t)(q->pi & (q->wqebbs - 1)) * 64;

	memset(w, 0, 64);
	put32(w, (uint32_t)opmod << 24 | (uint32_t)q->pi << 8 | opcode);
	put32(w + 4, hw_qpn(q->qp) << 8 | ds);
	w[11] = fm_ce_se;
	memcpy(w + 12, &imm_be, 4);
	q->pi = (uint16_t)(q->pi + (ds + 3) / 4);
	return w;
}

uint8_t *wqe_nop(struct rig_qp *q, uint8_t ds, uint8_t f)
{
	return wqe_raw(q, WQE_OP_NOP, 0, ds, f, 0);
}

uint8_t *wqe_send(struct rig_qp *q, uint8_t opcode, const void *p, uint32_t len, uint8_t f, uint32_t imm_be)
{
	uint8_t *w = wqe_raw(q, opcode, 0, len ? 2 : 1, f, imm_be);

	if (len)
		put_seg(w + 16, p, len, q->rig->key);
	return w;
}

static void put_raddr(struct rig_qp *q, uint8_t *w, const void *remote)
{
	put64(w + 16, (uintptr_t)remote);
	put32(w + 24, q->rig->key);
}

uint8_t *wqe_rdma(struct rig_qp *q, uint8_t opcode, const void *local, uint32_t len, const void *remote,
	uint8_t f, uint32_t imm_be)
{
	uint8_t *w = wqe_raw(q, opcode, 0, len ? 3 : 2, f, imm_be);

	put_raddr(q, w, remote);
	if (len)
		put_seg(w + 32, local, len, q->rig->key);
	return w;
}

uint8_t *wqe_inline_write(struct rig_qp *q, const void *data, uint32_t len, const void *remote, uint8_t f)
{
	uint8_t *w = wqe_raw(q, WQE_OP_WRITE, 0, (uint8_t)(2 + (len + 4 + 15) / 16), f, 0);
	size_t room = (size_t)(q->sq + q->wqebbs * 64 - (w + 36));

	put_raddr(q, w, remote);
	put32(w + 32, WQE_INLINE | len);
	memcpy(w + 36, data, len < room ? len : room);
	if (len > room)
		memcpy(q->sq, (const uint8_t *)data + room, len - room);
	return w;
}

uint8_t *wqe_atomic(struct rig_qp *q, uint8_t opcode, void *old, const void *target, uint64_t swap_add,
	uint64_t compare, uint8_t f)
{
	uint8_t *w = wqe_raw(q, opcode, 0, 4, f, 0);

	put_raddr(q, w, target);
	put64(w + 32, swap_add);
	put64(w + 40, compare);
	put_seg(w + 48, old, 8, q->rig->key);
	return w;
}

uint8_t *wqe_masked_cas8(struct rig_qp *q, void *old, const void *target, uint64_t swap, uint64_t compare,
	uint64_t swap_mask, uint64_t compare_mask, uint8_t f)
{
	uint8_t *w = wqe_raw(q, WQE_OP_MASKED_CAS, 9, 5, f, 0);
	uint8_t *next = q->sq + (size_t)((q->pi - 1) & (q->wqebbs - 1)) * 64;

	put_raddr(q, w, target);
	put64(w + 32, swap);
	put64(w + 40, compare);
	put64(w + 48, swap_mask);
	put64(w + 56, compare_mask);
	put_seg(next, old, 8, q->rig->key);
	return w;
}

uint8_t *wqe_masked4(
	struct rig_qp *q, uint8_t opcode, void *old, const void *target, const uint32_t ops[4], uint8_t f)
{
	uint8_t *w = wqe_raw(q, opcode, 8, 4, f, 0);

	put_raddr(q, w, target);
	for (unsigned i = 0; i < 4; i++)
		put32(w + 32 + 4 * i, ops[i]);
	put_seg(w + 48, old, 4, q->rig->key);
	return w;
}

uint8_t *wqe_masked_faa8(
	struct rig_qp *q, void *old, const void *target, uint64_t add, uint64_t tops, uint8_t f)
{
	uint8_t *w = wqe_atomic(q, WQE_OP_MASKED_FETCH_ADD, old, target, add, tops, f);

	w[0] = 9;
	return w;
}

uint8_t *wqe_wait(struct rig_qp *q, uint32_t cqn, uint32_t index, uint8_t f)
{
	return wqe_enable(q, WQE_OP_WAIT, cqn, index, f);
}

uint8_t *wqe_enable(struct rig_qp *q, uint8_t opcode, uint32_t number, uint32_t index, uint8_t f)
{
	uint8_t *w = wqe_raw(q, opcode, 0, 2, f, 0);

	put32(w + 24, index);
	put32(w + 28, number);
	return w;
}

void rig_ring(struct rig_qp *q)
{
	q->db[1] = htobe32(q->pi);
	q->rig->page[0x800 / 8] = htobe64((uint64_t)hw_qpn(q->qp) << 8);
}

void rig_recv(struct rig_qp *q, unsigned n, ...)
{
	uint8_t *w = q->rq + (size_t)(q->rpi & (q->rq_wqes - 1)) * q->rq_stride;
	va_list ap;

	va_start(ap, n);
	for (unsigned i = 0; i < n; i++) {
		void *p = va_arg(ap, void *);
		uint32_t len = va_arg(ap, uint32_t);

		put_seg(w + 16 * i, p, len, q->rig->key);
	}
	va_end(ap);
	if (n < q->rq_stride / 16)
		put_seg(w + 16 * n, NULL, 0, WQE_LKEY_NONE);
	q->rpi++;
	q->db[0] = htobe32(q->rpi);
}
