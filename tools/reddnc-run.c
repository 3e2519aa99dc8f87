/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/args.h"
#include "mlx5/wqe.h"
#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/decode.h"
#include "reddnd/generation/fit.h"
#include "reddnd/generation/offer.h"
#include "reddnd/probe/probe.h"
#include "reddnd/session/queues.h"
#include "reddnd/util/log.h"
#include "tools/common/tool.h"
#include "tools/reddnc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

struct reddnc_result {
	const struct program *program;
	const struct chain_image *image;
	unsigned slots;                        /* in each ring; the first was executed, the second is armed */
	const uint8_t *ring[CHAIN_MAX_QUEUES]; /* of WQEs, by queue */
	const uint8_t *reply, *scratch, *sent; /* sent: what a SEND has brought, or nothing */
	uint32_t sent_len;
	const struct session_loop *loop; /* of an endless program, or NULL */
	uint64_t took_us;
	bool answered;
};

enum { SECOND_US = 1000000 };

static struct json_object *loop_json(const struct reddnc_result *r)
{
	const struct program *p = r->program;
	const uint64_t n = session_loop_iterations(r->loop), wqes = program_loop_wqes(p, n);
	const double seconds = (double)r->took_us / SECOND_US;
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "iterations", json_object_new_uint64(n));
	json_object_object_add(o, "wqes", json_object_new_uint64(wqes));
	json_object_object_add(o, "iterations_per_lap", json_object_new_int((int)p->loop_info.iterations));
	json_object_object_add(o, "wqes_per_lap", json_object_new_int((int)p->loop_info.lap.wqes));
	json_object_object_add(o, "ring_wqebbs", json_object_new_int((int)p->loop_ring));
	json_object_object_add(o, "seconds", json_object_new_double(seconds));
	return o;
}

static void print_loop(const struct reddnc_result *r, FILE *out)
{
	const struct program *p = r->program;
	const uint64_t n = session_loop_iterations(r->loop);
	const double seconds = (double)r->took_us / SECOND_US;

	/* They are counted half a lap at a time */
	fprintf(out, "loop\n  from %" PRIu64 " to %" PRIu64 " iterations, %.3f s", n,
		n + p->loop_info.iterations / 2, seconds);
	if (n)
		fprintf(out, ", %.0f iterations and %.0f WQEs per second", (double)n / seconds,
			(double)program_loop_wqes(p, n) / seconds);
	fputc('\n', out);
}

static struct json_object *hex_json(const uint8_t *bytes, uint32_t len)
{
	char *text = calloc(2ul * len + 1, 1), hex[3] = "";
	struct json_object *o;

	for (uint32_t i = 0; text && i < len; i++) {
		snprintf(hex, sizeof(hex), "%02x", bytes[i]);
		memcpy(text + 2ul * i, hex, 2);
	}
	o = json_object_new_string(text ? text : "");
	free(text);
	return o;
}

/* reddnc(1) has the members. */
static void reddnc_result_json(const struct reddnc_result *r, FILE *out)
{
	struct json_object *o = json_object_new_object(), *steps = json_object_new_array();
	char line[600];

	json_object_object_add(o, "answered", json_object_new_boolean(r->answered));
	json_object_object_add(o, "reply", hex_json(r->reply, r->program->reply_max));
	json_object_object_add(o, "sent", hex_json(r->sent, r->sent_len));
	for (unsigned q = 0; q < r->image->nqueues; q++)
		for (uint32_t w = 0; w < r->image->queue[q].wqebbs;) {
			struct json_object *step = json_object_new_object();

			json_object_object_add(
				step, "queue", json_object_new_string(r->program->desc->queues[q].name));
			json_object_object_add(step, "step",
				json_object_new_string(
					chain_step_at(r->image, r->slots, q, (uint16_t)w, NULL)));
			w += chain_decode(r->ring[q] + (size_t)w * CHAIN_WQEBB,
				(size_t)(r->image->queue[q].wqebbs - w) * CHAIN_WQEBB, line, sizeof(line));
			json_object_object_add(step, "wqe", json_object_new_string(line));
			json_object_array_add(steps, step);
		}
	json_object_object_add(o, "work_requests", steps);
	if (r->loop)
		json_object_object_add(o, "loop", loop_json(r));
	fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

static void hex_lines(const uint8_t *bytes, size_t len, FILE *out)
{
	for (size_t i = 0; i < len; i++)
		fprintf(out, "%s%02x%s", i % 16 == 0 ? "    " : " ", bytes[i],
			i % 16 == 15 || i + 1 == len ? "\n" : "");
}

/* For people. A WQE that has another opcode than when it was armed is followed by what it was. */
static void reddnc_result_text(const struct reddnc_result *r, FILE *out)
{
	char line[600], before[600];

	if (r->answered) {
		fprintf(out, "reply\n");
		hex_lines(r->reply, r->program->reply_max, out);
	}
	if (r->sent_len) {
		fprintf(out, "sent\n");
		hex_lines(r->sent, r->sent_len, out);
	}
	for (unsigned q = 0; q < r->image->nqueues; q++) {
		const struct chain_queue *queue = &r->image->queue[q];

		fprintf(out, "queue %s\n", r->program->desc->queues[q].name);
		for (uint32_t w = 0, n; w < queue->wqebbs; w += n) {
			size_t avail = (size_t)(queue->wqebbs - w) * CHAIN_WQEBB;
			const uint8_t *now = r->ring[q] + (size_t)w * CHAIN_WQEBB,
				      *armed = r->ring[q] + (size_t)(w + queue->wqebbs) * CHAIN_WQEBB;

			n = chain_decode(now, avail, line, sizeof(line));
			chain_decode(armed, avail, before, sizeof(before));
			fprintf(out, "  %-12s %s\n", chain_step_at(r->image, r->slots, q, (uint16_t)w, NULL),
				line);
			if (now[WQE_OPCODE] != armed[WQE_OPCODE])
				fprintf(out, "  %-12s was %s\n", "", before);
		}
	}
	if (r->loop)
		print_loop(r, out);
	fprintf(out, "scratch\n");
	hex_lines(r->scratch, r->image->scratch_size, out);
}

enum { ARENA = 64 << 20 };

void reddnc_device_close(struct reddnc_device *d)
{
	master_qp_deinit(&d->domain.master);
	if (d->dev)
		rnic_device_close(d->dev);
	if (d->arena)
		rnic_arena_free(d->arena);
}

static int check_wishes(
	const char *name, const struct program_target *wish, const struct program_target *can, unsigned group)
{
	if (wish->ignores_index && !can->ignores_index)
		return TOOL_FAIL(EX_UNAVAILABLE, "%s checks the indices of WQEs; leave out --direct", name);
	if (wish->fenced_enables && !can->fenced_enables)
		return TOOL_FAIL(EX_UNAVAILABLE,
			"a SEND_EN of %s does not heed its fence; leave out --fenced-enables", name);
	if (wish->fetch_group && wish->fetch_group < group)
		return TOOL_FAIL(EX_UNAVAILABLE,
			"%s fetches %u bytes of a queue together; leave out --fetch-group", name,
			group * RNIC_WQEBB_BYTES);
	return 0;
}

static int choose_target(const struct reddnc_device *d, struct program_target *target)
{
	const struct rnic_caps *caps = rnic_device_caps(d->dev);
	const struct program_target wish = *target;
	int r;

	*target = fit_target(caps, false);
	r = check_wishes(rnic_device_name(d->dev), &wish, target, fit_group(caps));
	target->masked_atomics &= wish.masked_atomics;
	target->calc &= wish.calc;
	if (wish.fetch_group)
		target->fetch_group = wish.fetch_group;
	return r;
}

int reddnc_device_open(struct reddnc_device *d, const char *name, struct program_target *target)
{
	struct probe_attr attr = {.master = &d->domain.master};
	struct rnic_observed seen;

	log_name(program_invocation_short_name);
	log_init(LOG_ERR);
	if (rnic_device_open_for_chains(&d->dev, name, NULL) < 0 || rnic_arena_new(&d->arena, ARENA) < 0)
		return EX_UNAVAILABLE;
	d->domain.pd = rnic_device_pd(d->dev);
	if (master_qp_init(&d->domain.master, d->domain.pd, d->arena) < 0 ||
		probe_at_start(&attr, target->fenced_enables, &seen) < 0)
		return EX_UNAVAILABLE;
	log_init(LOG_WARNING);
	rnic_device_set_observed(d->dev, &seen);
	return choose_target(d, target);
}

enum {
	PAGE = 4096,
	SLOTS = 4, /* two are used: of the request, and the one whose head it enables; an RQ has at least 64
		      bytes */
	CLIENT_WQEBBS = 64,
	CLIENT_RECVS = 4,
	LOG_CQES = 6,
	NAP_NS = 100000,
};

enum { LOOP_RATE = 100000000 /* WQEs per second: as fast as the NIC can */ };

/* Offsets in the client's block: doorbells, CQEs, those of replies, queue pair, then what has a key: the
 * request, the reply slot, and on a page of its own what a SEND brings */
enum { CQES = PAGE, REPLY_CQES = 2 * PAGE, WQ = 3 * PAGE, REQUEST = WQ + 2 * PAGE, SLOT = REQUEST + PAGE };

/* A session of an offload that is in no catalog. Its client is a queue pair of this process, without a
 * connection manager */
struct bench {
	const struct reddnc_run *run;
	const struct chain_image *img;
	struct catalog_region conf[PROGRAM_MAX_REGIONS];
	struct catalog_offload catalog;
	struct offload offload;
	struct session session;
	struct rnic_block client;
	struct cq_pool_queue replies; /* in the client's block */
	struct rnic_cq client_cq;
	struct rnic_qp client_qp;
	uint64_t inbox; /* offset in the client's block */
	uint32_t sent;
	uint64_t took_us;
};

static void bench_deinit(struct bench *b)
{
	rnic_qp_deinit(&b->client_qp);
	session_queues_destroy(&b->session);
	rnic_cq_deinit(&b->replies.cq);
	rnic_cq_deinit(&b->client_cq);
	rnic_block_deinit(&b->client);
	for (unsigned i = 0; i < PROGRAM_MAX_REGIONS; i++)
		if (b->offload.bound[i].region)
			region_close(b->offload.bound[i].region);
}

/* ---- regions ----------------------------------------------------------------------------------- */

/* Whether the file begins as a table does. One that cannot be used, such as of an earlier format, is then
 * refused, not taken for raw bytes. */
static bool is_table(const char *path)
{
	static const char magic[] = "RDDNTBL";
	struct rnic_region *r;
	char begin[sizeof(magic) - 1];
	bool table;

	if (rnic_region_open(&r, path, false) < 0)
		return false;
	table = rnic_region_read(r, 0, begin, sizeof(begin)) == 0 && memcmp(begin, magic, sizeof(begin)) == 0;
	rnic_region_close(r);
	return table;
}

static int open_region(struct bench *b, unsigned i)
{
	static const char *const parts[] = {
		[CATALOG_BUCKETS] = "buckets", [CATALOG_HEAP] = "heap", [CATALOG_LIVE] = "live"};
	const struct program_region *want = &b->run->program->regions[i];
	const struct reddnc_region *given = NULL;
	struct region **region = &b->offload.bound[i].region;
	uint8_t part = CATALOG_WHOLE;
	uint64_t size;

	for (unsigned r = 0; r < b->run->nregions; r++)
		if (strcmp(b->run->region[r].name, want->name) == 0)
			given = &b->run->region[r];
	if (!given)
		return TOOL_FAIL(EX_USAGE, "region \"%s\" of the program is missing; give --region %s=FILE",
			want->name, want->name);
	for (uint8_t p = CATALOG_BUCKETS; p <= CATALOG_LIVE; p++)
		if (strcmp(want->name, parts[p]) == 0 && is_table(given->path))
			part = p;
	b->conf[i] = (struct catalog_region){.raw = part == CATALOG_WHOLE,
		.writable = want->writable,
		.path = (char *)given->path,
		.where = (char *)"reddnc"};
	snprintf(b->conf[i].name, sizeof(b->conf[i].name), "%s", want->name);
	if (region_open(region, &b->conf[i], i * REGION_WINDOWS, -1) < 0 || region_is_bad(*region, NULL))
		return EX_NOINPUT;
	for (unsigned k = 0; k < i; k++)
		if ((want->writable || b->conf[k].writable) &&
			rnic_region_is((*region)->file, b->offload.bound[k].region->file))
			return TOOL_FAIL(EX_USAGE,
				"regions \"%s\" and \"%s\" are one file, and the program writes to one of "
				"them; give it two",
				b->run->program->regions[k].name, want->name);
	size = region_part_size(*region, part);
	if (size < want->size)
		return TOOL_FAIL(EX_DATAERR, "%s has %" PRIu64 " bytes, region \"%s\" needs %" PRIu64,
			given->path, size, want->name, want->size);
	b->offload.bound[i].part = part;
	b->offload.bound[i].writable = want->writable;
	return 0;
}

static int open_regions(struct bench *b)
{
	int r = 0;

	for (unsigned i = 0; i < b->run->nregions; i++) {
		bool known = false;

		for (unsigned w = 0; w < b->run->program->nregions; w++)
			known |= strcmp(b->run->program->regions[w].name, b->run->region[i].name) == 0;
		if (!known)
			return TOOL_FAIL(
				EX_USAGE, "the program has no region \"%s\"", b->run->region[i].name);
	}
	for (unsigned i = 0; i < b->run->program->nregions && r == 0; i++)
		r = open_region(b, i);
	return r;
}

/* ---- queues ------------------------------------------------------------------------------------ */

static uint32_t slot_size(const struct bench *b)
{
	return (uint32_t)((b->run->program->reply_max + 63) / 64 * 64);
}

/* Bytes that come by a SEND, at most */
static uint32_t inbox_size(const struct bench *b)
{
	const struct chain_desc *d = b->run->program->desc;
	uint64_t most = 0;

	for (unsigned s = 0; s < d->nsteps; s++)
		if (d->steps[s].verb == CHAIN_SEND && chain_step_most(&d->steps[s]) > most)
			most = chain_step_most(&d->steps[s]);
	return (uint32_t)most;
}

/* As reddnd does of an offload (generation/bindings.c) */
static int check_offsets(const struct bench *b)
{
	for (unsigned i = 0; i < b->run->program->nregions; i++)
		if (b->session.queues.env.region[i].iova & ((1ull << b->img->region_bits[i]) - 1))
			return TOOL_FAIL(EX_UNAVAILABLE,
				"offsets into region \"%s\" have %u bits, more than its address allows",
				b->run->program->regions[i].name, b->img->region_bits[i]);
	return 0;
}

static int make_client(struct bench *b)
{
	const uint64_t inbox = SLOT + (slot_size(b) + PAGE) / PAGE * PAGE,
		       size = inbox + (inbox_size(b) + PAGE) / PAGE * PAGE;
	const struct rnic_cq_attr cq = {.cqes_off = CQES, .db_off = 0, .log_size = LOG_CQES};
	const struct rnic_cq_attr replies = {
		.cqes_off = REPLY_CQES, .db_off = 2 * RNIC_DB_BYTES, .log_size = LOG_CQES};
	const struct rnic_qp_attr qp = {
		.wq_off = WQ,
		.rq_entries = CLIENT_RECVS,
		.rq_stride = WQE_DS,
		.sq_wqebbs = CLIENT_WQEBBS,
		.db_off = RNIC_DB_BYTES,
		.send_cq = &b->client_cq,
		.recv_cq = &b->client_cq,
	};
	int r;

	b->inbox = inbox;
	r = rnic_block_init(
		&b->client, b->run->on->domain.pd, b->run->on->arena, size, REQUEST, size - REQUEST);
	if (r == 0)
		r = rnic_cq_init(&b->client_cq, &b->client, &cq);
	if (r == 0)
		r = rnic_qp_init(&b->client_qp, &b->client, &qp);
	return r == 0 ? rnic_cq_init(&b->replies.cq, &b->client, &replies) : r;
}

static int make_session(struct bench *b)
{
	const struct program *p = b->run->program;
	const struct request request = {.depth = 1,
		.slot_addr = b->client.iova + SLOT - REQUEST,
		.slot_rkey = b->client.rkey,
		.slot_size = slot_size(b)};
	const struct rnic_caps *caps = rnic_device_caps(b->run->on->dev);
	struct session *s = &b->session;
	struct loop_size loop;
	int r = queue_layout_make(b->img, loop_size_of(p, LOOP_RATE, &loop) ? &loop : NULL, false, SLOTS,
		1u << caps->log_max_qp_wqebbs, &s->queues.layout);

	return r == 0 ? session_queues_make(s, b->run->on->arena, &request) : r;
}

/* A WRITE with an immediate uses none of this */
static void post_recvs(struct bench *b)
{
	for (unsigned i = 0; i < CLIENT_RECVS; i++) {
		uint8_t *sge = b->client_qp.rq + (size_t)i * WQE_DS;

		wqe_put32(sge + WQE_SGE_LEN, inbox_size(b));
		wqe_put32(sge + WQE_SGE_LKEY, b->client.lkey);
		wqe_put64(sge + WQE_SGE_ADDR, b->client.iova + b->inbox - REQUEST);
	}
	rnic_qp_post_recvs(&b->client_qp, CLIENT_RECVS);
}

static int start(struct bench *b)
{
	struct session_queues *q = &b->session.queues;
	struct master_qp *master = &b->run->on->domain.master;
	int r;

	for (unsigned slot = 0; slot < SLOTS; slot++)
		chain_format_recv(b->img, &q->env, slot);
	chain_arm(b->run->program->writer, &q->env, 0, SLOTS);
	rnic_qp_post_recvs(&q->qp[0], 1);
	post_recvs(b);
	r = rnic_qp_connect_local(&q->qp[0], b->client_qp.qpn, 1);
	if (r == 0)
		r = rnic_qp_connect_local(&b->client_qp, q->qpn, 1);
	for (unsigned i = 1; i < b->img->nqueues && r == 0; i++)
		r = rnic_qp_connect_self(&q->qp[i], b->img->max_rd_atomic);
	if (r == 0)
		r = master_qp_enable(master, q->qp[chain_start_queue(b->img)].qpn, chain_start_index(b->img));
	return r == 0 && q->loop ? session_loop_start(q->loop, &b->session.loops, 1, master) : r;
}

/* ---- the request ------------------------------------------------------------------------------- */

static int compose(struct bench *b, uint8_t *request)
{
	const struct program *p = b->run->program;
	struct reddn_wire_rep rep = {0};
	uint8_t room[REDDN_WIRE_ARGS][256] = {0};
	struct reddn_arg args[REDDN_WIRE_ARGS] = {0};
	struct reddn_request_format form;
	unsigned n = 0;

	while (b->run->args[n])
		n++;
	if (n != p->nargs)
		return TOOL_FAIL(EX_USAGE, "%s takes %u arguments, not %u", p->name, p->nargs, n);
	offer_describe_request(p, 1, &rep);
	if (rep.nargs != n || reddn_format_read(&form, &rep, b->img->arg_len))
		return TOOL_FAIL(EX_DATAERR, "the request has more parts than reddnc run can fill");
	for (unsigned i = 0; i < n; i++) {
		const struct program_arg *a = &p->args[i];

		if (a->kind == PROGRAM_STRING) {
			args[i].bytes = room[i];
			if (!tool_bytes(b->run->args[i], room[i], a->bytes))
				return TOOL_FAIL(EX_USAGE,
					"%s: \"%s\" is neither text of at most %u bytes nor hex:00ff..",
					a->name, b->run->args[i], a->bytes);
		} else if (number_parse(b->run->args[i], 0,
				   a->bytes < 8 ? (1ull << 8 * a->bytes) - 1 : UINT64_MAX,
				   &args[i].number) < 0) {
			return TOOL_FAIL(EX_USAGE, "%s: \"%s\" is not a number of at most %u bytes", a->name,
				b->run->args[i], a->bytes);
		}
	}
	reddn_format_encode(&form, args, n, b->img->arg_len, request);
	return 0;
}

static void send_request(struct bench *b)
{
	uint32_t len = b->img->arg_len;
	uint8_t wqe[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_SEND, [WQE_DSCOUNT] = len ? 2 : 1, [WQE_FLAGS] = WQE_SIGNALLED};

	wqe_put32(wqe + 16 + WQE_SGE_LEN, len);
	wqe_put32(wqe + 16 + WQE_SGE_LKEY, b->client.lkey);
	wqe_put64(wqe + 16 + WQE_SGE_ADDR, b->client.iova);
	rnic_qp_post(&b->client_qp, wqe);
}

/* Once a second */
static void show_progress(const struct bench *b, uint64_t *shown)
{
	uint64_t us = clock_us() - b->took_us, n = session_loop_iterations(b->session.queues.loop);

	if (!b->run->progress || us < *shown + SECOND_US)
		return;
	*shown = us;
	fprintf(stderr, "\r%14" PRIu64 " iterations, %10.0f per second ", n, 1e6 * (double)n / (double)us);
}

static struct rnic_cq *cq_of(struct bench *b, unsigned part)
{
	return part ? session_cq(&b->session, part) : &b->replies.cq;
}

/* 1: a step has failed, which is reported. 0: none has. *flushed: a queue with a CQE that was flushed; the
 * device may have written it over that of the step */
static int check_steps(struct bench *b, const char **flushed)
{
	struct rnic_cqe cqe;
	struct verdict v;

	for (unsigned part = 0; part <= SESSION_LOOP; part++) {
		if (!cq_of(b, part) || !rnic_cq_find_error(cq_of(b, part), &cqe))
			continue;
		if (cqe.syndrome != CQE_SYND_FLUSH) {
			session_fault(&b->session, part, &cqe, &v);
			return TOOL_FAIL(1, "%s", v.text);
		}
		if (part < b->img->nqueues)
			*flushed = b->run->program->desc->queues[part].name;
	}
	return 0;
}

/* 0: the reply is there, and the chain is over. 1: an error, reported */
static int poll_reply(struct bench *b)
{
	const char *flushed = NULL;
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const uint64_t timeout = (uint64_t)b->run->timeout_ms * 1000;
	struct rnic_cqe cqe;
	uint64_t shown = 0;
	bool answered = false;

	while (clock_us() - b->took_us < timeout) {
		if (check_steps(b, &flushed))
			return 1;
		while (rnic_cq_poll(&b->client_cq, &cqe)) {
			if (cqe.error)
				return TOOL_FAIL(1, "the queue pair of the client failed: %s (%#x)",
					rnic_syndrome_text(cqe.syndrome), cqe.vendor);
			answered |= cqe.receive;
			b->sent = cqe.receive ? cqe.length : b->sent;
		}
		if (answered && rnic_cq_peek(&b->replies.cq, 0, &cqe))
			return 0;
		session_loop_feed(b->session.queues.loop, &b->session.loops, 1, clock_us());
		if (b->session.queues.loop)
			show_progress(b, &shown);
		nanosleep(&nap, NULL);
	}
	if (flushed)
		return TOOL_FAIL(
			1, "queue %s failed, and its completions do not show at which step", flushed);
	return TOOL_FAIL(1,
		answered ? "the reply came, but the chain did not end within %u ms" : "no reply within %u ms",
		b->run->timeout_ms);
}

static int await_reply(struct bench *b)
{
	int r;

	b->took_us = clock_us();
	r = poll_reply(b);
	b->took_us = clock_us() - b->took_us;
	if (b->run->progress && b->took_us > SECOND_US)
		fputc('\n', stderr);
	return r;
}

static void show(const struct bench *b, bool answered, FILE *out)
{
	struct reddnc_result result = {.program = b->run->program,
		.image = b->img,
		.slots = SLOTS,
		.reply = b->client.mem + SLOT,
		.sent = b->client.mem + b->inbox,
		.sent_len = b->sent,
		.scratch = b->session.queues.env.scratch.mem,
		.loop = b->session.queues.loop,
		.took_us = b->took_us,
		.answered = answered};

	for (unsigned q = 0; q < b->img->nqueues; q++)
		result.ring[q] = b->session.queues.qp[q].sq;
	if (b->run->json)
		reddnc_result_json(&result, out);
	else
		reddnc_result_text(&result, out);
}

int reddnc_run(const struct reddnc_run *run, FILE *out)
{
	CLEANUP(bench_deinit)
	struct bench b = {.run = run,
		.img = run->program->image,
		.catalog = {.path = (char *)run->path, .loop_rate = LOOP_RATE},
		.offload = {.conf = &b.catalog,
			.program = (struct program *)run->program,
			.img = run->program->image},
		.session = {.offload = &b.offload, .domain = &run->on->domain, .queues.pool_cq = &b.replies}};
	uint8_t request[CHAIN_MAX_ARG];
	char why[FIT_WHY];
	int r;

	if (b.img->publish.there)
		return TOOL_FAIL(EX_UNAVAILABLE,
			"%s publishes %s, and there is no store here whose words it could replace",
			run->program->name, run->program->payload.max ? "its payload" : "a locator");
	r = compose(&b, request);
	if (r)
		return r;
	if (fit_check(run->program, false, rnic_device_caps(run->on->dev), why) < 0)
		return TOOL_FAIL(EX_UNAVAILABLE, "%s cannot run it: %s", rnic_device_name(run->on->dev), why);
	r = open_regions(&b);
	if (r)
		return r;
	r = make_client(&b);
	if (r == 0)
		r = make_session(&b);
	if (r == 0)
		r = check_offsets(&b);
	if (r == 0)
		r = start(&b);
	if (r < 0)
		return TOOL_FAIL(EX_UNAVAILABLE, "cannot create the queues: %s", strerror(-r));
	if (r)
		return r;
	memcpy(b.client.mem + REQUEST, request, b.img->arg_len);
	send_request(&b);
	r = await_reply(&b);
	show(&b, r == 0, out);
	return r;
}
