/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnc.h"

#include "libclient/args.h"
#include "mlx5/wqe.h"
#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/decode.h"
#include "reddnd/generation/fit.h"
#include "reddnd/generation/offer.h"
#include "reddnd/generation/offload.h"
#include "reddnd/generation/queue-layout.h"
#include "reddnd/policy/verdict.h"
#include "reddnd/session/loop-queue.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum {
	PAGE = 4096,
	SLOTS = 4, /* two are used: of the request, and the one whose head it enables; an RQ has at least 64
		      bytes */
	CLIENT_WQEBBS = 64,
	CLIENT_LOG_CQES = 6,
	NAP_NS = 100000,
	SECOND_US = 1000000,
};

enum { LOOP_RATE = 100000000 /* WQEs per second: as fast as the NIC can */ };

/* Offsets in the client's block: doorbells, CQEs, queue pair, then what has a key: the request and the reply
 * slot */
enum { CQES = PAGE, WQ = 2 * PAGE, REQUEST = WQ + 2 * PAGE, SLOT = REQUEST + PAGE };

struct bench {
	const struct reddnc_run *run;
	const struct chain_image *img;
	struct reddnc_device *on;
	struct catalog_region conf[PROGRAM_MAX_REGIONS];
	struct region *region[PROGRAM_MAX_REGIONS];
	struct queue_layout layout;
	struct rnic_block block, client;
	struct rnic_cq cq[CHAIN_MAX_QUEUES], reply_cq, client_cq;
	struct rnic_qp qp[CHAIN_MAX_QUEUES], client_qp;
	struct session_loop *loop;
	struct session_loops loops;
	struct chain_env env;
	uint64_t took_us;
};

static void bench_deinit(struct bench *b)
{
	rnic_qp_deinit(&b->client_qp);
	session_loop_stop(b->loop);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_stop(&b->qp[q]);
	session_loop_free(b->loop);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_deinit(&b->qp[q]);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_cq_deinit(&b->cq[q]);
	rnic_cq_deinit(&b->reply_cq);
	rnic_cq_deinit(&b->client_cq);
	rnic_block_deinit(&b->block);
	rnic_block_deinit(&b->client);
	for (unsigned i = 0; i < PROGRAM_MAX_REGIONS; i++)
		if (b->region[i])
			region_close(b->region[i]);
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
	struct rnic_window w;
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
	if (region_open(&b->region[i], &b->conf[i], i * REGION_WINDOWS, -1) < 0 ||
		region_is_bad(b->region[i], NULL))
		return EX_NOINPUT;
	for (unsigned k = 0; k < i; k++)
		if ((want->writable || b->conf[k].writable) &&
			rnic_region_is(b->region[i]->file, b->region[k]->file))
			return TOOL_FAIL(EX_USAGE,
				"regions \"%s\" and \"%s\" are one file, and the program writes to one of "
				"them; give it two",
				b->run->program->regions[k].name, want->name);
	size = region_part_size(b->region[i], part);
	if (size < want->size)
		return TOOL_FAIL(EX_DATAERR, "%s has %" PRIu64 " bytes, region \"%s\" needs %" PRIu64,
			given->path, size, want->name, want->size);
	if (region_window(b->region[i], rnic_device_pd(b->on->dev), part, want->writable, &w) < 0)
		return EX_NOINPUT;
	b->env.region[i].iova = w.iova;
	b->env.region[i].lkey = w.lkey;
	b->env.region[i].rkey = w.rkey;
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

static int make_client(struct bench *b)
{
	uint64_t slot = (b->run->program->reply_max + 63) / 64 * 64,
		 size = SLOT + (slot + PAGE) / PAGE * PAGE;
	const struct rnic_cq_attr cq = {.cqes_off = CQES, .db_off = 0, .log_size = CLIENT_LOG_CQES};
	const struct rnic_qp_attr qp = {
		.wq_off = WQ,
		.rq_entries = 4,
		.rq_stride = 16,
		.sq_wqebbs = CLIENT_WQEBBS,
		.db_off = RNIC_DB_BYTES,
		.send_cq = &b->client_cq,
		.recv_cq = &b->client_cq,
	};
	int r;

	r = rnic_block_init(
		&b->client, rnic_device_pd(b->on->dev), b->on->arena, size, REQUEST, size - REQUEST);
	if (r == 0)
		r = rnic_cq_init(&b->client_cq, &b->client, &cq);
	if (r == 0)
		r = rnic_qp_init(&b->client_qp, &b->client, &qp);
	b->env.slot_addr = b->client.iova + SLOT - REQUEST;
	b->env.slot_rkey = b->client.rkey;
	b->env.slot_size = (uint32_t)slot;
	b->env.slot_count = 1;
	return r;
}

static int make_queue(struct bench *b, unsigned q)
{
	const struct queue_layout *l = &b->layout;
	const struct rnic_cq_attr cq = {
		.cqes_off = l->queue[q].cqes_off,
		.db_off = l->queue[q].cq_db_off,
		.log_size = l->queue[q].cq_log_size,
		.overrun_ignore = true,
	};
	const struct rnic_qp_attr qp = {
		.wq_off = l->queue[q].wq_off,
		.rq_entries = q == 0 ? SLOTS : 0,
		.rq_stride = l->rq_stride,
		.sq_wqebbs = l->queue[q].ring_wqebbs,
		.db_off = l->queue[q].qp_db_off,
		.send_cq = q == 0 ? &b->reply_cq : &b->cq[q],
		.recv_cq = &b->cq[q],
		.managed = true,
	};
	int r;

	r = rnic_cq_init(&b->cq[q], &b->block, &cq);
	if (r == 0)
		r = rnic_qp_init(&b->qp[q], &b->block, &qp);
	b->env.queue[q].qpn = b->qp[q].qpn;
	b->env.queue[q].cqn = qp.send_cq->cqn;
	b->env.queue[q].iova = b->block.iova + l->queue[q].ring_off - b->block.code_off;
	b->env.queue[q].lkey = b->block.lkey;
	b->env.queue[q].rkey = b->block.rkey;
	b->env.queue[q].ring = b->qp[q].sq;
	b->env.queue[q].ring_wqebbs = l->queue[q].ring_wqebbs;
	return r;
}

/* The CQ of replies lies behind the layout of a session, which takes it from the CQ pool */
static int make_queues(struct bench *b)
{
	struct rnic_cq_attr reply = {.log_size = CLIENT_LOG_CQES};
	const struct program *p = b->run->program;
	struct loop_size loop;
	int r;

	r = queue_layout_make(b->img, loop_size_of(p, LOOP_RATE, &loop) ? &loop : NULL, false, SLOTS,
		1u << rnic_device_caps(b->on->dev)->log_max_qp_wqebbs, &b->layout);
	if (r < 0)
		return r;
	reply.cqes_off = (b->layout.size + PAGE - 1) / PAGE * PAGE;
	reply.db_off = reply.cqes_off + PAGE;
	r = rnic_block_init(&b->block, rnic_device_pd(b->on->dev), b->on->arena, reply.cqes_off + 2 * PAGE,
		b->layout.code_off, b->layout.code_size);
	if (r == 0)
		r = rnic_cq_init(&b->reply_cq, &b->block, &reply);
	for (unsigned q = 0; q < b->img->nqueues && r == 0; q++)
		r = make_queue(b, q);
	if (r == 0 && p->loop)
		r = session_loop_new(&b->loop, &b->loops, p, LOOP_RATE, &b->block, &b->layout.loop, 0, 0);
	b->env.slots = SLOTS;
	b->env.recv_cqn = b->cq[0].cqn;
	b->env.scratch.iova = b->block.iova + b->layout.scratch_off - b->block.code_off;
	b->env.scratch.lkey = b->block.lkey;
	b->env.scratch.rkey = b->block.rkey;
	b->env.scratch.mem = b->block.mem + b->layout.scratch_off;
	b->env.rq = b->qp[0].rq;
	b->env.rq_stride = b->layout.rq_stride;
	if (r == 0 && b->loop)
		session_loop_write(b->loop, &b->env);
	return r;
}

static int start(struct bench *b)
{
	int r;

	for (unsigned slot = 0; slot < SLOTS; slot++)
		chain_format_recv(b->img, &b->env, slot);
	chain_arm(b->run->program->writer, &b->env, 0, SLOTS);
	rnic_qp_post_recvs(&b->qp[0], 1);
	rnic_qp_post_recvs(&b->client_qp, 4);
	r = rnic_qp_connect_local(&b->qp[0], b->client_qp.qpn, 1);
	if (r == 0)
		r = rnic_qp_connect_local(&b->client_qp, b->qp[0].qpn, 1);
	for (unsigned q = 1; q < b->img->nqueues && r == 0; q++)
		r = rnic_qp_connect_self(&b->qp[q], b->img->max_rd_atomic);
	if (r == 0)
		r = master_qp_enable(
			&b->on->master, b->qp[chain_start_queue(b->img)].qpn, chain_start_index(b->img));
	return r == 0 && b->loop ? session_loop_start(b->loop, &b->loops, 1, &b->on->master) : r;
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

static int check_loop(struct bench *b)
{
	struct rnic_cqe cqe;
	struct verdict v;

	if (!b->loop || !rnic_cq_find_error(session_loop_cq(b->loop), &cqe) || cqe.syndrome == CQE_SYND_FLUSH)
		return 0;
	verdict_of_loop(&v, b->run->program, b->run->path, &cqe);
	return TOOL_FAIL(1, "%s", v.text);
}

/* Once a second */
static void show_progress(const struct bench *b, uint64_t *shown)
{
	uint64_t us = clock_us() - b->took_us, n = session_loop_iterations(b->loop);

	if (!b->run->progress || us < *shown + SECOND_US)
		return;
	*shown = us;
	fprintf(stderr, "\r%14" PRIu64 " iterations, %10.0f per second ", n, 1e6 * (double)n / (double)us);
}

/* 1: a step has failed, which is reported. 0: none has. *flushed: a queue with a CQE that was flushed; the
 * device may have written it over that of the step */
static int check_steps(struct bench *b, const char **flushed)
{
	struct rnic_cqe cqe;

	for (unsigned q = 0; q < b->img->nqueues; q++) {
		if (!rnic_cq_find_error(q ? &b->cq[q] : &b->reply_cq, &cqe))
			continue;
		if (cqe.syndrome != CQE_SYND_FLUSH)
			return TOOL_FAIL(1, "step %s failed: %s (%#x)",
				chain_step_at(b->img, SLOTS, q, cqe.index, NULL),
				rnic_syndrome_text(cqe.syndrome), cqe.vendor);
		*flushed = b->run->program->desc->queues[q].name;
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
		if (check_loop(b) || check_steps(b, &flushed))
			return 1;
		while (rnic_cq_poll(&b->client_cq, &cqe)) {
			if (cqe.error)
				return TOOL_FAIL(1, "the queue pair of the client failed: %s (%#x)",
					rnic_syndrome_text(cqe.syndrome), cqe.vendor);
			answered |= cqe.receive;
		}
		if (answered && rnic_cq_peek(&b->reply_cq, 0, &cqe))
			return 0;
		session_loop_feed(b->loop, &b->loops, 1, clock_us());
		if (b->loop)
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
		.scratch = b->env.scratch.mem,
		.loop = b->loop,
		.took_us = b->took_us,
		.answered = answered};

	for (unsigned q = 0; q < b->img->nqueues; q++)
		result.ring[q] = b->qp[q].sq;
	if (b->run->json)
		reddnc_result_json(&result, out);
	else
		reddnc_result_text(&result, out);
}

int reddnc_run(const struct reddnc_run *run, FILE *out)
{
	CLEANUP(bench_deinit) struct bench b = {.run = run, .img = run->program->image, .on = run->on};
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
		r = make_queues(&b);
	if (r == 0)
		r = start(&b);
	if (r < 0)
		return TOOL_FAIL(EX_UNAVAILABLE, "cannot create the queues: %s", strerror(-r));
	memcpy(b.client.mem + REQUEST, request, b.img->arg_len);
	send_request(&b);
	r = await_reply(&b);
	show(&b, r == 0, out);
	return r;
}
