/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/executor.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/executor/memory.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of queue pairs and CQs: that of the queue, that of the CQ of RECVs, and of one that has all the
 * CQEs that a loop may wait for as credits */
enum { QUEUES = EXECUTOR_LOOP + 1, RECVS = QUEUES, CREDITS };

struct queue {
	uint8_t *ring;
	uint32_t wqebbs;   /* of it; 0: there is none */
	uint64_t at, upto; /* WQEBBs executed, enabled */
	uint32_t cqes;
};

struct executor {
	const struct program *p;
	struct memory memory;
	uint8_t *fresh, *own; /* the image, armed; and that of the request */
	uint64_t own_size;
	struct queue queue[QUEUES];
	unsigned nused; /* queues that there are, in the order in which they run */
	uint8_t used[QUEUES];
	uint16_t loop_start;
	uint64_t progress; /* offset in its own memory, of a program with a loop */
	uint64_t scratch;
	bool swapped_old;
	uint8_t *data;
	uint32_t data_size, data_used;
	struct executor_message *messages;
	unsigned nmessages, max_messages;
	uint64_t wqes;
	struct executor_fault fault;
};

/* ---- making ----------------------------------------------------------------------------------- */

/* Room for @size bytes in its own memory */
static uint64_t reserve(struct executor *x, uint64_t size)
{
	uint64_t at = x->own_size;

	x->own_size = (at + size + CHAIN_WQEBB - 1) / CHAIN_WQEBB * CHAIN_WQEBB;
	return at;
}

struct places {
	uint64_t queue[QUEUES], lanes, loop_scratch, shared;
};

static void lay_out(struct executor *x, struct places *at)
{
	const struct chain_image *img = x->p->image;

	for (unsigned q = 0; q < img->nqueues; q++) {
		x->queue[q].wqebbs = img->queue[q].wqebbs;
		at->queue[q] = reserve(x, (uint64_t)img->queue[q].wqebbs * CHAIN_WQEBB);
	}
	x->scratch = reserve(x, img->scratch_size);
	if (!x->p->loop)
		return;
	x->queue[EXECUTOR_LOOP].wqebbs = x->p->loop_ring;
	at->queue[EXECUTOR_LOOP] = reserve(x, (uint64_t)x->p->loop_ring * CHAIN_WQEBB);
	at->lanes = reserve(x, x->p->loop_info.lanes);
	at->loop_scratch = reserve(x, x->p->loop_info.scratch + 8u);
	at->shared = reserve(x, x->p->shared_bytes);
	x->progress = at->lanes + x->p->loop_info.progress;
}

static void fill_env(struct executor *x, const struct places *at, struct chain_env *env)
{
	const struct chain_image *img = x->p->image;
	const uint64_t own = memory_address(MEMORY_OWN);
	const uint32_t key = memory_key(MEMORY_OWN);

	env->slots = 2; /* of which only the first is used */
	env->recv_cqn = RECVS;
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].qpn = env->queue[q].cqn = q;
		env->queue[q].iova = own + at->queue[q];
		env->queue[q].lkey = env->queue[q].rkey = key;
		env->queue[q].ring = x->fresh + at->queue[q];
		env->queue[q].ring_wqebbs = 2 * img->queue[q].wqebbs;
	}
	env->scratch.iova = own + x->scratch;
	env->scratch.lkey = env->scratch.rkey = key;
	env->scratch.mem = x->fresh + x->scratch;
	env->slot_addr = memory_address(MEMORY_SLOT);
	env->slot_rkey = memory_key(MEMORY_SLOT);
	for (unsigned i = 0; i < img->nregions; i++) {
		env->region[i].iova = memory_address(MEMORY_REGIONS + i);
		env->region[i].lkey = env->region[i].rkey = memory_key(MEMORY_REGIONS + i);
	}
	if (!x->p->loop)
		return;
	env->region[img->nregions - 1].iova = own + at->shared;
	env->region[img->nregions - 1].lkey = env->region[img->nregions - 1].rkey = key;
}

/* The ring was sized with WAITs for credits (chain/ring/endless.h), so it has them */
static int write_loop(struct executor *x, const struct places *at, const struct chain_env *chain)
{
	CLEANUP(cleanup_free) struct chain_env *env = calloc(1, sizeof(*env));
	const struct program *p = x->p;
	struct chain_loop_info info = p->loop_info;
	const unsigned q = info.queue, call = p->image->nqueues - 1;
	const uint64_t own = memory_address(MEMORY_OWN);
	const uint32_t key = memory_key(MEMORY_OWN);
	struct chain_error err;
	int r;

	if (!env)
		return -ENOMEM;
	memcpy(x->fresh + at->shared, p->shared_init, p->shared_bytes);
	memcpy(env->region, chain->region, sizeof(env->region));
	env->call.gate_cqn = env->call.exit_qpn = call;
	env->call.credit_cqn = CREDITS;
	env->queue[q].qpn = env->queue[q].cqn = EXECUTOR_LOOP;
	env->queue[q].iova = own + at->queue[EXECUTOR_LOOP];
	env->queue[q].lkey = env->queue[q].rkey = key;
	env->queue[q].ring = x->fresh + at->queue[EXECUTOR_LOOP];
	env->queue[q].ring_wqebbs = p->loop_ring;
	env->lanes.iova = own + at->lanes;
	env->lanes.lkey = env->lanes.rkey = key;
	env->lanes.mem = x->fresh + at->lanes;
	env->lanes.size = info.lanes;
	env->scratch.iova = own + at->loop_scratch;
	env->scratch.lkey = env->scratch.rkey = key;
	env->scratch.mem = x->fresh + at->loop_scratch;
	r = chain_loop(p->loop, env, &info, &err);
	x->loop_start = info.start;
	return r > 0 ? -EINVAL : r;
}

static int write_image(struct executor *x, const struct places *at)
{
	CLEANUP(cleanup_free) struct chain_env *env = calloc(1, sizeof(*env));

	if (!env)
		return -ENOMEM;
	fill_env(x, at, env);
	chain_arm(x->p->image, env, 0);
	return x->p->loop ? write_loop(x, at, env) : 0;
}

static void fill_memory(struct executor *x, const struct executor_parts *parts)
{
	x->memory.space[MEMORY_OWN] = (struct memory_space){x->own, x->own_size, true};
	x->memory.space[MEMORY_SLOT] = (struct memory_space){NULL, parts->slot_size, true};
	for (unsigned i = 0; i < x->p->nregions; i++) {
		const struct executor_region *r = &parts->region[i];

		x->memory.space[MEMORY_REGIONS + i] = (struct memory_space){r->mem, r->size, r->writable};
	}
}

unsigned executor_max_messages(const struct program *p)
{
	const struct chain_desc *d = p->desc;
	unsigned n = 0;

	for (unsigned s = 0; s < d->nsteps; s++)
		n += d->steps[s].queue == 0 && d->steps[s].local[0].kind != CHAIN_AT_NONE;
	return n;
}

int executor_new(struct executor **out, const struct program *p, const struct executor_parts *parts)
{
	CLEANUP(cleanup_free) struct executor *x = calloc(1, sizeof(*x));
	struct places at = {0};
	int r;

	if (!x)
		return -ENOMEM;
	x->p = p;
	x->swapped_old = p->desc->swapped_old;
	x->data_size = parts->data_size;
	x->max_messages = executor_max_messages(p);
	lay_out(x, &at);
	x->messages = calloc(x->max_messages, sizeof(*x->messages));
	x->fresh = aligned_alloc(CHAIN_WQEBB, x->own_size);
	x->own = aligned_alloc(CHAIN_WQEBB, x->own_size);
	r = x->messages && x->fresh && x->own ? 0 : -ENOMEM;
	if (r == 0) {
		memset(x->fresh, 0, x->own_size);
		for (unsigned q = 0; q < QUEUES; q++) {
			if (!x->queue[q].wqebbs)
				continue;
			x->queue[q].ring = x->own + at.queue[q];
			x->used[x->nused++] = (uint8_t)q;
		}
		fill_memory(x, parts);
		r = write_image(x, &at);
	}
	if (r < 0)
		executor_free(steal_ptr(&x));
	else
		*out = steal_ptr(&x);
	return r;
}

void executor_free(struct executor *x)
{
	if (!x)
		return;
	free(x->messages);
	free(x->fresh);
	free(x->own);
	free(x);
}

uint64_t executor_bytes(const struct program *p)
{
	uint64_t bytes = 0;

	for (unsigned s = 0; s < p->desc->nsteps; s++) {
		const struct chain_step *step = &p->desc->steps[s];

		for (unsigned i = 0; step->queue == 0 && i < CHAIN_MAX_SGE; i++) {
			if (step->local[i].kind == CHAIN_AT_NONE)
				break;
			bytes += step->local[i].max ? step->local[i].max : step->local[i].len;
		}
	}
	return bytes;
}

/* ---- a work request --------------------------------------------------------------------------- */

struct wqe {
	uint8_t bytes[WQE_MAX_BBS * WQE_BB]; /* as it was when it was fetched */
	unsigned ds, queue;
};

static unsigned segments(const struct wqe *w, unsigned from)
{
	return w->ds * WQE_DS > from ? (w->ds * WQE_DS - from) / WQE_DS : 0;
}

/* Data segment @i of those from @at on: NULL, and x->fault.syndrome */
static uint8_t *segment(
	struct executor *x, const struct wqe *w, unsigned at, unsigned i, bool writes, uint32_t *len)
{
	const uint8_t *s = w->bytes + at + i * WQE_DS;
	uint32_t key = wqe_get32(s + WQE_SGE_LKEY);
	uint8_t *p = NULL;

	*len = wqe_get32(s + WQE_SGE_LEN);
	if (*len && key != memory_key(MEMORY_SLOT))
		p = memory_at(&x->memory, key, wqe_get64(s + WQE_SGE_ADDR), *len, writes);
	if (!p)
		x->fault.syndrome = CQE_SYND_LOCAL_PROT;
	return p;
}

static uint64_t length(const struct wqe *w, unsigned at)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < segments(w, at); i++)
		bytes += wqe_get32(w->bytes + at + i * WQE_DS + WQE_SGE_LEN);
	return bytes;
}

static bool fails(struct executor *x, uint8_t syndrome)
{
	x->fault.syndrome = syndrome;
	return false;
}

/* What a queue of code reads, writes, or works on */
static uint8_t *remote(struct executor *x, const struct wqe *w, uint64_t len, bool writes)
{
	uint32_t key = wqe_get32(w->bytes + WQE_RKEY);
	uint8_t *p = NULL;

	if (w->queue != 0 && key != memory_key(MEMORY_SLOT))
		p = memory_at(&x->memory, key, wqe_get64(w->bytes + WQE_RADDR), len, writes);
	if (!p)
		x->fault.syndrome = CQE_SYND_REMOTE_ACCESS;
	return p;
}

static bool execute_read(struct executor *x, const struct wqe *w)
{
	const uint8_t *from = remote(x, w, length(w, WQE_RDMA_SGE), false);
	uint32_t len;

	if (!from)
		return false;
	for (unsigned i = 0; i < segments(w, WQE_RDMA_SGE); i++, from += len) {
		uint8_t *to = segment(x, w, WQE_RDMA_SGE, i, true, &len);

		if (!to)
			return false;
		memory_copy(to, from, len);
	}
	return true;
}

/* All data segments from @at on to @to, which has room for them */
static bool gather(struct executor *x, const struct wqe *w, unsigned at, uint8_t *to)
{
	uint32_t len;

	for (unsigned i = 0; i < segments(w, at); i++, to += len) {
		const uint8_t *from = segment(x, w, at, i, false, &len);

		if (!from)
			return false;
		memory_copy(to, from, len);
	}
	return true;
}

static bool send(struct executor *x, const struct wqe *w, uint8_t opcode)
{
	bool writes = opcode == WQE_OP_WRITE || opcode == WQE_OP_WRITE_IMM;
	unsigned at = writes ? WQE_RDMA_SGE : WQE_SEND_SGE;
	uint64_t len = length(w, at), to = wqe_get64(w->bytes + WQE_RADDR);
	struct executor_message *m = &x->messages[x->nmessages];

	if (writes && !memory_has(&x->memory, MEMORY_SLOT, wqe_get32(w->bytes + WQE_RKEY), to, len))
		return fails(x, CQE_SYND_REMOTE_ACCESS);
	if (len > x->data_size - x->data_used || x->nmessages == x->max_messages)
		return fails(x, CQE_SYND_LOCAL_LENGTH);
	*m = (struct executor_message){
		.opcode = opcode,
		.solicited = w->bytes[WQE_FLAGS] & WQE_SOLICITED,
		.slot_at = writes ? (uint32_t)(to - memory_address(MEMORY_SLOT)) : 0,
		.imm = wqe_get32(w->bytes + WQE_IMM),
		.from = x->data_used,
		.len = (uint32_t)len,
		.wqebb = x->fault.wqebb,
	};
	if (!gather(x, w, at, x->data + x->data_used))
		return false;
	x->data_used += (uint32_t)len;
	x->nmessages++;
	return true;
}

static bool execute_write(struct executor *x, const struct wqe *w, uint8_t opcode)
{
	uint8_t *to;

	if (w->queue == 0)
		return send(x, w, opcode);
	if (opcode != WQE_OP_WRITE)
		return fails(x, CQE_SYND_LOCAL_QP_OP);
	to = remote(x, w, length(w, WQE_RDMA_SGE), true);
	if (!to)
		return false;
	return gather(x, w, WQE_RDMA_SGE, to);
}

static bool execute_atomic(struct executor *x, const struct wqe *w, uint8_t opcode)
{
	const unsigned at = WQE_ATOMIC + (opcode == WQE_OP_MASKED_CAS ? 32 : 16);
	bool masked = opcode == WQE_OP_MASKED_CAS || opcode == WQE_OP_MASKED_FETCH_ADD;
	const uint8_t *operand = w->bytes + WQE_ATOMIC;
	uint8_t *target, *to;
	uint64_t old;
	uint32_t len;

	if (w->ds * WQE_DS < at || (masked && w->bytes[WQE_OPMOD] != WQE_OPMOD_MASKED_8B))
		return fails(x, CQE_SYND_LOCAL_QP_OP);
	target = remote(x, w, sizeof(old), true);
	if (!target)
		return false;
	if ((uintptr_t)target % sizeof(old))
		return fails(x, CQE_SYND_REMOTE_INVAL);
	to = segment(x, w, at, 0, true, &len);
	if (!to)
		return false;
	if (len < sizeof(old))
		return fails(x, CQE_SYND_LOCAL_LENGTH);
	if (opcode == WQE_OP_FETCH_ADD || opcode == WQE_OP_MASKED_FETCH_ADD)
		old = memory_add(target, wqe_get64(operand), masked ? wqe_get64(operand + 8) : 0);
	else
		old = memory_swap(target, wqe_get64(operand), wqe_get64(operand + 8),
			masked ? wqe_get64(operand + 16) : UINT64_MAX,
			masked ? wqe_get64(operand + 24) : UINT64_MAX);
	if (x->swapped_old)
		old = __builtin_bswap64(old);
	memcpy(to, &old, sizeof(old));
	return true;
}

/* ---- queues ----------------------------------------------------------------------------------- */

/* CQE numbers have 24 bits */
static bool is_over(const struct executor *x, const struct wqe *w)
{
	uint32_t cq = wqe_get32(w->bytes + WQE_SYNC_OBJECT), number = wqe_get32(w->bytes + WQE_SYNC_INDEX);
	uint32_t cqes = cq < QUEUES ? x->queue[cq].cqes : cq == RECVS;

	return cq == CREDITS || (int32_t)((cqes - 1 - number) << 8) >= 0;
}

/* An instance has no successor: what enables the head of the next one, enables to the end */
static bool enable(struct executor *x, const struct wqe *w)
{
	uint32_t qpn = wqe_get32(w->bytes + WQE_SYNC_OBJECT);
	struct queue *q = &x->queue[qpn < QUEUES ? qpn : 0];
	int16_t more;

	if (qpn >= QUEUES || !q->wqebbs)
		return fails(x, CQE_SYND_LOCAL_QP_OP);
	more = (int16_t)(wqe_get32(w->bytes + WQE_SYNC_INDEX) - (uint32_t)q->upto);
	if (more > 0)
		q->upto += (uint64_t)more;
	if (qpn != EXECUTOR_LOOP && q->upto > q->wqebbs)
		q->upto = q->wqebbs;
	return true;
}

static bool execute(struct executor *x, const struct wqe *w)
{
	const uint8_t opcode = w->bytes[WQE_OPCODE];

	switch (opcode) {
	case WQE_OP_NOP:
	case WQE_OP_WAIT: /* is_over() */
		return true;
	case WQE_OP_SEND_EN:
		return enable(x, w);
	case WQE_OP_READ:
		return execute_read(x, w);
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
		return execute_write(x, w, opcode);
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return w->queue == 0 ? send(x, w, opcode) : fails(x, CQE_SYND_LOCAL_QP_OP);
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		return execute_atomic(x, w, opcode);
	}
	return fails(x, CQE_SYND_LOCAL_QP_OP);
}

/* Only a loop goes round */
static uint32_t place(const struct queue *q)
{
	return (uint32_t)(q->at < q->wqebbs ? q->at : q->at % q->wqebbs);
}

/* A WQE may go on at the beginning of the ring */
static bool fetch(const struct queue *q, struct wqe *w)
{
	uint32_t at = place(q), bytes, first;

	w->ds = q->ring[(size_t)at * WQE_BB + WQE_DSCOUNT] & WQE_MAX_DS;
	if (w->ds == 0)
		return false;
	bytes = w->ds * WQE_DS;
	first = (q->wqebbs - at) * WQE_BB;
	if (__builtin_expect(first >= bytes, 1)) {
		memcpy(w->bytes, q->ring + (size_t)at * WQE_BB, bytes);
		return true;
	}
	memcpy(w->bytes, q->ring + (size_t)at * WQE_BB, first);
	memcpy(w->bytes + first, q->ring, bytes - first);
	return true;
}

enum step { STEP_NONE, STEP_DONE, STEP_FAILED };

static enum step step(struct executor *x, unsigned number)
{
	struct queue *q = &x->queue[number];
	struct wqe w;

	if (q->at >= q->upto)
		return STEP_NONE;
	w.queue = number;
	x->fault = (struct executor_fault){.queue = (uint8_t)number, .wqebb = place(q)};
	if (!fetch(q, &w)) {
		x->fault.syndrome = CQE_SYND_LOCAL_QP_OP;
		return STEP_FAILED;
	}
	if (w.bytes[WQE_OPCODE] == WQE_OP_WAIT && !is_over(x, &w))
		return STEP_NONE;
	x->wqes++;
	if (!execute(x, &w))
		return STEP_FAILED;
	q->at += (w.ds * WQE_DS + WQE_BB - 1) / WQE_BB;
	q->cqes += (w.bytes[WQE_FLAGS] & WQE_SIGNALLED) != 0;
	return STEP_DONE;
}

/* ---- requests --------------------------------------------------------------------------------- */

static void receive(struct executor *x, const uint8_t *request)
{
	const struct chain_image *img = x->p->image;

	for (unsigned i = 0; i < img->nrecv; i++) {
		const struct chain_recv_sge *s = &img->recv[i];
		uint8_t *to = s->sym == CHAIN_SYM_QUEUE ? x->queue[s->index].ring : x->own + x->scratch;

		memcpy(to + s->offset, request, s->len);
		request += s->len;
	}
}

void executor_begin(struct executor *x, uint64_t number, const uint8_t *request, uint8_t *data)
{
	const struct chain_image *img = x->p->image;

	memcpy(x->own, x->fresh, x->own_size);
	for (unsigned i = img->again_reloc; i < img->index_reloc; i++) {
		const struct chain_reloc *r = &img->relocs[i];

		if (r->kind == CHAIN_REL_SEQ32)
			wqe_put32(x->queue[r->where].ring + r->offset,
				(uint32_t)(number + (uint64_t)r->addend));
	}
	for (unsigned i = 0; i < x->nused; i++) {
		struct queue *q = &x->queue[x->used[i]];

		q->at = q->upto = q->cqes = 0;
	}
	x->queue[0].upto = chain_start_index(img);
	x->queue[EXECUTOR_LOOP].upto = x->loop_start;
	x->data = data;
	x->data_used = 0;
	x->nmessages = 0;
	x->wqes = 0;
	receive(x, request);
}

/* Queues run one after the other, each as far as it gets: of what the NIC may do, this is one way */
enum executor_result executor_run(struct executor *x, uint64_t wqes)
{
	unsigned idle = 0;

	for (unsigned i = 0; idle < x->nused; i = i + 1 < x->nused ? i + 1 : 0, idle++) {
		enum step s;

		while ((s = step(x, x->used[i])) == STEP_DONE) {
			idle = 0;
			if (--wqes == 0)
				return EXECUTOR_MORE;
		}
		if (s == STEP_FAILED)
			return EXECUTOR_FAULT;
	}
	if (x->queue[0].at == x->queue[0].wqebbs)
		return EXECUTOR_DONE;
	x->fault = (struct executor_fault){.queue = 0, .wqebb = (uint32_t)x->queue[0].at};
	return EXECUTOR_FAULT;
}

uint64_t executor_wqes(const struct executor *x)
{
	return x->wqes;
}

uint64_t executor_iterations(const struct executor *x)
{
	uint64_t n = 0;

	if (x->p->loop)
		memcpy(&n, x->own + x->progress, sizeof(n));
	return le64toh(n);
}

const uint8_t *executor_replies(const struct executor *x)
{
	return x->queue[0].ring;
}

const struct executor_message *executor_messages(const struct executor *x, unsigned *n)
{
	*n = x->nmessages;
	return x->messages;
}

const struct executor_fault *executor_fault(const struct executor *x)
{
	return &x->fault;
}
