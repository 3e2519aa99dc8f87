/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/test-rig.h"

#include "libclient/queues.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "util/array.h"
#include "util/xorshift.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BUCKETS = 512,
	RECORD = RIG_SLOT - REDDN_SLOT_RECORD, /* and its header */
	KEY_BYTES = 18,                        /* of a request, */
	OFFSETS_BYTES = 6,                     /* without fingerprints */
	MAX_VALUE = 256,
	CQES = 8 * RIG_MAX_DEPTH * RIG_CONNECTIONS
};

_Thread_local struct rig rig;
bool rig_extended, rig_store;

/* What of the rig no test sees */
static _Thread_local struct {
	struct ibv_context verbs;
	struct fake_cq {
		union {
			struct ibv_cq cq; /* first */
			struct ibv_cq_ex ex;
		};
		struct ibv_wc wc; /* that ex reads */
		bool polling;     /* between start and end */
		bool armed;
		struct ibv_wc cqes[CQES];
		unsigned head, tail;
	} cq[RIG_HOSTS];
	struct ibv_mr mr, puts, memory;
	struct rdma_event_channel events;
	uint8_t *map; /* the table's file */
} nic;

static _Thread_local uint64_t rng = 1;

void rig_seed(unsigned seed)
{
	rng = seed * 0x9e3779b97f4a7c15ull;
}

uint32_t rig_rnd(void)
{
	return (uint32_t)(xorshift(&rng) >> 32);
}

static struct fake_cq *cq_of(const struct rig_end *e)
{
	return &nic.cq[(e - rig.end) / RIG_CONNECTIONS];
}

static void cq_push(struct fake_cq *q, struct ibv_wc wc)
{
	assert_true(q->head - q->tail < COUNT(q->cqes));
	q->cqes[q->head++ % CQES] = wc;
}

void rig_push(struct ibv_wc wc)
{
	cq_push((struct fake_cq *)rig.c.session.cq, wc);
}

void rig_complete_send(struct rig_end *e)
{
	if (e->completed == e->signals)
		return;
	e->completed++;
	cq_push(cq_of(e), (struct ibv_wc){.wr_id = reddn_send_id(e->k),
				  .opcode = IBV_WC_SEND,
				  .qp_num = (uint32_t)(e - rig.end)});
}

static int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake_cq *q = (struct fake_cq *)cq;
	int k = 0;

	if (rig.sends == RIG_LATE && rig_rnd() % 2)
		rig_complete_send(&rig.end[rig_rnd() % RIG_CONNECTIONS]);
	for (; k < n && q->tail != q->head; k++) {
		wc[k] = q->cqes[q->tail++ % CQES];
		/* a request has a WQE */
		if (wc[k].opcode == IBV_WC_SEND && wc[k].status == IBV_WC_SUCCESS) {
			struct rig_end *e = &rig.end[wc[k].qp_num];

			e->reclaimed = e->signaled[e->polled++ % RIG_MAX_DEPTH];
		}
	}
	return k;
}

static int fake_arm(struct ibv_cq *cq, int solicited_only)
{
	((struct fake_cq *)cq)->armed = true;
	return 0;
}

bool rig_is_armed(void)
{
	return ((struct fake_cq *)rig.c.session.cq)->armed;
}

/* ---- the same by ibv_cq_ex ---- */

static int fake_next(struct ibv_cq_ex *cq)
{
	struct fake_cq *q = (struct fake_cq *)cq;

	assert_true(q->polling);
	if (!fake_poll(&q->cq, 1, &q->wc))
		return ENOENT;
	cq->wr_id = q->wc.wr_id;
	cq->status = q->wc.status;
	return 0;
}

static int fake_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct fake_cq *q = (struct fake_cq *)cq;

	assert_int_equal(attr->comp_mask, 0);
	assert_false(q->polling);
	q->polling = true;
	q->polling = fake_next(cq) == 0;
	return q->polling ? 0 : ENOENT;
}

static void fake_end(struct ibv_cq_ex *cq)
{
	struct fake_cq *q = (struct fake_cq *)cq;

	assert_true(q->polling);
	q->polling = false;
}

static uint32_t fake_vendor_err(struct ibv_cq_ex *cq)
{
	return ((struct fake_cq *)cq)->wc.vendor_err;
}

static __be32 fake_imm(struct ibv_cq_ex *cq)
{
	return ((struct fake_cq *)cq)->wc.imm_data;
}

static const struct ibv_cq_ex fake_cq_ex = {.start_poll = fake_start,
	.next_poll = fake_next,
	.end_poll = fake_end,
	.read_vendor_err = fake_vendor_err,
	.read_imm_data = fake_imm};

static void arrive(struct rig_end *e, const void *bytes, size_t len, uint64_t wr_id, unsigned flags)
{
	const struct reddn_session *s = &rig.c.session;
	bool puts = reddn_session_puts(s);

	if (rig.posts_fail) {
		rig.failed_posts++;
		return;
	}
	/* What a client must never do: more requests than depth, more than its queues hold, or without a
	 * receive. */
	assert_true(e->arrived - e->served < e->depth);
	assert_true(e->receives > e->arrived - e->served);
	assert_true(e->arrived + 1 - e->reclaimed <= s->wqes);
	assert_true(len - s->info.request_len <= (puts ? REDDN_STORE_VERSION + s->geo.room : 0));
	memcpy(e->wire[e->arrived % RIG_MAX_DEPTH], bytes, len);
	e->len[e->arrived % RIG_MAX_DEPTH] = (uint32_t)len;
	e->arrived++;
	if (rig.lost_after == e->arrived)
		rig_push((struct ibv_wc){.status = IBV_WC_RETRY_EXC_ERR, .opcode = IBV_WC_SEND});
	if (flags & IBV_SEND_SIGNALED) {
		assert_true(e->signals - e->polled < RIG_MAX_DEPTH);
		assert_int_equal(wr_id, reddn_send_id(e->k));
		e->signaled[e->signals++ % RIG_MAX_DEPTH] = e->arrived;
		if (rig.sends == RIG_AT_ONCE)
			rig_complete_send(e);
	}
}

static void check_place(const struct ibv_sge *p)
{
	const struct reddn_memory *m = rig.c.memory;

	if (m->len && p->addr - (uintptr_t)m->at < m->len)
		assert_int_equal(p->lkey, nic.memory.lkey);
	else
		assert_int_equal(p->lkey, reddn_session_puts(&rig.c.session) ? nic.puts.lkey : nic.mr.lkey);
}

/* As a NIC gathers it; 0 bytes would be 2^31 for it */
static void arrive_from(
	struct rig_end *e, const struct ibv_sge *places, size_t n, uint64_t wr_id, unsigned flags)
{
	uint8_t all[RIG_WIRE];
	size_t len = 0;

	for (size_t i = 0; i < n; len += places[i++].length) {
		assert_true(places[i].length && places[i].length <= sizeof(all) - len);
		check_place(&places[i]);
		memcpy(all + len, (void *)(uintptr_t)places[i].addr, places[i].length);
	}
	arrive(e, all, len, wr_id, flags);
}

static int fake_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	arrive_from((struct rig_end *)qp, wr->sg_list, (size_t)wr->num_sge, wr->wr_id, wr->send_flags);
	return rig.posts_fail ? ENOMEM : 0;
}

/* ---- the same by ibv_qp_ex ---- */

static struct rig_end *posting(struct ibv_qp_ex *qp, unsigned calls)
{
	struct rig_end *e = (struct rig_end *)qp;

	assert_int_equal(e->posting, calls);
	e->posting++;
	return e;
}

static void fake_wr_start(struct ibv_qp_ex *qp)
{
	posting(qp, 0);
}

static void fake_wr_send(struct ibv_qp_ex *qp)
{
	posting(qp, 1);
}

static void fake_wr_inline(struct ibv_qp_ex *qp, void *bytes, size_t len)
{
	assert_true(len <= rig.c.session.inline_max);
	arrive(posting(qp, 2), bytes, len, qp->wr_id, qp->wr_flags);
}

static void fake_wr_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t len)
{
	const struct ibv_sge place = {.addr = addr, .length = len, .lkey = lkey};

	assert_true(len > rig.c.session.inline_max);
	arrive_from(posting(qp, 2), &place, 1, qp->wr_id, qp->wr_flags);
}

static void fake_wr_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *places)
{
	arrive_from(posting(qp, 2), places, n, qp->wr_id, qp->wr_flags);
}

static int fake_wr_complete(struct ibv_qp_ex *qp)
{
	posting(qp, 3)->posting = 0;
	return rig.posts_fail ? ENOMEM : 0;
}

static int fake_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rig_end *e = (struct rig_end *)qp;

	*bad = NULL;
	for (; wr; wr = wr->next) {
		assert_ptr_equal((void *)(uintptr_t)wr->wr_id, e->k);
		e->receives++;
	}
	assert_true(e->receives <= 2u * e->depth);
	return 0;
}

size_t rig_key_of(uint32_t k, uint8_t key[static RIG_KEY_MAX])
{
	static const size_t lengths[] = {4, 16, 9, 24};

	memset(key, 'k', RIG_KEY_MAX);
	memcpy(key, &k, sizeof(k));
	return lengths[k % COUNT(lengths)];
}

void rig_value_of(uint32_t key, uint32_t version, uint32_t *val, size_t *len)
{
	*len = 4 * (2 + (key * 7 + version) % 40);
	for (size_t i = 0; i < *len / 4; i++)
		val[i] = i % 2 ? version : key;
}

/* One operation of the writer, on any key; the stable ones are never deleted. */
static void write_once(void)
{
	uint32_t k = rig_rnd() % RIG_KEYS, val[64];
	bool delete = k >= RIG_STABLE && rig_rnd() % 2;
	uint8_t key[RIG_KEY_MAX];
	size_t len, key_len = rig_key_of(k, key);

	rig.clock++;
	if (delete &&rig.key[k].present) {
		assert_int_equal(reddn_table_delete(rig.t, key, key_len), 0);
		rig.key[k].present = false;
	} else if (!delete) {
		rig_value_of(k, rig.key[k].version + 1, val, &len);
		assert_int_equal(reddn_table_put(rig.t, key, key_len, val, len), 0);
		if (!rig.key[k].present)
			rig.key[k].last_absent = rig.clock;
		rig.key[k].present = true;
		rig.key[k].version++;
	}
}

void rig_maybe_write(void)
{
	while (rig.writing && rig_rnd() % 3)
		write_once();
}

struct rig_end *rig_pending(void)
{
	unsigned from = rig_rnd() % RIG_CONNECTIONS;

	for (unsigned i = 0; i < RIG_HOSTS * RIG_CONNECTIONS; i++) {
		unsigned host = i / RIG_CONNECTIONS;
		struct rig_end *e = &rig.end[host * RIG_CONNECTIONS + (from + i) % RIG_CONNECTIONS];

		if (e->served < e->arrived && !rig.stopped[host])
			return e;
	}
	return NULL;
}

/* The NIC looks a key up. Returns the rest of the request. */
static const uint8_t *serve_key(const uint8_t *arg, uint8_t *record)
{
	const struct reddn *c = &rig.c;
	uint64_t words[4];

	for (int p = 0; p < 2; p++) {
		uint64_t off = 0, fp = 0;
		int first = rig_rnd() % 2;

		for (int i = 0; i < 6; i++)
			fp = fp << 8 | *arg++;
		for (int i = 0; i < c->session.geo.offset_len; i++)
			off = off << 8 | *arg++;
		assert_true(off < BUCKETS * 16 && off % 16 == 0);
		for (int i = 0; i < 2; i++) {
			int w = i ^ first;

			rig_maybe_write();
			words[2 * p + w] = ((uint64_t *)(nic.map + rig.st.buckets_off + off))[w];
		}
		/* a key that has an entry in a store, and no record */
		if (rig_store && words[2 * p + 1] != reddn_mark(fp) && rig_rnd() % 4 == 0)
			memset(record - RIG_HEADER, 'h', RIG_HEADER);
		if (words[2 * p + 1] == reddn_mark(fp)) {
			uint32_t len = reddn_locator_len(words[2 * p]);
			const uint8_t *from = nic.map + rig.st.heap_off + reddn_locator_off(words[2 * p]);

			if (rig_store)
				memset(record - RIG_HEADER, 'h', RIG_HEADER);
			for (uint32_t at = 0; at < len; at += 8) {
				/* Now and then so much that the memory under this record is used again. */
				for (int n = rig_rnd() % 256 ? 0 : 400; rig.writing && n > 0; n--)
					write_once();
				memcpy(record + at, from + at, len - at < 8 ? len - at : 8);
			}
		}
	}
	return arg;
}

/* The NIC reads the parts of the buckets of a key. Returns the rest of the request. */
static const uint8_t *serve_parts(const uint8_t *arg, uint8_t *parts)
{
	const struct reddn_geometry *g = &rig.c.session.geo;
	uint64_t words[2];

	for (int p = 0; p < 2; p++, parts += g->part) {
		int first = rig_rnd() % 2;
		uint64_t at = 0;

		for (int i = 0; i < g->offset_len; i++)
			at = at << 8 | *arg++;
		/* 0: of a key that the request does not have */
		assert_true(at <= (uint64_t)BUCKETS * 16 - g->part &&
			    (!at || at % 16 + g->part == REDDN_PART_END));
		for (int i = 0; i < 2; i++) {
			int w = i ^ first;

			rig_maybe_write();
			words[w] = ((uint64_t *)(nic.map + rig.st.buckets_off + at / 16 * 16))[w];
		}
		memcpy(parts, (uint8_t *)words + at % 16, g->part);
	}
	return arg;
}

static uint8_t *slot_of(const struct rig_end *e)
{
	return e->slots + e->served % e->depth * e->slot_size;
}

void rig_serve_half(struct rig_end *e)
{
	const struct reddn_geometry *g = &rig.c.session.geo;
	const uint8_t *arg = e->wire[e->served % RIG_MAX_DEPTH];

	if (e->halfway)
		return;
	e->halfway = true;
	for (unsigned k = 0; k < g->keys; k++)
		arg = g->part ? serve_parts(arg, slot_of(e) + reddn_parts_at(g, k))
			      : serve_key(arg, slot_of(e) + reddn_record_at(g, k));
}

void rig_serve_of(struct rig_end *e)
{
	assert_non_null(e);
	rig_serve_half(e);
	rig_maybe_write();
	memcpy(slot_of(e), nic.map + rig.st.live_off, 64);
	e->halfway = false;
	e->receives--;
	cq_push(cq_of(e), (struct ibv_wc){.wr_id = (uintptr_t)e->k,
				  .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				  .imm_data = htonl((uint32_t)e->served)});
	e->served++;
}

void rig_serve(void)
{
	rig_serve_of(rig_pending());
}

/* A session of the table with this host, whose connections are those of the rig from now on */
static void start_session(struct reddn_session *s, unsigned host, unsigned keys, uint16_t connections,
	unsigned depth, enum rig_offload of)
{
	static const enum reddn_shape shape[] = {[RIG_GETS] = REDDN_TABLE,
		[RIG_RAW] = REDDN_OPAQUE,
		[RIG_PUTS] = REDDN_PUT,
		[RIG_EXISTS] = REDDN_EXISTS};
	const uint32_t request_len[] = {[RIG_GETS] = keys * KEY_BYTES,
		[RIG_RAW] = 100,
		[RIG_PUTS] = RIG_HEADER - REDDN_STORE_VERSION,
		[RIG_EXISTS] = keys * OFFSETS_BYTES};
	const uint8_t header = rig_store || of == RIG_PUTS ? RIG_HEADER : 0;
	struct fake_cq *q = &nic.cq[host];

	q->head = q->tail = 0;
	q->armed = false;
	*s = (struct reddn_session){.host = host,
		.info = {.shape = shape[of],
			.connections = connections,
			.slot_size = REDDN_SLOT_RECORD + keys * RECORD,
			.reply_max = REDDN_SLOT_RECORD + keys * RECORD,
			.keys = keys,
			.request_len = request_len[of]},
		.geo = {.seed = 5,
			.buckets = BUCKETS,
			.max_key = RIG_KEY_MAX,
			.max_value = MAX_VALUE,
			.offset_len = 3,
			.keys = (uint8_t)keys,
			.header = header,
			.part = of == RIG_EXISTS ? (uint8_t)reddn_wire_part(header) : 0,
			.room = RECORD - header},
		.key_room = of == RIG_PUTS ? RIG_WIRE : 256,
		.events = &nic.events,
		.depth = depth,
		.cq = &q->cq,
		.cq_ex = rig_extended ? &q->ex : NULL,
		.mr = &nic.mr,
		.inline_max = REDDN_WIRE_INLINE};
	assert_int_equal(reddn_session_init(s), 0);
	memset(&rig.end[host * RIG_CONNECTIONS], 0, RIG_CONNECTIONS * sizeof(rig.end[0]));
	for (unsigned i = 0; i < connections; i++) {
		struct rig_end *e = &rig.end[host * RIG_CONNECTIONS + i];

		e->slots = reddn_slot_mem(s, i * depth);
		e->slot_size = s->info.slot_size;
		e->k = &s->connection[i];
		e->depth = depth;
		e->qp_ex = (struct ibv_qp_ex){.wr_start = fake_wr_start,
			.wr_send = fake_wr_send,
			.wr_set_inline_data = fake_wr_inline,
			.wr_set_sge = fake_wr_sge,
			.wr_set_sge_list = fake_wr_sge_list,
			.wr_complete = fake_wr_complete};
		e->qp.context = &nic.verbs;
		e->k->id = &e->id;
		e->k->qp = &e->qp;
		e->k->qp_ex = rig_extended ? &e->qp_ex : NULL;
		assert_int_equal(reddn_post_receives(e->k), 0);
		assert_int_equal(reddn_post_receives(e->k), 0);
	}
	reddn_session_complete(s);
	assert_int_equal(
		s->usual_key, rig_extended && of == RIG_GETS && keys == 1 && !header ? RIG_KEY_MAX : 0);
}

void rig_next_session_at(
	unsigned host, unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of)
{
	start_session(&rig.c.connector.session, host, keys, connections, depth, of);
	rig.c.connector.state = REDDN_CONNECT_DONE;
}

void rig_next_session(unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of)
{
	rig_next_session_at(0, keys, connections, depth, of);
}

struct reddn_table_live *rig_live(void)
{
	return (struct reddn_table_live *)(nic.map + rig.st.live_off);
}

void rig_lose(int error)
{
	reddn_break(&rig.c, error, "lost by the test");
}

/* ---- in place of those of the libraries: nothing of the fakes is to be destroyed ---- */

int rdma_disconnect(struct rdma_cm_id *id)
{
	rig.disconnected++;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	return 0;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	assert_ptr_equal(channel, &nic.events);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return 0;
}

int(ibv_dereg_mr)(struct ibv_mr *mr)
{
	assert_true(mr == &nic.mr || mr == &nic.puts || mr == &nic.memory);
	return 0;
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	if (rig.c.memory->len && addr == rig.c.memory->at)
		return &nic.memory;
	assert_ptr_equal(addr, rig.c.keys);
	assert_int_equal(len, rig.c.nrequests * rig.c.key_room);
	return &nic.puts;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	(void)channel, (void)cq, (void)context;
	return -1;
}

/* ---- */

void rig_start_several(
	unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of, uint64_t heap)
{
	struct reddn *c = &rig.c;

	memset(&rig, 0, sizeof(rig));
	memset(&nic, 0, sizeof(nic));
	rig.fd = memfd_create("table", MFD_CLOEXEC);
	assert_int_equal(reddn_table_create_fd(&rig.t, rig.fd,
				 &(struct reddn_table_options){.buckets = BUCKETS,
					 .heap_size = heap,
					 .max_key = RIG_KEY_MAX,
					 .max_value = 256,
					 .seed = 5},
				 NULL, 0),
		0);
	reddn_table_stat(rig.t, &rig.st);
	nic.map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
	for (uint32_t k = 0; k < RIG_STABLE; k++) {
		uint8_t key[RIG_KEY_MAX];
		size_t len, key_len = rig_key_of(k, key);
		uint32_t val[64];

		rig_value_of(k, 0, val, &len);
		assert_int_equal(reddn_table_put(rig.t, key, key_len, val, len), 0);
		rig.key[k].present = true;
	}
	nic.events.fd = eventfd(0, EFD_CLOEXEC);
	nic.verbs.ops.poll_cq = fake_poll;
	nic.verbs.ops.req_notify_cq = fake_arm;
	nic.verbs.ops.post_send = fake_send;
	nic.verbs.ops.post_recv = fake_recv;
	for (unsigned i = 0; i < RIG_HOSTS; i++) {
		nic.cq[i].ex = fake_cq_ex;
		nic.cq[i].cq.context = &nic.verbs;
	}
	c->connector.opt.retry_ms = 600000;
	c->pause_until = UINT64_MAX;
	c->up_since = 1;
	nic.puts.lkey = 7;
	nic.memory.lkey = 8;
	c->connector.opt.flags = REDDN_NO_RECONNECT;
	assert_int_equal(
		reddn_hosts_read(&c->connector.hosts, of == RIG_PUTS ? "a" : "a,b", 7471, false, NULL, 0), 0);
	start_session(&c->session, 0, keys, connections, depth, of);
	assert_int_equal(reddn_requests_grow(c, &c->session), 0);
}

void rig_start(unsigned depth, enum rig_offload of, uint64_t heap)
{
	rig_start_several(1, 1, depth, of, heap);
}

void rig_stop(void)
{
	reddn_requests_deinit(&rig.c);
	reddn_session_deinit(&rig.c.before);
	reddn_session_deinit(&rig.c.session);
	reddn_hosts_deinit(&rig.c.connector.hosts);
	reddn_table_close(rig.t);
	munmap(nic.map, rig.st.file_size);
	close(rig.fd);
	close(nic.events.fd);
}
