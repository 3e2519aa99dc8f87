/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu.h"

#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/util/bus-guard.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

enum {
	TURN_WQES = 4000,       /* some 100 us */
	TURN_COMPLETIONS = 256, /* of a client that floods */
	AWAKE_MAX_US = 50,      /* without work, before it sleeps: an event takes longer than that */
	AWAKE_MIN_US = 2,       /* if polling has found nothing again and again */
};

/* Of the loops of a session's connections, which different threads may execute */
struct loops {
	pthread_mutex_t lock;
	struct rate rate; /* of work requests */
};

struct session_cpu {
	struct rnic_plain *queue;
	struct executor *executor;
	struct layouts_cpu layout;
	bool sends;               /* a number in place of immediates */
	struct outcome *outcomes; /* by slot; written before .done is */
	uint64_t *times; /* the same: ns, when the request was taken; once it is done, how long it took */
	/* for the event loop */
	atomic_ullong received, done, iterations;
	atomic_bool broken;
	struct verdict verdict; /* of that; written before it is */
	atomic_bool notes;      /* there is a note; the event loop takes it */
	struct verdict note; /* of a session that goes on; written before .notes, read before it is false */
	/* of the thread that executes */
	uint64_t begun, reported; /* done, as session_cpu_changed() last saw it */
	bool running;             /* request begun - 1 */
	uint64_t since;           /* us, of that */
	uint64_t noted;           /* .begun, when the last note was written */
	uint64_t looped;          /* iterations of requests that are over */
	struct loops own;
	struct loops *loops;    /* of the first connection; NULL: its program has no loop without a bound */
	uint64_t rests_to;      /* us */
	uint64_t active, awake; /* us, when there was something to do; and for how long it is polled then */
	bool slept;             /* since then */
	bool is_short;          /* a request was; with a verdict, for when it is done */
	uint64_t short_one;
	bool cut_off;
	enum executor_result result; /* of the last part of the request */
	uint64_t wqes;               /* of a turn that are left */
};

/* ---- life ------------------------------------------------------------------------------------- */

static int make_executor(struct session *s, struct session_cpu *c)
{
	const struct offload *o = s->offload;
	struct executor_parts parts = {
		.slot_size = s->queues.env.slot_size, .data_size = c->layout.data_size};

	for (unsigned i = 0; i < o->program->nregions; i++)
		parts.region[i] = (struct executor_region){
			.mem = region_memory(o->bound[i].region, o->bound[i].part, o->bound[i].writable),
			.size = region_part_size(o->bound[i].region, o->bound[i].part),
			.writable = o->bound[i].writable,
		};
	return executor_new(&c->executor, o->program, &parts);
}

static int make_queue(struct session *s, struct session_cpu *c, const struct session_parts *parts)
{
	const struct rnic_plain_attr attr = {
		.size = s->queues.layout.size,
		.sends = c->layout.replies * executor_max_messages(s->offload->program) * (c->sends ? 2 : 1),
		.recvs = s->queues.layout.slots,
		.cookie = s->id,
		.events = parts->plain_events,
	};

	return rnic_plain_new(&c->queue, s->tenant->pd, parts->arena, &attr);
}

static void share_loops(const struct session *s, struct session_cpu *c)
{
	pthread_mutex_init(&c->own.lock, NULL);
	rate_init(&c->own.rate, s->offload->conf->loop_rate, TURN_WQES, s->since);
	c->loops = &s->first->cpu->own;
}

int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	struct session_cpu *c = calloc(1, sizeof(*c));
	struct chain_env *env = &s->queues.env;
	int r;

	if (!c)
		return -ENOMEM;
	s->cpu = c;
	env->slot_addr = request->slot_addr;
	env->slot_rkey = request->slot_rkey;
	env->slot_size = request->slot_size;
	env->slot_count = request->depth;
	c->sends = request->no_immediates || rnic_device_caps(parts->dev)->no_immediates;
	c->layout = layouts_for_cpu(s->offload, s->queues.layout.slots);
	c->outcomes = calloc(s->queues.layout.slots, sizeof(*c->outcomes));
	c->times = calloc(s->queues.layout.slots, sizeof(*c->times));
	c->awake = AWAKE_MAX_US;
	if (s->offload->program->loop)
		share_loops(s, c);
	r = c->outcomes && c->times ? make_executor(s, c) : -ENOMEM;
	if (r == 0)
		r = make_queue(s, c, parts);
	if (r == 0)
		r = rnic_conn_connect_plain(s->client.conn, c->queue, s->pacing.paced);
	if (r == 0)
		r = rnic_plain_arm(c->queue);
	if (r < 0)
		return r;
	s->queues.qpn = rnic_plain_qpn(c->queue);
	s->progress.armed = s->queues.layout.slots;
	return 0;
}

void session_cpu_stop(struct session_cpu *c)
{
	if (c)
		rnic_plain_stop(c->queue);
}

void session_cpu_free(struct session_cpu *c)
{
	if (!c)
		return;
	rnic_plain_free(c->queue);
	executor_free(c->executor);
	if (c->loops)
		pthread_mutex_destroy(&c->own.lock);
	free(c->outcomes);
	free(c->times);
	free(c);
}

/* ---- its memory: RECVs, then replies ---------------------------------------------------------- */

static uint64_t request_at(const struct session *s, uint64_t n)
{
	return n % s->queues.layout.slots * s->cpu->layout.recv_bytes;
}

static uint64_t reply_at(const struct session *s, uint64_t n)
{
	const struct layouts_cpu *l = &s->cpu->layout;

	return (uint64_t)s->queues.layout.slots * l->recv_bytes + n % l->replies * l->reply_bytes;
}

/* ---- completions ------------------------------------------------------------------------------ */

/* What a request lacks is zero, and it is answered like that, as by a NIC; then the session ends. A longer
 * one has failed */
static void take_request(struct session *s, const struct rnic_plain_completion *c, uint64_t number)
{
	uint32_t len = s->offload->img->arg_len;

	if (c->bytes == len)
		return;
	memset(rnic_plain_memory(s->cpu->queue) + request_at(s, number) + c->bytes, 0, len - c->bytes);
	if (s->cpu->is_short)
		return;
	s->cpu->is_short = true;
	s->cpu->short_one = number;
	verdict_set(&s->cpu->verdict, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u",
		number, c->bytes, len);
}

/* The same words as for a NIC (faults.c) */
static void judge(const struct session *s, const struct rnic_plain_completion *c)
{
	struct verdict *v = &s->cpu->verdict;
	const struct rnic_cqe cqe = {.syndrome = c->syndrome, .vendor = c->vendor};
	const struct offload *o = s->offload;
	const char *syndrome = rnic_syndrome_text(c->syndrome);

	if (c->syndrome == CQE_SYND_FLUSH)
		verdict_set(v, VERDICT_QUEUE, true,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			syndrome, c->vendor);
	else if (c->receive && c->syndrome == CQE_SYND_LOCAL_LENGTH)
		verdict_set(v, VERDICT_REQUEST, true, "a request was longer than %u bytes (%s, %#x)",
			o->img->arg_len, syndrome, c->vendor);
	else if (c->receive)
		verdict_set(v, VERDICT_REQUEST, true, "receiving a request failed: %s (%#x)", syndrome,
			c->vendor);
	else
		verdict_of_step(v, o->program, o->conf->path, 0, c->tag, &cqe);
	v->syndrome = c->syndrome;
	v->vendor = c->vendor;
}

/* What flushed the queue may be behind what is flushed */
static struct rnic_plain_completion find_cause(
	struct session_cpu *c, const struct rnic_plain_completion *some, int n)
{
	struct rnic_plain_completion cause = {.syndrome = CQE_SYND_FLUSH}, more[RNIC_PLAIN_BATCH];

	for (; n > 0; some = more, n = rnic_plain_poll(c->queue, more))
		for (int i = 0; i < n; i++)
			if (some[i].syndrome && cause.syndrome == CQE_SYND_FLUSH)
				cause = some[i];
	return cause;
}

/* Numbers have 32 bits on the wire */
static void count_done(struct session *s, uint32_t number, uint64_t now_ns)
{
	uint64_t n = s->cpu->done, end = n + (uint32_t)(number - (uint32_t)n);

	for (; n < end; n++)
		s->cpu->times[n % s->queues.layout.slots] =
			now_ns - s->cpu->times[n % s->queues.layout.slots];
	s->cpu->done = end;
}

/* False: a verdict */
static bool take_some(struct session *s, struct rnic_plain_completion *some, int n)
{
	uint64_t received = s->cpu->received, before = received, now_ns = clock_ns();
	bool good = true;

	for (int i = 0; i < n && good; i++) {
		if (some[i].syndrome) {
			struct rnic_plain_completion cause = find_cause(s->cpu, some + i, n - i);

			judge(s, &cause);
			good = false;
		} else if (some[i].receive && some[i].bytes > s->offload->img->arg_len) {
			/* The RECV has no more room, so a device that keeps to verbs has reported an error */
			const struct rnic_plain_completion cause = {
				.receive = true, .syndrome = CQE_SYND_LOCAL_LENGTH};

			judge(s, &cause);
			good = false;
		} else if (!some[i].receive) {
			count_done(s, some[i].number, now_ns);
		} else {
			take_request(s, &some[i], received);
			s->cpu->times[received++ % s->queues.layout.slots] = now_ns;
		}
	}
	if (received != before)
		s->cpu->received = received;
	return good;
}

/* 0: there are no more for now; 1: there may be; -1: a verdict */
static int take(struct session *s)
{
	struct rnic_plain_completion some[RNIC_PLAIN_BATCH];

	for (unsigned taken = 0; taken < TURN_COMPLETIONS;) {
		int n = rnic_plain_poll(s->cpu->queue, some);

		if (n == 0)
			return taken > 0;
		if (n < 0)
			some[0] = (struct rnic_plain_completion){.syndrome = CQE_SYND_FLUSH};
		if (!take_some(s, some, n < 0 ? 1 : n))
			return -1;
		if (n < RNIC_PLAIN_BATCH)
			return 1;
		taken += (unsigned)n;
	}
	return 1;
}

/* ---- requests --------------------------------------------------------------------------------- */

static void run_guarded(void *arg)
{
	struct session_cpu *c = arg;

	c->result = executor_run(c->executor, c->wqes);
}

/* The part of the request that is left, or as much of it as the turn allows */
static void run(struct session_cpu *c)
{
	uint64_t before = executor_wqes(c->executor), did;

	if (bus_guard(run_guarded, c) < 0) {
		c->cut_off = true;
		c->result = EXECUTOR_FAULT;
		return;
	}
	did = executor_wqes(c->executor) - before;
	c->wqes -= did < c->wqes ? did : c->wqes;
}

static void describe_fault(const struct session *s)
{
	struct verdict *v = &s->cpu->verdict;
	const struct executor_fault *f = executor_fault(s->cpu->executor);
	const struct rnic_cqe cqe = {.syndrome = f->syndrome, .index = (uint16_t)f->wqebb};
	const struct offload *o = s->offload;

	if (s->cpu->cut_off)
		verdict_set(v, VERDICT_STEP, true, "the data of the offload were cut off");
	else if (!f->syndrome)
		verdict_set(v, VERDICT_QUEUE, true, "the chain came to rest before its end");
	else if (f->queue == EXECUTOR_LOOP)
		verdict_of_loop(v, o->program, o->conf->path, &cqe);
	else
		verdict_of_step(v, o->program, o->conf->path, f->queue, f->wqebb, &cqe);
}

/* A request that exceeds its budget goes on until the event loop ends it, if the policy wants that; it is
 * reported once */
static void check_budget(struct session *s, uint64_t now)
{
	const struct catalog_offload *conf = s->offload->conf;
	struct session_cpu *c = s->cpu;
	uint64_t iterations = executor_iterations(c->executor), us = now - c->since;

	if (c->noted == c->begun || c->notes)
		return;
	if (conf->loop_budget && iterations > conf->loop_budget)
		verdict_set(&c->note, VERDICT_LOOP, false,
			"request %" PRIu64 " was %" PRIu64
			" times in the loop and is not answered; the loop budget is %" PRIu64 " iterations",
			c->begun - 1, iterations, conf->loop_budget);
	else if (conf->time_budget && us > conf->time_budget)
		verdict_set(&c->note, VERDICT_TIME, false,
			"request %" PRIu64 " was taken more than %" PRIu64
			" ms ago and is not answered; the time budget is %" PRIu64 " ms",
			c->begun - 1, us / 1000, conf->time_budget / 1000);
	else
		return;
	c->noted = c->begun;
	c->notes = true;
}

/* @m, number @i of its request, without its immediate, and then that */
static int send_number(struct session *s, uint64_t n, unsigned i, struct rnic_plain_send *m)
{
	struct session_cpu *c = s->cpu;
	struct rnic_plain_send number = *m;
	int r;

	number.opcode = WQE_OP_SEND;
	number.off = reply_at(s, n) + c->layout.data_size + 4ull * i;
	number.len = sizeof(number.imm);
	number.more_len = 0;
	wqe_put32(rnic_plain_memory(c->queue) + number.off, m->imm);
	m->opcode = WQE_OP_WRITE;
	m->solicited = false;
	r = rnic_plain_send(c->queue, m);
	return r == 0 ? rnic_plain_send(c->queue, &number) : r;
}

/* A WRITE and the WRITE with an immediate after it, beside each other in the slot: as one they do the same,
 * as the client looks at neither before it has the immediate */
static bool are_one(const struct executor_message *a, const struct executor_message *b)
{
	return a->opcode == WQE_OP_WRITE && b->opcode == WQE_OP_WRITE_IMM && a->len && b->len &&
	       (a->slot_at + a->len == b->slot_at || b->slot_at + b->len == a->slot_at);
}

/* Messages of the request that was executed */
static int send(struct session *s, uint64_t n)
{
	const struct chain_env *env = &s->queues.env;
	const uint64_t at = reply_at(s, n), slot = env->slot_addr + n % env->slot_count * env->slot_size;
	const struct executor_message *m;
	unsigned count, i = 0;
	int r = 0;

	m = executor_messages(s->cpu->executor, &count);
	while (i < count && r == 0) {
		const bool pair = i + 1 < count && are_one(&m[i], &m[i + 1]);
		const struct executor_message *low = &m[i], *high = &m[i + pair], *last = high;
		struct rnic_plain_send send = {.tag = m[i].wqebb, .rkey = env->slot_rkey};

		if (high->slot_at < low->slot_at) {
			low = high;
			high = &m[i];
		}
		send.opcode = last->opcode;
		send.solicited = last->solicited;
		send.imm = last->imm;
		send.off = at + low->from;
		send.len = low->len;
		send.remote = slot + low->slot_at;
		send.more_off = at + high->from;
		send.more_len = pair ? high->len : 0;
		r = s->cpu->sends && last->opcode == WQE_OP_WRITE_IMM ? send_number(s, n, i, &send)
								      : rnic_plain_send(s->cpu->queue, &send);
		i += 1u + pair;
	}
	return r;
}

static void begin(struct session *s, uint64_t now)
{
	struct session_cpu *c = s->cpu;
	uint8_t *mem = rnic_plain_memory(c->queue);

	executor_begin(c->executor, c->begun, mem + request_at(s, c->begun), mem + reply_at(s, c->begun));
	c->begun++;
	c->running = true;
	c->since = now;
}

static bool cannot_send(struct session_cpu *c, int r)
{
	verdict_set(&c->verdict, VERDICT_QUEUE, true, "a reply cannot be sent: %s", strerror(-r));
	return false;
}

/* The request has been executed. False: a verdict */
static bool finish(struct session *s)
{
	struct session_cpu *c = s->cpu;
	uint64_t n = c->begun - 1;
	int r;

	c->running = false;
	c->looped += executor_iterations(c->executor);
	c->outcomes[n % s->queues.layout.slots] =
		outcome_read(&s->offload->outcome, executor_replies(c->executor), 0);
	r = send(s, n);
	return r == 0 || cannot_send(c, r);
}

static bool has_next(const struct session_cpu *c)
{
	return c->begun < c->received && c->begun - c->done < c->layout.replies;
}

/* False: a verdict */
static bool execute(struct session *s, uint64_t now)
{
	struct session_cpu *c = s->cpu;
	int r;

	while (c->wqes && (c->running || has_next(c))) {
		if (!c->running)
			begin(s, now);
		run(c);
		if (c->result == EXECUTOR_FAULT)
			describe_fault(s);
		if (c->result == EXECUTOR_FAULT || (c->result == EXECUTOR_DONE && !finish(s)))
			return false;
		if (c->result == EXECUTOR_MORE)
			check_budget(s, now);
	}
	r = rnic_plain_flush(c->queue, (uint32_t)(c->begun - c->running));
	return r == 0 || cannot_send(c, r);
}

static enum session_cpu_turn end_broken(struct session_cpu *c)
{
	c->broken = true;
	return SESSION_CPU_BROKEN;
}

/* Work requests that a turn may execute. A loop rests when all that its rate allows has been used up. Another
 * connection may have turns meanwhile, so they are taken before, and give_back() returns the rest */
static uint64_t allowance(struct session_cpu *c, uint64_t now)
{
	uint64_t n;

	if (!c->loops)
		return TURN_WQES;
	pthread_mutex_lock(&c->loops->lock);
	n = rate_available(&c->loops->rate, now);
	n = n < TURN_WQES ? n : TURN_WQES;
	rate_take(&c->loops->rate, n);
	if (n == 0)
		c->rests_to = now + rate_delay(&c->loops->rate, TURN_WQES / 4, now);
	pthread_mutex_unlock(&c->loops->lock);
	return n;
}

static void give_back(struct session_cpu *c, uint64_t unused)
{
	if (!c->loops)
		return;
	pthread_mutex_lock(&c->loops->lock);
	rate_give(&c->loops->rate, unused);
	pthread_mutex_unlock(&c->loops->lock);
}

/* Polling after the last work is worth while if it found the next: then it goes on for longer, else less */
static void note_work(struct session_cpu *c, uint64_t now)
{
	if (!c->slept && c->awake < AWAKE_MAX_US)
		c->awake *= 2;
	c->active = now;
	c->slept = false;
}

static enum session_cpu_turn fall_asleep(struct session *s)
{
	struct session_cpu *c = s->cpu;
	int taken;

	if (rnic_plain_arm(c->queue) < 0)
		return SESSION_CPU_BUSY;
	/* what came before that raises no event */
	taken = take(s);
	if (taken < 0)
		return end_broken(c);
	if (taken)
		return SESSION_CPU_BUSY;
	if (c->slept && c->awake > AWAKE_MIN_US)
		c->awake /= 2;
	c->slept = true;
	return SESSION_CPU_ASLEEP;
}

enum session_cpu_turn session_cpu_turn(struct session *s, uint64_t now)
{
	struct session_cpu *c = s->cpu;
	uint64_t allowed = 0;
	int taken = take(s);

	if (taken < 0 || (c->is_short && c->done > c->short_one))
		return end_broken(c);
	if (c->running || has_next(c)) {
		allowed = c->wqes = allowance(c, now);
		if (allowed == 0)
			return SESSION_CPU_RESTING;
		if (!execute(s, now))
			return end_broken(c);
		give_back(c, c->wqes);
		c->iterations = c->looped + (c->running ? executor_iterations(c->executor) : 0);
	}
	if (taken || allowed)
		note_work(c, now);
	if (c->running || has_next(c) || now - c->active < c->awake)
		return SESSION_CPU_BUSY;
	return fall_asleep(s);
}

uint64_t session_cpu_resting(const struct session *s, uint64_t now)
{
	return now < s->cpu->rests_to ? s->cpu->rests_to - now : 0;
}

bool session_cpu_changed(struct session *s)
{
	struct session_cpu *c = s->cpu;
	bool changed = c->done != c->reported || c->broken || c->notes;

	c->reported = c->done;
	return changed;
}

/* ---- for the rest of the session -------------------------------------------------------------- */

bool session_cpu_sends(const struct session *s)
{
	return s->cpu->sends;
}

void session_cpu_settle(struct session *s)
{
	while (!s->cpu->broken && take(s) > 0)
		;
}

const struct verdict *session_cpu_broken(const struct session *s)
{
	return s->cpu->broken ? &s->cpu->verdict : NULL;
}

bool session_cpu_note(struct session *s, struct verdict *v)
{
	if (!s->cpu->notes)
		return false;
	*v = s->cpu->note;
	s->cpu->notes = false;
	return true;
}

uint64_t session_cpu_done(const struct session *s)
{
	return s->cpu->done;
}

uint64_t session_cpu_received(const struct session *s)
{
	return s->cpu->received;
}

uint64_t session_cpu_iterations(const struct session *s)
{
	return s->cpu->iterations;
}

struct outcome session_cpu_outcome(const struct session *s, uint64_t n)
{
	return s->cpu->outcomes[n % s->queues.layout.slots];
}

uint64_t session_cpu_took(const struct session *s, uint64_t n)
{
	return s->cpu->times[n % s->queues.layout.slots];
}

int session_cpu_post(struct session *s, uint64_t to)
{
	uint64_t off[RNIC_PLAIN_BATCH];
	int r = 0;

	while (r == 0 && s->progress.posted < to) {
		unsigned n = 0;

		for (; n < RNIC_PLAIN_BATCH && s->progress.posted + n < to; n++)
			off[n] = request_at(s, s->progress.posted + n);
		r = rnic_plain_receive(s->cpu->queue, off, n, s->offload->img->arg_len);
		s->progress.posted += r == 0 ? n : 0;
	}
	return r < 0 ? log_errno(r, "RECVs cannot be posted") : 0;
}
