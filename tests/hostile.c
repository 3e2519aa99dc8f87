/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile - a client that wants what is not its own, on plain verbs. It is told more than any attacker knows: the table, and the keys,
 * addresses and queue pairs of the server.
 *
 *   hostile ADDRESS PORT OFFLOAD canary FILE           asks until SIGTERM, and wants right answers and nothing else
 *   hostile ADDRESS PORT OFFLOAD arguments FILE        arguments at the edges of windows, and between buckets
 *   hostile ADDRESS PORT OFFLOAD lengths FILE          requests of every wrong length
 *   hostile ADDRESS PORT OFFLOAD bytes FILE SEED COUNT requests at random
 *   hostile ADDRESS PORT OFFLOAD any SEED COUNT        requests at random, of any offload
 *   hostile ADDRESS PORT OFFLOAD keys KEY:ADDRESS:LENGTH...   memory of the server and of others, by its own keys
 *   hostile ADDRESS PORT OFFLOAD slots KEY:ADDRESS:LENGTH     replies into memory of somebody else
 *   hostile ADDRESS PORT OFFLOAD queues QPN...         packets into queue pairs of others
 *   hostile ADDRESS PORT OFFLOAD flood|qp-error
 *   hostile ADDRESS PORT OFFLOAD storm COUNT           connections that come and go, in every way
 *   hostile ADDRESS PORT OFFLOAD half-open COUNT       connections that are never completed, held until standard input ends
 *   hostile ADDRESS PORT OFFLOAD tokens KEYFILE        tokens that are forged, stale, of another request, and replayed
 *   hostile ADDRESS PORT OFFLOAD connects SEED COUNT   private data at random
 *
 * Exit status 0: nothing was got or changed but the client's own reply slots.
 */
#include "libclient/histogram.h"
#include "libclient/table-format.h"
#include "libclient/token.h"
#include "tests/raw-client.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	ITS_ID = 77,
	NO_QPN = 0x800000,
	FP = 7,
	BUCKET_READ = 15,
	FILLER = 0xa5,
	FLOOD = 600,
	ENTRIES = 8,
	MEMORY = RAW_DEPTH * RAW_SLOT
};

static const char *address, *port, *offload;
static uint64_t rng = 1;

static uint64_t rnd(uint64_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 11) % below;
}

static void prepare(struct raw_client *c)
{
	raw_prepare(c, address, port, offload);
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

/* ---- the table, as the server has it ------------------------------------------------------------------------- */

struct table {
	const uint8_t *file, *buckets, *heap;
	uint64_t window, heap_size;
};

static struct table table_map(const char *path)
{
	const struct reddn_table_header *h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct table t;

	raw_need(fd >= 0 && fstat(fd, &st) == 0, path);
	t.file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	raw_need(t.file != MAP_FAILED, path);
	close(fd);
	h = (const struct reddn_table_header *)t.file;
	t.buckets = t.file + h->buckets_off;
	t.window = h->buckets * sizeof(struct reddn_bucket);
	t.heap = t.file + h->heap_off;
	t.heap_size = h->heap_size;
	return t;
}

/* What the chain takes from the bucket at byte @at */
struct seen {
	uint8_t fp[FP]; /* as a request has it: the most significant byte first */
	uint64_t len, off;
};

static struct seen look(const struct table *t, uint64_t at)
{
	const uint8_t *b = t->buckets + at;
	struct seen s = {{0}, 0, 0};

	for (unsigned i = 0; i < 3; i++)
		s.len = s.len << 8 | b[i];
	for (unsigned i = 3; i < 8; i++)
		s.off = s.off << 8 | b[i];
	for (unsigned i = 0; i < FP; i++)
		s.fp[i] = b[14 - i];
	return s;
}

/* ---- requests and what must come of them --------------------------------------------------------------------- */

/* Puts probe @p into the request: a fingerprint, and an offset of as many bytes as the server says. */
static void put_probe(struct raw_client *c, unsigned p, const uint8_t *fp, uint64_t at)
{
	unsigned width = c->rep.table.offset_len;
	uint8_t *r = raw_request(c) + p * (FP + width);

	memcpy(r, fp, FP);
	for (unsigned i = 0; i < width; i++)
		r[FP + i] = (uint8_t)(at >> 8 * (width - 1 - i));
}

/*
 * What the slots must hold after the request in @c has been answered in slot @slot. False if it cannot be answered: it leads
 * out of the window, or what lies there leads out of the heap or of the client's memory.
 */
static bool model(struct raw_client *c, const struct table *t, unsigned slot, uint8_t *want)
{
	unsigned width = c->rep.table.offset_len;
	uint64_t own = (uint64_t)MEMORY + RAW_REQUEST - (uint64_t)slot * RAW_SLOT - REDDN_SLOT_RECORD;

	for (unsigned p = 0; p < c->rep.table.probes; p++) {
		const uint8_t *r = raw_request(c) + p * (FP + width);
		uint64_t at = 0;
		struct seen s;

		for (unsigned i = 0; i < width; i++)
			at = at << 8 | r[FP + i];
		if (at + BUCKET_READ > t->window)
			return false;
		s = look(t, at);
		if (memcmp(s.fp, r, FP) != 0)
			continue;
		if (s.len == 0 || s.off + s.len > t->heap_size || s.len > own)
			return false;
		memcpy(want + slot * RAW_SLOT + REDDN_SLOT_RECORD, t->heap + s.off, s.len);
	}
	memcpy(want + slot * RAW_SLOT + REDDN_SLOT_LIVE, t->file + offsetof(struct reddn_table_header, live),
		sizeof(struct reddn_table_live));
	return true;
}

/* Whether a reply is among what has completed */
static bool is_answered(struct raw_client *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			return true;
	return false;
}

struct tally {
	unsigned connects, answers, refusals;
};

/*
 * Sends the request in @c in slot @*slot and compares all slots with what they must hold. If there can be no answer, the
 * server must end the session; the client then connects again.
 */
static void attempt(struct raw_client *c, const struct table *t, unsigned *slot, struct tally *tally)
{
	static uint8_t want[MEMORY + RAW_REQUEST];
	enum ibv_wc_status status;
	bool answered;

	memset(c->mem, FILLER, MEMORY);
	memcpy(want, c->mem, sizeof want);
	answered = model(c, t, *slot, want);
	raw_post_recvs(c, 1);
	raw_post_sends(c, 1, raw_arg_len(c));
	if (!answered) {
		uint8_t request[RAW_REQUEST];

		raw_expect_disconnect(c);
		raw_need(!is_answered(c), "an answer where there can be none");
		/* A step before the one that failed may have written what it is allowed to */
		for (unsigned i = 0; i < RAW_DEPTH; i++)
			raw_need(i == *slot ||
					 memcmp(c->mem + i * RAW_SLOT, want + i * RAW_SLOT, RAW_SLOT) == 0,
				"another slot has changed");
		memcpy(request, raw_request(c), sizeof request);
		raw_finish(c);
		prepare(c);
		raw_start(c);
		memcpy(raw_request(c), request, sizeof request);
		*slot = 0;
		tally->refusals++;
		tally->connects++;
		return;
	}
	raw_need(raw_replies(c, 1, &status) == 1, "no answer");
	raw_need(memcmp(c->mem, want, sizeof want) == 0, "the slots do not hold what they must");
	*slot = (*slot + 1) % RAW_DEPTH;
	tally->answers++;
}

static void tell(const struct tally *t)
{
	printf("%s: %u answers, %u sessions ended\n", raw_case, t->answers, t->refusals);
}

static int run_arguments(int argc, char **argv)
{
	static const uint8_t zero[FP], ones[FP] = {255, 255, 255, 255, 255, 255, 255},
				       one[FP] = {0, 0, 0, 0, 0, 0, 1};
	const struct table t = table_map(argv[0]);
	const uint64_t w = t.window;
	const uint64_t edges[] = {0, 1, 8, 15, 16, 17, w / 2 - 1, w - 17, w - 16, w - 15, w - 14, w - 8,
		w - 1, w, w + 1, w + 4096, UINT32_MAX, 1ull << 39, UINT64_MAX};
	struct raw_client c;
	struct tally tally = {0};
	unsigned slot = 0;

	(void)argc;
	prepare(&c);
	raw_start(&c);
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
		for (unsigned p = 0; p < c.rep.table.probes; p++) {
			const uint8_t *fps[] = {zero, ones, one};

			for (size_t f = 0; f < 3; f++) {
				put_probe(&c, 0, ones, 0);
				put_probe(&c, 1, ones, 16);
				put_probe(&c, p, fps[f], edges[i]);
				attempt(&c, &t, &slot, &tally);
			}
		}
	/* Between the buckets, with the bytes that lie there as fingerprint: the step that follows takes what it finds */
	for (uint64_t bucket = 0, n = 0; bucket < w - 16 && n < ENTRIES; bucket += 16) {
		const struct seen s = look(&t, bucket);

		if (memcmp(s.fp, zero, FP) == 0)
			continue;
		n++;
		for (unsigned d = 0; d < 16; d++) {
			const struct seen between = look(&t, bucket + d);

			put_probe(&c, 0, between.fp, bucket + d);
			put_probe(&c, 1, ones, 0);
			attempt(&c, &t, &slot, &tally);
		}
	}
	raw_need(tally.answers > 50 && tally.refusals > 20, "too little was tried");
	tell(&tally);
	raw_finish(&c);
	return 0;
}

static int run_bytes(int argc, char **argv)
{
	const struct table t = table_map(argv[0]);
	struct raw_client c;
	struct tally tally = {0};
	unsigned slot = 0;

	raw_need(argc == 3, "FILE SEED COUNT");
	rng = number(argv[1]) * 2 + 1;
	prepare(&c);
	raw_start(&c);
	for (uint64_t n = number(argv[2]); n > 0; n--) {
		unsigned half = FP + c.rep.table.offset_len;

		for (uint32_t i = 0; i < raw_arg_len(&c); i++)
			raw_request(&c)[i] = (uint8_t)rnd(256);
		/* Most offsets inside, else nothing but the window is ever tried */
		for (unsigned p = 0; p < c.rep.table.probes && rnd(16); p++) {
			uint64_t at = rnd(8) ? rnd(t.window / 16) * 16 : rnd(t.window - 15);
			const struct seen s = look(&t, at);

			put_probe(&c, p, rnd(2) ? s.fp : raw_request(&c) + p * half, at);
		}
		attempt(&c, &t, &slot, &tally);
	}
	tell(&tally);
	raw_finish(&c);
	return 0;
}

/* Whatever the offload: an answer in its slot and nowhere else, or the end of the session */
static int run_any(int argc, char **argv)
{
	static uint8_t before[MEMORY + RAW_REQUEST];
	struct raw_client c;
	struct tally tally = {0};
	unsigned slot = 0;

	raw_need(argc == 2, "SEED COUNT");
	rng = number(argv[0]) * 2 + 1;
	prepare(&c);
	raw_start(&c);
	for (uint64_t n = number(argv[1]); n > 0; n--) {
		bool wild = rnd(8) == 0;
		struct pollfd over = {.fd = c.channel->fd, .events = POLLIN};
		bool answered = false;

		for (uint32_t i = 0; i < raw_arg_len(&c); i++)
			raw_request(&c)[i] = wild ? (uint8_t)rnd(256) : 0;
		raw_request(&c)[rnd(raw_arg_len(&c))] = (uint8_t)rnd(256);
		memset(c.mem, FILLER, MEMORY);
		memcpy(before, c.mem, sizeof before);
		raw_post_recvs(&c, 1);
		raw_post_sends(&c, 1, raw_arg_len(&c));
		for (unsigned ms = 0; !answered && poll(&over, 1, 0) == 0; ms++) {
			raw_need(ms < RAW_PATIENCE_MS, "neither an answer nor an end");
			answered = is_answered(&c);
			if (!answered)
				usleep(1000);
		}
		memcpy(before + slot * RAW_SLOT, c.mem + slot * RAW_SLOT, be32toh(c.rep.reply_max));
		raw_need(memcmp(before, c.mem, sizeof before) == 0, "more than the reply has changed");
		slot = (slot + 1) % RAW_DEPTH;
		tally.answers += answered;
		if (!answered) {
			raw_finish(&c);
			prepare(&c);
			raw_start(&c);
			slot = 0;
			tally.refusals++;
		}
	}
	tell(&tally);
	raw_finish(&c);
	return 0;
}

/*
 * A request that is too short is taken for one whose last bytes are those that its instance was armed with: 0. It learns what such a request
 * would learn. One that is too long is not taken.
 */
static int run_lengths(int argc, char **argv)
{
	static uint8_t want[MEMORY + RAW_REQUEST];
	const struct table t = table_map(argv[0]);
	struct raw_client c;
	uint32_t len, n;

	(void)argc;
	prepare(&c);
	raw_start(&c);
	n = raw_arg_len(&c);
	raw_finish(&c);
	for (len = 0; len <= n + 2; len++) {
		enum ibv_wc_status status;
		unsigned got;

		prepare(&c);
		raw_start(&c);
		/* One good request first: what is left of it must not be seen by the next */
		for (unsigned p = 0; p < 2; p++)
			put_probe(&c, p, look(&t, 16 * p).fp, 16 * p);
		raw_post_recvs(&c, 2);
		raw_post_sends(&c, 1, n);
		raw_need(raw_replies(&c, 1, &status) == 1, "no answer to a good request");
		memset(c.mem, FILLER, MEMORY);
		memset(raw_request(&c), 0, n);
		raw_post_sends(&c, 1, len);
		got = raw_replies(&c, 1, &status);
		if (len > n)
			raw_need(got == 0, "a request that is too long is answered");
		memcpy(want, c.mem, sizeof want);
		memset(want, FILLER, MEMORY);
		if (got == 1)
			raw_need(model(&c, &t, 1, want), "an answer that cannot be");
		raw_need(memcmp(want, c.mem, sizeof want) == 0, "the slots do not hold what they must");
		raw_finish(&c);
	}
	printf("%s: 0 to %u bytes\n", raw_case, n + 2);
	return 0;
}

/* ---- one-sided, with keys and addresses of the server -------------------------------------------------------- */

struct key {
	uint32_t key;
	uint64_t addr, len;
};

static struct key parse_key(const char *text)
{
	struct key k = {0};

	raw_need(sscanf(text, "%" SCNx32 ":%" SCNx64 ":%" SCNu64, &k.key, &k.addr, &k.len) == 3,
		"KEY:ADDRESS:LENGTH");
	return k;
}

static enum ibv_wc_status post_one(struct raw_client *c, struct ibv_send_wr *wr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)raw_request(c), len, c->mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = ITS_ID;
	wr->sg_list = &sge;
	wr->num_sge = len > 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	raw_need(ibv_post_send(c->id->qp, wr, &bad) == 0, "post");
	for (unsigned ms = 0; ms < RAW_PATIENCE_MS; ms++) {
		int r = ibv_poll_cq(c->cq, 1, &wc);

		raw_need(r >= 0, "the CQ cannot be polled");
		if (r > 0 && wc.wr_id == ITS_ID)
			return wc.status;
		if (r > 0)
			continue;
		usleep(1000);
	}
	raw_fail("no completion");
}

static void one_sided(const struct key *k, enum ibv_wr_opcode op, bool used)
{
	struct ibv_send_wr wr = {.opcode = op};
	struct raw_client c;
	uint8_t before[64];

	prepare(&c);
	raw_start(&c);
	if (used) {
		raw_post_recvs(&c, 2);
		memset(raw_request(&c), 0, raw_arg_len(&c));
		raw_post_sends(&c, 1, raw_arg_len(&c));
		raw_need(raw_replies(&c, 1, NULL) == 1, "no answer");
	}
	wr.wr.rdma.remote_addr = k->addr;
	wr.wr.rdma.rkey = k->key;
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = k->addr;
		wr.wr.atomic.rkey = k->key;
		wr.wr.atomic.compare_add = wr.wr.atomic.swap = 1;
	}
	memset(raw_request(&c), FILLER, sizeof before);
	memcpy(before, raw_request(&c), sizeof before);
	raw_need(post_one(&c, &wr, 8) != IBV_WC_SUCCESS, "the server's memory can be reached");
	raw_need(memcmp(before, raw_request(&c), sizeof before) == 0, "something came back");
	raw_finish(&c);
}

static int run_keys(int argc, char **argv)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned n = 0;

	for (int i = 0; i < argc; i++) {
		struct key k = parse_key(argv[i]);

		for (size_t o = 0; o < sizeof ops / sizeof *ops; o++, n++)
			one_sided(&k, ops[o], n & 1);
		/* Neighbours: key numbers are consecutive in many devices, their low byte is not random */
		k.key += 0x100 + 1;
		one_sided(&k, IBV_WR_RDMA_READ, true);
		n++;
	}
	printf("%s: %u attempts with %d keys\n", raw_case, n, argc);
	return 0;
}

/* Replies into memory of somebody else, by his key */
static int run_slots(int argc, char **argv)
{
	const struct key k = parse_key(argv[0]);
	struct raw_client c;

	(void)argc;
	prepare(&c);
	c.req.slot_addr = htobe64(k.addr);
	c.req.slot_rkey = htobe32(k.key);
	raw_start(&c);
	raw_post_recvs(&c, 1);
	memset(raw_request(&c), 0, raw_arg_len(&c));
	raw_post_sends(&c, 1, raw_arg_len(&c));
	raw_expect_disconnect(&c);
	raw_need(!is_answered(&c), "an answer");
	raw_finish(&c);
	printf("%s: refused by this client's own NIC\n", raw_case);
	return 0;
}

/* A SEND, and a SEND that invalidates a key, from a queue pair that says it is connected to one that is not its own */
static int run_queues(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct ibv_qp_attr attr;
		struct ibv_qp_init_attr init;
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
		struct raw_client c;

		prepare(&c);
		raw_start(&c);
		raw_need(ibv_query_qp(c.id->qp, &attr,
				 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init) == 0,
			"query");
		attr.qp_state = IBV_QPS_RESET;
		raw_need(ibv_modify_qp(c.id->qp, &attr, IBV_QP_STATE) == 0, "to RESET");
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		attr.pkey_index = 0;
		attr.qp_access_flags = 0;
		raw_need(ibv_modify_qp(c.id->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
			"to INIT");
		attr.qp_state = IBV_QPS_RTR;
		attr.dest_qp_num = (uint32_t)number(argv[i]);
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 1;
		raw_need(
			ibv_modify_qp(c.id->qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
			"to RTR");
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 8;
		attr.retry_cnt = 1;
		attr.rnr_retry = 1;
		attr.max_rd_atomic = 1;
		raw_need(ibv_modify_qp(c.id->qp, &attr,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
			"to RTS");
		raw_need(post_one(&c, &wr, raw_arg_len(&c)) != IBV_WC_SUCCESS,
			"a queue pair of somebody else takes a request");
		raw_finish(&c);
	}
	printf("%s: %d\n", raw_case, argc);
	return 0;
}

/* ---- too much, too often, too slow ----------------------------------------------------------------------------- */

static int run_flood(int argc, char **argv)
{
	struct raw_client c;

	(void)argc;
	(void)argv;
	prepare(&c);
	raw_start(&c);
	raw_post_recvs(&c, FLOOD);
	raw_post_sends(&c, FLOOD, raw_arg_len(&c));
	raw_need(raw_replies(&c, FLOOD, NULL) == FLOOD, "not every request is answered");
	raw_finish(&c);
	printf("%s: %d requests at once, %d are allowed\n", raw_case, FLOOD, RAW_DEPTH);
	return 0;
}

/* The client's queue pair fails at different moments of what it has asked for */
static int run_qp_error(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (unsigned round = 0; round < 20; round++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
		struct raw_client c;

		prepare(&c);
		raw_start(&c);
		raw_post_recvs(&c, 64);
		raw_post_sends(&c, round < 10 ? round : 64, raw_arg_len(&c));
		raw_replies(&c, round % 5, NULL);
		raw_need(ibv_modify_qp(c.id->qp, &attr, IBV_QP_STATE) == 0, "to ERR");
		raw_finish(&c);
	}
	printf("%s: 20 times\n", raw_case);
	return 0;
}

/* A connection that is asked for by an id without a queue pair: its owner is told of the answer, and would have to go on */
static struct rdma_cm_id *half_open(struct raw_client *c, uint32_t qpn, const void *data, size_t size)
{
	struct rdma_conn_param param = {.private_data = data,
		.private_data_len = (uint8_t)size,
		.rnr_retry_count = 7,
		.retry_count = 7,
		.qp_num = qpn};
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai = NULL;
	struct rdma_cm_id *id;

	raw_need(rdma_create_id(c->channel, &id, NULL, RDMA_PS_TCP) == 0 &&
			 rdma_getaddrinfo(address, port, &hints, &ai) == 0 &&
			 rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 2000) == 0,
		"resolve");
	raw_need(raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ADDR_RESOLVED &&
			 rdma_resolve_route(id, 2000) == 0 &&
			 raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED,
		"not resolved");
	rdma_freeaddrinfo(ai);
	raw_need(rdma_connect(id, &param) == 0, "connect");
	return id;
}

static int run_half_open(int argc, char **argv)
{
	enum { MOST = 200 };
	struct rdma_cm_id *ids[MOST];
	unsigned n = (unsigned)number(argv[0]), accepted = 0;
	struct raw_client c;

	(void)argc;
	raw_need(n <= MOST, "too many");
	prepare(&c);
	for (unsigned i = 0; i < n; i++) {
		ids[i] = half_open(&c, NO_QPN + i, &c.req, sizeof c.req);
		accepted += raw_event(&c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_CONNECT_RESPONSE;
	}
	raw_need(accepted == n, "not accepted");
	printf("%s: %u, none completed\n", raw_case, n);
	fflush(stdout);
	while (getchar() != EOF)
		;
	for (unsigned i = 0; i < n; i++)
		rdma_destroy_id(ids[i]);
	raw_finish(&c);
	return 0;
}

static int run_storm(int argc, char **argv)
{
	uint64_t count = number(argv[0]);

	(void)argc;
	for (uint64_t i = 0; i < count; i++) {
		struct raw_client c;

		prepare(&c);
		switch (i % 5) {
		case 0: /* as a good client does */
			raw_start(&c);
			rdma_disconnect(c.id);
			raw_event(&c, RAW_PATIENCE_MS);
			break;
		case 1: /* without a word */
			raw_start(&c);
			break;
		case 2: /* in the middle of a request */
			raw_start(&c);
			raw_post_recvs(&c, 4);
			raw_post_sends(&c, 4, raw_arg_len(&c));
			break;
		case 3: /* before the answer */ {
			struct rdma_conn_param param = {
				.private_data = &c.req, .private_data_len = sizeof c.req, .retry_count = 7};

			raw_need(rdma_connect(c.id, &param) == 0, "connect");
			break;
		}
		case 4: /* half-open, and gone */
			rdma_destroy_id(half_open(&c, c.id->qp->qp_num, &c.req, sizeof c.req));
			break;
		}
		raw_finish(&c);
	}
	printf("%s: %" PRIu64 " connections\n", raw_case, count);
	return 0;
}

static int run_connects(int argc, char **argv)
{
	unsigned accepted = 0, refused = 0;
	struct raw_client c;

	raw_need(argc == 2, "SEED COUNT");
	rng = number(argv[0]) * 2 + 1;
	prepare(&c);
	for (uint32_t n = (uint32_t)number(argv[1]); n > 0; n--) {
		uint8_t data[sizeof c.req];
		size_t size = rnd(8) ? sizeof data : rnd(sizeof data + 1);
		struct rdma_cm_id *id;
		int event;

		memcpy(data, &c.req, sizeof data);
		for (unsigned i = 1 + (unsigned)rnd(4); i > 0; i--)
			data[rnd(sizeof data)] = rnd(2) ? (uint8_t)rnd(256) : rnd(2) ? 0 : 255;
		id = half_open(&c, NO_QPN + n, data, size);
		event = raw_event(&c, RAW_PATIENCE_MS);
		if (event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
			accepted++;
		} else {
			raw_need(event == RDMA_CM_EVENT_REJECTED, "neither accepted nor refused");
			raw_need(be32toh(c.rej.magic) == REDDN_WIRE_MAGIC && c.rej.reason &&
					 memchr(c.rej.text, 0, sizeof c.rej.text),
				"refused without words");
			refused++;
		}
		rdma_destroy_id(id);
	}
	raw_finish(&c);
	printf("%s: %u accepted, %u refused\n", raw_case, accepted, refused);
	return 0;
}

/* ---- tokens -------------------------------------------------------------------------------------------------- */

static void own_address(uint8_t as[16])
{
	memset(as, 0, 10);
	memset(as + 10, 0xff, 2);
	raw_need(inet_pton(AF_INET, address, as + 12) == 1, "an IPv4 address is wanted");
}

/* Connects with the request as it is; true if that is accepted, false if it is refused for want of access */
static bool is_accepted(const struct reddn_wire_req *req)
{
	struct raw_client c;
	int event;

	prepare(&c);
	event = raw_connect(&c, req, sizeof *req);
	raw_need(event == RDMA_CM_EVENT_ESTABLISHED || event == RDMA_CM_EVENT_REJECTED, "no answer");
	if (event == RDMA_CM_EVENT_REJECTED)
		raw_need(c.rej.reason == REDDN_REJ_ACCESS, c.rej.text);
	raw_finish(&c);
	return event == RDMA_CM_EVENT_ESTABLISHED;
}

/* A token is good for what it was made for: every other use of it is tried */
static void try_other_uses(const struct raw_client *c, const struct token_key *key, const uint8_t as[16])
{
	static const size_t changed[] = {offsetof(struct reddn_wire_req, depth) + 1,
		offsetof(struct reddn_wire_req, slot_addr) + 6,
		offsetof(struct reddn_wire_req, slot_rkey) + 3,
		offsetof(struct reddn_wire_req, slot_size) + 2};
	struct reddn_wire_req req;
	uint8_t other[16];

	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
		req = c->req;
		token_make(key, &req, as, (uint64_t)time(NULL), req.token);
		((uint8_t *)&req)[changed[i]] ^= 4;
		raw_need(!is_accepted(&req), "a token is good for another request");
	}
	req = c->req;
	memcpy(other, as, sizeof other);
	other[15] ^= 1;
	token_make(key, &req, other, (uint64_t)time(NULL), req.token);
	raw_need(!is_accepted(&req), "a token is good from another address");
	for (int windows = -4; windows <= 4; windows++) {
		if (windows >= -2 && windows <= 2) /* accepted, or about to be */
			continue;
		token_make(key, &req, as, (uint64_t)(time(NULL) + windows * TOKEN_WINDOW_S), req.token);
		raw_need(!is_accepted(&req), "a token is good at another time");
	}
}

static int run_tokens(int argc, char **argv)
{
	static uint8_t before[MEMORY];
	struct raw_client c, replay;
	struct token_key key;
	struct reddn_wire_req req;
	uint8_t as[16];
	char why[200];

	(void)argc;
	raw_need(token_key_read(argv[0], &key, why, sizeof why) == 0, "no key");
	own_address(as);
	prepare(&c);
	req = c.req;
	raw_need(!is_accepted(&req), "no token is needed");
	for (unsigned i = 0; i < 200; i++) {
		for (size_t b = 0; b < sizeof req.token; b++)
			req.token[b] = (uint8_t)rnd(256);
		raw_need(!is_accepted(&req), "a forged token is good");
	}
	token_make(&key, &req, as, (uint64_t)time(NULL), req.token);
	for (unsigned bit = 0; bit < 64; bit++) {
		req.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
		raw_need(!is_accepted(&req), "a token with a wrong bit is good");
		req.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	try_other_uses(&c, &key, as);

	token_make(&key, &c.req, as, (uint64_t)time(NULL), c.req.token);
	raw_start(&c);
	/* Overheard and replayed at once: what it asks for does not come to the one who asks */
	prepare(&replay);
	if (raw_connect(&replay, &c.req, sizeof c.req) == RDMA_CM_EVENT_ESTABLISHED) {
		memset(replay.mem, FILLER, MEMORY);
		memcpy(before, replay.mem, MEMORY);
		raw_post_recvs(&replay, 1);
		raw_post_sends(&replay, 1, raw_arg_len(&replay));
		raw_replies(&replay, 1, NULL);
		raw_need(memcmp(before, replay.mem, MEMORY) == 0, "a replayed token is good for other slots");
	}
	raw_finish(&replay);
	raw_finish(&c);
	token_key_wipe(&key);
	printf("%s: forged, stale, of another request and replayed\n", raw_case);
	return 0;
}

/* ---- the bystander ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Without a pause, which would be all that is measured */
static void await_reply(struct raw_client *c)
{
	uint64_t end = now_ns() + RAW_PATIENCE_MS * 1000000ull;
	struct ibv_wc wc;
	int r;

	do {
		r = ibv_poll_cq(c->cq, 1, &wc);
		raw_need(r == 0 || (r > 0 && wc.status == IBV_WC_SUCCESS), "the session has ended");
		raw_need(now_ns() < end, "no answer");
	} while (r == 0 || wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM);
}

static int run_canary(int argc, char **argv)
{
	static uint8_t want[MEMORY + RAW_REQUEST];
	const struct table t = table_map(argv[0]);
	static struct histogram times;
	uint64_t right = 0;
	struct raw_client c;

	(void)argc;
	signal(SIGTERM, on_stop);
	prepare(&c);
	raw_start(&c);
	printf("canary: slots %#x:%#" PRIx64 ":%d\n", c.mr->rkey, (uint64_t)(uintptr_t)c.mem, MEMORY);
	fflush(stdout);
	memset(c.mem, FILLER, MEMORY);
	for (uint64_t n = 0; !stopped; n++) {
		unsigned slot = n % RAW_DEPTH;
		uint64_t at = n * 16 % t.window, begin;

		memset(c.mem + slot * RAW_SLOT, FILLER, RAW_SLOT);
		put_probe(&c, 0, look(&t, at).fp, at);
		put_probe(&c, 1, look(&t, at).fp, at);
		memcpy(want, c.mem, sizeof want);
		raw_need(model(&c, &t, slot, want), "the table is damaged");
		raw_post_recvs(&c, 1);
		begin = now_ns();
		raw_post_sends(&c, 1, raw_arg_len(&c));
		await_reply(&c);
		histogram_add(&times, now_ns() - begin);
		raw_need(memcmp(c.mem, want, sizeof want) == 0,
			"a wrong answer, or something else has changed");
		right++;
		usleep(200);
	}
	printf("canary: %" PRIu64 " right answers, p50 %" PRIu64 " ns, p99 %" PRIu64 " ns\n", right,
		histogram_at(&times, 0.5), histogram_at(&times, 0.99));
	raw_finish(&c);
	return right > 0 ? 0 : 1;
}

static const struct {
	const char *name;
	int args; /* at least */
	int (*run)(int argc, char **argv);
} cases[] = {
	{"canary", 1, run_canary},
	{"arguments", 1, run_arguments},
	{"lengths", 1, run_lengths},
	{"bytes", 3, run_bytes},
	{"any", 2, run_any},
	{"keys", 1, run_keys},
	{"slots", 1, run_slots},
	{"queues", 1, run_queues},
	{"flood", 0, run_flood},
	{"qp-error", 0, run_qp_error},
	{"storm", 1, run_storm},
	{"half-open", 1, run_half_open},
	{"tokens", 1, run_tokens},
	{"connects", 2, run_connects},
};

int main(int argc, char **argv)
{
	if (argc < 5) {
		fputs("usage: hostile ADDRESS PORT OFFLOAD CASE [ARGUMENT...]\n", stderr);
		return 2;
	}
	address = argv[1];
	port = argv[2];
	offload = argv[3];
	raw_case = argv[4];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (strcmp(cases[i].name, raw_case) == 0 && argc - 5 >= cases[i].args)
			return cases[i].run(argc - 5, argv + 5);
	fprintf(stderr, "hostile: there is no case %s, or it needs more arguments\n", raw_case);
	return 2;
}
