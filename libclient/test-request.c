/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's side of a connection against a fake NIC and server: it takes posted requests, looks keys up
 * in a real table word by word, as the offload would, and lets the table's writer run between any two of
 * these words.
 */
#include "libclient/connection.h"
#include "libclient/queues.h"
#include "libclient/reddn-table.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MAX_DEPTH = 64,
	CONNECTIONS = 3,
	KEYS = 240,
	STABLE = 60,
	BUCKETS = 512,
	SLOT = 512,
	RECORD = SLOT - REDDN_SLOT_RECORD,
	MOST_KEYS = 4,
	KEY_BYTES = 18, /* of a request */
	KEY_MAX = 32,
	CQES = 8 * MAX_DEPTH * CONNECTIONS
};

/* A connection */
struct end {
	union {
		struct ibv_qp qp; /* first */
		struct ibv_qp_ex qp_ex;
	};
	unsigned posting; /* calls of ibv_wr_*() for a request that is being posted */
	struct rdma_cm_id id;
	uint8_t wire[MAX_DEPTH][REDDN_REQUEST_MAX];
	uint64_t arrived, served;
	uint32_t receives;
	uint64_t reclaimed;           /* requests whose WQEs the client knows to be free */
	uint64_t signaled[MAX_DEPTH]; /* wr_id of those whose CQE is to come, */
	uint64_t signals, completed;  /* how many there were, and how many came */
	bool halfway;                 /* the oldest request: its buckets have been read */
};

/* One of each thread */
static _Thread_local struct rig {
	struct reddn c;
	struct ibv_context verbs;
	struct ibv_cq cq;
	struct ibv_cq_ex cq_ex;
	struct ibv_wc wc; /* that cq_ex reads */
	bool polling;     /* between start and end */
	struct ibv_mr mr;
	struct rdma_event_channel events;
	/* the NIC */
	struct end end[CONNECTIONS];
	struct ibv_wc cqes[CQES];
	unsigned head, tail;
	enum { AT_ONCE, LATE, NEVER } sends; /* when the CQE of a SEND comes */
	/* the table */
	struct reddn_table *t;
	struct reddn_table_stat st;
	uint8_t *map;
	int fd;
	bool writing;
	struct {
		bool present;
		uint32_t version;     /* of its value */
		uint64_t last_absent; /* clock */
	} key[KEYS];
	uint64_t clock; /* operations of the writer */
} rig;

static _Thread_local uint64_t rng = 1;

static uint32_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32);
}

static void push(struct ibv_wc wc)
{
	assert_true(rig.head - rig.tail < COUNT(rig.cqes));
	rig.cqes[rig.head++ % CQES] = wc;
}

/* The oldest SEND that was signaled and has no CQE yet is complete: the CQE may come later than the reply */
static void complete_send(struct end *e)
{
	if (e->completed < e->signals)
		push((struct ibv_wc){
			.wr_id = e->signaled[e->completed++ % MAX_DEPTH], .opcode = IBV_WC_SEND});
}

static int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int k = 0;

	(void)cq;
	if (rig.sends == LATE && rnd() % 2)
		complete_send(&rig.end[rnd() % CONNECTIONS]);
	for (; k < n && rig.tail != rig.head; k++) {
		wc[k] = rig.cqes[rig.tail++ % CQES];
		/* a request has a WQE */
		if (wc[k].opcode == IBV_WC_SEND && wc[k].status == IBV_WC_SUCCESS)
			rig.end[wc[k].wr_id >> REDDN_CONNECTION_SHIFT].reclaimed =
				wc[k].wr_id & ((1ull << REDDN_CONNECTION_SHIFT) - 1);
	}
	return k;
}

/* ---- the same by ibv_cq_ex ---- */

static bool extended; /* the client polls by it, and posts by ibv_qp_ex */

static int fake_next(struct ibv_cq_ex *cq)
{
	assert_true(rig.polling);
	if (!fake_poll(&rig.cq, 1, &rig.wc))
		return ENOENT;
	cq->wr_id = rig.wc.wr_id;
	cq->status = rig.wc.status;
	return 0;
}

static int fake_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	assert_int_equal(attr->comp_mask, 0);
	assert_false(rig.polling);
	rig.polling = true;
	rig.polling = fake_next(cq) == 0;
	return rig.polling ? 0 : ENOENT;
}

static void fake_end(struct ibv_cq_ex *cq)
{
	(void)cq;
	assert_true(rig.polling);
	rig.polling = false;
}

static enum ibv_wc_opcode fake_opcode(struct ibv_cq_ex *cq)
{
	(void)cq;
	assert_int_equal(rig.wc.status, IBV_WC_SUCCESS);
	return rig.wc.opcode;
}

static uint32_t fake_vendor_err(struct ibv_cq_ex *cq)
{
	(void)cq;
	return rig.wc.vendor_err;
}

static uint32_t fake_byte_len(struct ibv_cq_ex *cq)
{
	(void)cq;
	return rig.wc.byte_len;
}

static __be32 fake_imm(struct ibv_cq_ex *cq)
{
	(void)cq;
	return rig.wc.imm_data;
}

static const struct ibv_cq_ex fake_cq_ex = {.start_poll = fake_start,
	.next_poll = fake_next,
	.end_poll = fake_end,
	.read_opcode = fake_opcode,
	.read_vendor_err = fake_vendor_err,
	.read_byte_len = fake_byte_len,
	.read_imm_data = fake_imm};

/* wr_id of the receives of the first connection */
static uint64_t first_id(void)
{
	return (uintptr_t)rig.c.connection;
}

static void arrive(struct end *e, const void *bytes, size_t len, uint64_t wr_id, unsigned flags)
{
	/* What a client must never do: more requests than depth, more than its queues hold, or without a
	 * receive. */
	assert_true(e->arrived - e->served < rig.c.depth);
	assert_true(e->receives > e->arrived - e->served);
	assert_true(e->arrived + 1 - e->reclaimed <= rig.c.wqes);
	assert_int_equal(len, rig.c.info.request_len);
	memcpy(e->wire[e->arrived % MAX_DEPTH], bytes, len);
	e->arrived++;
	if (flags & IBV_SEND_SIGNALED) {
		assert_true(e->signals - e->completed < MAX_DEPTH);
		e->signaled[e->signals++ % MAX_DEPTH] = wr_id;
		if (rig.sends == AT_ONCE)
			complete_send(e);
	}
}

static int fake_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	arrive((struct end *)qp, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length, wr->wr_id,
		wr->send_flags);
	return 0;
}

/* ---- the same by ibv_qp_ex ---- */

static struct end *posting(struct ibv_qp_ex *qp, unsigned calls)
{
	struct end *e = (struct end *)qp;

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
	assert_true(len <= rig.c.inline_max);
	arrive(posting(qp, 2), bytes, len, qp->wr_id, qp->wr_flags);
}

static void fake_wr_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t len)
{
	assert_true(len > rig.c.inline_max);
	assert_int_equal(lkey, rig.mr.lkey);
	arrive(posting(qp, 2), (void *)(uintptr_t)addr, len, qp->wr_id, qp->wr_flags);
}

static int fake_wr_complete(struct ibv_qp_ex *qp)
{
	posting(qp, 3)->posting = 0;
	return 0;
}

static int fake_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct end *e = (struct end *)qp;

	*bad = NULL;
	for (; wr; wr = wr->next) {
		assert_ptr_equal((void *)(uintptr_t)wr->wr_id, &rig.c.connection[e - rig.end]);
		e->receives++;
	}
	assert_true(e->receives <= 2u * rig.c.depth);
	return 0;
}

/* Short ones, and such that the library has no case of their own for. Returns the length. */
static size_t key_of(uint32_t k, uint8_t key[static KEY_MAX])
{
	static const size_t lengths[] = {4, 16, 9, 24};

	memset(key, 'k', KEY_MAX);
	memcpy(key, &k, sizeof(k));
	return lengths[k % COUNT(lengths)];
}

static int submit_get(uint32_t k, uint64_t cookie)
{
	uint8_t key[KEY_MAX];
	size_t len = key_of(k, key);

	return reddn_get_submit(&rig.c, key, len, cookie);
}

static void value_of(uint32_t key, uint32_t version, uint32_t *val, size_t *len)
{
	*len = 4 * (2 + (key * 7 + version) % 40);
	for (size_t i = 0; i < *len / 4; i++)
		val[i] = i % 2 ? version : key;
}

/* One operation of the writer, on any key; the stable ones are never deleted. */
static void write_once(void)
{
	uint32_t k = rnd() % KEYS, val[64];
	bool delete = k >= STABLE && rnd() % 2;
	uint8_t key[KEY_MAX];
	size_t len, key_len = key_of(k, key);

	rig.clock++;
	if (delete &&rig.key[k].present) {
		assert_int_equal(reddn_table_delete(rig.t, key, key_len), 0);
		rig.key[k].present = false;
	} else if (!delete) {
		value_of(k, rig.key[k].version + 1, val, &len);
		assert_int_equal(reddn_table_put(rig.t, key, key_len, val, len), 0);
		if (!rig.key[k].present)
			rig.key[k].last_absent = rig.clock;
		rig.key[k].present = true;
		rig.key[k].version++;
	}
}

static void maybe_write(void)
{
	while (rig.writing && rnd() % 3)
		write_once();
}

/* A connection that has a request; or NULL */
static struct end *pending(void)
{
	unsigned from = rnd() % CONNECTIONS;

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct end *e = &rig.end[(from + i) % CONNECTIONS];

		if (e->served < e->arrived)
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
		int first = rnd() % 2;

		for (int i = 0; i < 6; i++)
			fp = fp << 8 | *arg++;
		for (int i = 0; i < c->geo.offset_len; i++)
			off = off << 8 | *arg++;
		assert_true(off < BUCKETS * 16 && off % 16 == 0);
		for (int i = 0; i < 2; i++) {
			int w = i ^ first;

			maybe_write();
			words[2 * p + w] = ((uint64_t *)(rig.map + rig.st.buckets_off + off))[w];
		}
		if (words[2 * p + 1] == reddn_mark(fp)) {
			uint32_t len = reddn_locator_len(words[2 * p]);
			const uint8_t *from = rig.map + rig.st.heap_off + reddn_locator_off(words[2 * p]);

			for (uint32_t at = 0; at < len; at += 8) {
				/* Now and then so much that the memory under this record is used again. */
				for (int n = rnd() % 256 ? 0 : 400; rig.writing && n > 0; n--)
					write_once();
				memcpy(record + at, from + at, len - at < 8 ? len - at : 8);
			}
		}
	}
	return arg;
}

static uint8_t *slot_of(const struct end *e)
{
	const struct reddn *c = &rig.c;

	return reddn_slot_mem(c, (uint64_t)(e - rig.end) * c->depth + e->served % c->depth);
}

/* The NIC begins with the oldest request of a connection, one word of memory at a time. */
static void serve_half(struct end *e)
{
	const uint8_t *arg = e->wire[e->served % MAX_DEPTH];

	if (e->halfway)
		return;
	e->halfway = true;
	for (unsigned k = 0; k < rig.c.geo.keys; k++)
		arg = serve_key(arg, slot_of(e) + REDDN_SLOT_RECORD + k * RECORD);
}

/* And ends with it. In between it may have served others, of other connections. */
static void serve_of(struct end *e)
{
	assert_non_null(e);
	serve_half(e);
	maybe_write();
	memcpy(slot_of(e), rig.map + rig.st.live_off, 64);
	e->halfway = false;
	e->receives--;
	push((struct ibv_wc){.wr_id = (uintptr_t)&rig.c.connection[e - rig.end],
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm_data = htonl((uint32_t)e->served)});
	e->served++;
}

static void serve(void)
{
	serve_of(pending());
}

static void start_several(unsigned keys, uint16_t connections, unsigned depth, bool raw, uint64_t heap)
{
	struct reddn *c = &rig.c;

	memset(&rig, 0, sizeof(rig));
	rig.fd = memfd_create("table", MFD_CLOEXEC);
	assert_int_equal(reddn_table_create_fd(&rig.t, rig.fd,
				 &(struct reddn_table_options){.buckets = BUCKETS,
					 .heap_size = heap,
					 .max_key = KEY_MAX,
					 .max_value = 256,
					 .seed = 5},
				 NULL, 0),
		0);
	reddn_table_stat(rig.t, &rig.st);
	rig.map = mmap(NULL, rig.st.file_size, PROT_READ, MAP_SHARED, rig.fd, 0);
	for (uint32_t k = 0; k < STABLE; k++) {
		uint8_t key[KEY_MAX];
		size_t len, key_len = key_of(k, key);
		uint32_t val[64];

		value_of(k, 0, val, &len);
		assert_int_equal(reddn_table_put(rig.t, key, key_len, val, len), 0);
		rig.key[k].present = true;
	}
	rig.events.fd = eventfd(0, EFD_CLOEXEC);
	rig.verbs.ops.poll_cq = fake_poll;
	rig.verbs.ops.post_send = fake_send;
	rig.verbs.ops.post_recv = fake_recv;
	rig.cq.context = &rig.verbs;
	c->info = (struct reddn_info){.shape = raw ? REDDN_OPAQUE : REDDN_TABLE,
		.connections = connections,
		.slot_size = REDDN_SLOT_RECORD + keys * RECORD,
		.reply_max = REDDN_SLOT_RECORD + keys * RECORD,
		.keys = keys,
		.request_len = raw ? 100 : keys * KEY_BYTES};
	c->geo = (struct reddn_geometry){.seed = 5,
		.buckets = BUCKETS,
		.max_key = KEY_MAX,
		.max_value = 256,
		.offset_len = 3,
		.keys = (uint8_t)keys,
		.stride = RECORD};
	c->key_room = 256;
	c->retry_ms = 600000;
	c->events = &rig.events;
	c->depth = depth;
	c->cq = &rig.cq;
	rig.cq_ex = fake_cq_ex;
	c->cq_ex = extended ? &rig.cq_ex : NULL;
	c->mr = &rig.mr;
	c->inline_max = REDDN_WIRE_INLINE;
	assert_int_equal(reddn_requests_init(c), 0);
	for (unsigned i = 0; i < connections; i++) {
		rig.end[i].qp_ex = (struct ibv_qp_ex){.wr_start = fake_wr_start,
			.wr_send = fake_wr_send,
			.wr_set_inline_data = fake_wr_inline,
			.wr_set_sge = fake_wr_sge,
			.wr_complete = fake_wr_complete};
		rig.end[i].qp.context = &rig.verbs;
		c->connection[i].id = &rig.end[i].id;
		c->connection[i].qp = &rig.end[i].qp;
		c->connection[i].qp_ex = extended ? &rig.end[i].qp_ex : NULL;
		assert_int_equal(reddn_post_receives(&c->connection[i]), 0);
		assert_int_equal(reddn_post_receives(&c->connection[i]), 0);
	}
	assert_int_equal(reddn_keys_init(c), 0);
	assert_int_equal(c->usual_key, extended && !raw && keys == 1 ? KEY_MAX : 0);
}

static void start(unsigned depth, bool raw, uint64_t heap)
{
	start_several(1, 1, depth, raw, heap);
}

static unsigned long sent(void)
{
	struct reddn_info info;

	reddn_get_info(&rig.c, &info);
	return info.sent;
}

static void stop(void)
{
	reddn_requests_deinit(&rig.c);
	reddn_table_close(rig.t);
	munmap(rig.map, rig.st.file_size);
	close(rig.fd);
	close(rig.events.fd);
}

struct asked {
	bool busy;
	uint32_t key;
	uint32_t version;
	uint64_t clock;
};

/* The result must have been right at some moment between the submission and now. */
static void judge(const struct reddn_result *res, const struct asked *a)
{
	uint32_t k = a->key;

	assert_true(a->busy);
	if (res->status == 0) {
		uint32_t want[64], version;
		size_t len;

		assert_true(res->length >= 8);
		/* behind a key of any length */
		memcpy(&version, (const uint8_t *)res->value + 4, sizeof(version));
		assert_true(version >= a->version);
		assert_true(version <= rig.key[k].version);
		value_of(k, version, want, &len);
		assert_int_equal(res->length, len);
		assert_memory_equal(res->value, want, len);
	} else {
		assert_int_equal(res->status, REDDN_MISS);
		assert_true(k >= STABLE);
		assert_true(!rig.key[k].present || rig.key[k].last_absent >= a->clock);
	}
}

/* Submits a get of some keys, from asked[i] on. Returns how many; 0: there was no room. */
static int ask(struct asked *asked, unsigned i, unsigned all)
{
	uint8_t bytes[MOST_KEYS][KEY_MAX];
	struct reddn_key keys[MOST_KEYS];
	unsigned n = 0, most = 1 + rnd() % rig.c.info.keys;
	int r;

	for (; n < most && i + n < all && !asked[i + n].busy; n++) {
		struct asked *a = &asked[i + n];

		*a = (struct asked){false, rnd() % KEYS, 0, rig.clock};
		a->version = rig.key[a->key].version;
		keys[n] = (struct reddn_key){bytes[n], key_of(a->key, bytes[n])};
	}
	if (!n)
		return 0;
	r = n == 1 ? reddn_get_submit(&rig.c, keys[0].key, keys[0].key_len, i)
		   : reddn_mget_submit(&rig.c, keys, n, i);
	if (r == -EAGAIN)
		return 0;
	assert_int_equal(r, 0);
	for (unsigned k = 0; k < n; k++)
		asked[i + k].busy = true;
	return (int)n;
}

/* Gets at random moments, a writer at random moments, and the NIC at random moments between. */
static void property(unsigned seed, unsigned keys, uint16_t connections, unsigned depth, unsigned gets)
{
	static _Thread_local struct asked asked[CONNECTIONS * MAX_DEPTH * MOST_KEYS];
	unsigned all = connections * depth * keys;
	struct reddn_result res[MAX_DEPTH];
	unsigned done = 0, hits = 0, busy = 0, refusals = 0, most = 0;

	/* A heap so small that freed memory comes back within the life of a request. */
	start_several(keys, connections, depth, false, 24000 + 80 * KEYS);
	memset(asked, 0, sizeof(asked));
	rng = seed * 0x9e3779b97f4a7c15ull;
	rig.writing = true;
	rig.sends = LATE;
	while (done < gets) {
		unsigned i = rnd() % all;
		int n;

		maybe_write();
		switch (rnd() % 3) {
		case 0:
			n = ask(asked, i, all);
			refusals += n == 0;
			most = (unsigned)n > most ? (unsigned)n : most;
			busy += (unsigned)n;
			break;
		case 1:
			if (pending() && rnd() % 2)
				serve_half(pending());
			else if (pending())
				serve();
			break;
		case 2:
			/* Now and then a caller takes fewer results than there are. */
			n = reddn_poll(&rig.c, res, 1 + (int)(rnd() % MAX_DEPTH));
			assert_true(n >= 0);
			/* Results stay as they are until the next poll, whatever happens. */
			maybe_write();
			while (pending() && rnd() % 2)
				serve();
			for (int k = 0; k < n; k++) {
				judge(&res[k], &asked[res[k].cookie]);
				hits += res[k].status == 0;
				asked[res[k].cookie].busy = false;
				busy--;
				done++;
			}
			break;
		}
		assert_int_equal(busy, rig.c.busy);
	}
	reddn_table_stat(rig.t, &rig.st);
	print_message("%u keys, %u x depth %2u: %u gets, %u hits, %lu sent, %lu moved, %lu overtaken, %u "
		      "refused, %lu "
		      "moves\n",
		keys, connections, depth, done, hits, sent(), (unsigned long)rig.c.info.retries_moved,
		(unsigned long)rig.c.info.retries_overtaken, refusals, (unsigned long)rig.st.moves / 2);
	assert_int_equal(most, keys);
	assert_true(rig.c.info.retries_moved > 0);
	assert_true(rig.c.info.retries_overtaken > 0);
	for (unsigned i = 0; i < connections; i++)
		assert_true(rig.end[i].served > gets / (2 * connections * keys));
	stop();
}

static void test_property(void **state)
{
	static const unsigned depths[] = {1, 2, 3, 16, 64};

	(void)state;
	for (unsigned i = 0; i < COUNT(depths); i++)
		property(i + 1, 1, 1, depths[i], 40000);
}

static void test_several_connections(void **state)
{
	(void)state;
	property(21, 1, CONNECTIONS, 1, 20000);
	property(22, 1, 2, 16, 20000);
	property(23, 1, CONNECTIONS, 16, 20000);
}

static void test_several_keys(void **state)
{
	(void)state;
	property(31, MOST_KEYS, 1, 1, 20000);
	property(32, 3, 1, 4, 20000);
	property(33, MOST_KEYS, CONNECTIONS, 16, 20000);
}

static void *property_in_thread(void *seed)
{
	property(*(unsigned *)seed, 2, 2, 16, 4000);
	return NULL;
}

/* reddn.h: different handles are independent. ThreadSanitizer sees whether they share anything. */
static void test_threads(void **state)
{
	unsigned seeds[3] = {11, 12, 13};
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, property_in_thread, &seeds[i]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void test_depth_and_held(void **state)
{
	struct reddn_result res[4];

	(void)state;
	start(2, false, 100000);
	for (uint32_t k = 0; k < 2; k++)
		assert_int_equal(submit_get(k, k), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_poll(&rig.c, res, 4), 0);
	serve();
	serve();
	assert_int_equal(reddn_poll(&rig.c, res, 1), 1);
	assert_int_equal(res[0].cookie, 0);
	/* The result of slot 0 is with the caller. */
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_poll(&rig.c, res, 4), 1);
	assert_int_equal(res[0].cookie, 1);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	/* So is the result of slot 1, until it is released. */
	reddn_release(&rig.c);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_get_submit(&rig.c, "", 0, 9), -EINVAL);
	assert_int_equal(reddn_get_submit(&rig.c, "123456789012345678901234567890123", 33, 9), -EMSGSIZE);
	assert_int_equal(reddn_submit(&rig.c, "short", 5, 9), -EINVAL);
	stop();
}

/* One get at a time, as long as the client has room. Returns how many */
static unsigned gets_with_room(unsigned most)
{
	struct reddn_result res;
	unsigned n = 0;

	for (; n < most && submit_get(0, n) == 0; n++) {
		serve();
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, n);
		reddn_release(&rig.c);
	}
	return n;
}

/* The CQE of a SEND may come later than the replies to it and to the ones behind it */
static void test_late_sends(void **state)
{
	enum { DEPTH = 4 };
	struct reddn_result res;

	(void)state;
	start(DEPTH, false, 100000);
	rig.sends = NEVER;
	/* each slot is free, and the next one would be signaled: there is no room for those behind it */
	assert_int_equal(gets_with_room(100), 3 * DEPTH - 1);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(submit_get(0, 0), -EAGAIN);
	/* one CQE frees as many as are between two */
	complete_send(&rig.end[0]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(gets_with_room(100), DEPTH);
	rig.sends = AT_ONCE;
	while (rig.end[0].completed < rig.end[0].signals)
		complete_send(&rig.end[0]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(gets_with_room(2 * DEPTH), 2 * DEPTH);
	stop();
}

static void test_first_miss_asks_twice(void **state)
{
	struct reddn_result res;
	uint32_t absent = KEYS - 1;

	(void)state;
	start(4, false, 100000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reddn_get_submit(&rig.c, &absent, 4, 7), 0);
		serve();
		if (i == 0) {
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
			serve();
		}
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, 7);
		assert_int_equal(res.status, REDDN_MISS);
	}
	assert_int_equal(sent(), 3);
	stop();
}

/*
 * What is read after a move does not prove that a key is absent whose buckets were read before it: not even
 * if the reply of another connection, which came first, has shown the move.
 */
static void test_miss_beside_others(void **state)
{
	struct reddn_result res;
	struct end *first;
	uint8_t *map;

	(void)state;
	start_several(1, 2, 4, false, 100000);
	/* what is known before */
	assert_int_equal(submit_get(0, 0), 0);
	serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(submit_get(KEYS - 1, 1), 0);
	first = pending();
	serve_half(first);
	map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
	*(uint64_t *)(map + rig.st.live_off) += 2;
	munmap(map, rig.st.file_size);
	assert_int_equal(submit_get(2, 2), 0);
	serve_of(&rig.end[first == &rig.end[0]]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 2);
	serve_of(first);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(rig.c.info.retries_moved, 1);
	serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 1);
	assert_int_equal(res.status, REDDN_MISS);
	stop();
}

/* A record that never verifies, and a table that never stands still, end in an error after retry_ms. */
static void test_gives_up(void **state)
{
	struct reddn_result res;
	uint32_t k = 3;
	uint8_t *map;
	int n;

	(void)state;
	start(4, false, 100000);
	rig.c.retry_ms = 1;
	map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
	for (uint64_t i = 64; i < 64 * 200; i++)
		map[rig.st.heap_off + i] ^= 0x10;
	assert_int_equal(submit_get(k, 1), 0);
	do {
		serve();
		n = reddn_poll(&rig.c, &res, 1);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(res.status, -EBADMSG);
	assert_true(rig.c.info.retries_overtaken > 0);
	/* A writer that died in a move. */
	map[rig.st.live_off] |= 1;
	k = KEYS - 1;
	assert_int_equal(submit_get(k, 1), 0);
	do {
		serve();
		n = reddn_poll(&rig.c, &res, 1);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(res.status, -EAGAIN);
	/* Another table in its place. */
	map[rig.st.live_off] &= 0xfe;
	map[rig.st.live_off + 16] ^= 1;
	assert_int_equal(submit_get(k, 1), 0);
	serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, -ESTALE);
	munmap(map, rig.st.file_size);
	stop();
}

/* Every outstanding request gets the reason once; then reddn_poll returns it too. */
static void expect_broken(int error, unsigned outstanding)
{
	struct reddn_result res[MAX_DEPTH];
	unsigned seen = 0;
	uint64_t cookies = 0;
	int n;

	while ((n = reddn_poll(&rig.c, res, 3)) > 0) {
		for (int i = 0; i < n; i++) {
			assert_int_equal(res[i].status, error);
			cookies |= 1ull << res[i].cookie;
			seen++;
		}
		assert_true(seen <= outstanding);
	}
	assert_int_equal(seen, outstanding);
	assert_int_equal(__builtin_popcountll(cookies), outstanding);
	assert_int_equal(n, error);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 1), error);
	assert_true(strlen(reddn_errmsg(&rig.c)) > 5);
}

static void submit(unsigned n)
{
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(submit_get(k, k), 0);
}

static void test_broken(void **state)
{
	struct reddn_result res;

	(void)state;
	start(8, false, 100000);
	submit(7);
	push((struct ibv_wc){.status = IBV_WC_RETRY_EXC_ERR, .opcode = IBV_WC_SEND});
	for (int i = 0; i < 12; i++)
		push((struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
	expect_broken(-EIO, 7);
	stop();

	start(8, false, 100000);
	submit(5);
	push((struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
	expect_broken(-ECONNRESET, 5);
	stop();

	/* What arrived before the server hung up still counts. */
	start(8, false, 100000);
	submit(5);
	serve();
	rig.c.hangup = true;
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, 0);
	assert_int_equal(res.cookie, 0);
	expect_broken(-ECONNRESET, 4);
	stop();

	/* A reply to a request that was never made; a reply out of order. */
	start(8, false, 100000);
	push((struct ibv_wc){.wr_id = first_id(), .opcode = IBV_WC_RECV_RDMA_WITH_IMM});
	expect_broken(-EPROTO, 0);
	stop();
	start(8, false, 100000);
	submit(5);
	push((struct ibv_wc){.wr_id = first_id(), .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .imm_data = htonl(1)});
	expect_broken(-EPROTO, 5);
	stop();
}

static void test_raw(void **state)
{
	struct reddn_result res[4];
	uint8_t arg[100];

	(void)state;
	start(3, true, 100000);
	for (int round = 0; round < 10; round++) {
		memset(rig.c.area, 0xdd, 3 * SLOT);
		for (int i = 0; i < 3; i++) {
			memset(arg, round * 3 + i, sizeof(arg));
			assert_int_equal(reddn_submit(&rig.c, arg, sizeof(arg), (uint64_t)i), 0);
		}
		assert_int_equal(reddn_submit(&rig.c, arg, sizeof(arg), 9), -EAGAIN);
		assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EINVAL);
		for (int i = 0; i < 3; i++) {
			struct end *e = rig.end;
			uint8_t *slot = reddn_slot_mem(&rig.c, e->served % 3);

			assert_int_equal(e->wire[e->served % MAX_DEPTH][99], round * 3 + i);
			assert_int_equal(slot[0] | slot[SLOT - 1], 0);
			slot[5] = (uint8_t)i;
			e->receives--;
			push((struct ibv_wc){.wr_id = first_id(),
				.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				.imm_data = htonl((uint32_t)e->served++)});
		}
		assert_int_equal(reddn_poll(&rig.c, res, 4), 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(res[i].cookie, i);
			assert_int_equal(res[i].length, SLOT);
			assert_int_equal(((const uint8_t *)res[i].value)[5], i);
		}
		assert_int_equal(reddn_poll(&rig.c, res, 4), 0);
	}
	stop();
}

/* test-request [TEST]: all, or one */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property),
		cmocka_unit_test(test_several_connections),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_depth_and_held),
		cmocka_unit_test(test_late_sends),
		cmocka_unit_test(test_first_miss_asks_twice),
		cmocka_unit_test(test_miss_beside_others),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_raw),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	extended = true;
	return failed + cmocka_run_group_tests_name("by ibv_cq_ex", tests, NULL, NULL);
}
