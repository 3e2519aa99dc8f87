/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/session/cpu-internal.h"
#include "reddnd/util/bus-guard.h"
#include "util/clock.h"

#include <inttypes.h>
#include <string.h>

enum {
	LINE = 64,              /* of the cache */
	TURN_COMPLETIONS = 256, /* of a client that floods */
	AWAKE_MIN_US = 2,       /* if polling has found nothing again and again */
};

/* ---- completions ------------------------------------------------------------------------------ */

/* The WQEBB of the reply queue that failed, from the tag of a send and its syndrome. A message may be two of
 * them, of which the last one needs a RECV */
static uint32_t failed_wqebb(uint32_t tag, uint8_t syndrome)
{
	return syndrome == CQE_SYND_RNR_RETRY ? tag >> 16 : tag & 0xffff;
}

/* What a request lacks is zero, and it is answered like that, as by a NIC; then the session ends. A longer
 * one has failed */
static void take_request(struct session *s, const struct rnic_plain_completion *c, uint64_t number)
{
	uint32_t len = s->offload->img->arg_len;

	if (c->bytes == len)
		return;
	program_complete(
		s->offload->program, rnic_plain_memory(s->cpu->queue) + cpu_request_at(s, number), c->bytes);
	if (s->cpu->is_short || s->cpu->faulted)
		return;
	s->cpu->is_short = true;
	s->cpu->short_one = number;
	verdict_set(&s->cpu->verdict, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u",
		number, c->bytes, len);
}

/* The same words as for a NIC (queues.c). A request that was wrong before has the last word; a short one is
 * still executed, so what fails may be before it, unless that is only flushed */
static void judge(const struct session *s, const struct rnic_plain_completion *c)
{
	struct verdict *v = &s->cpu->verdict;
	const struct rnic_cqe cqe = {.syndrome = c->syndrome, .vendor = c->vendor};
	const struct offload *o = s->offload;
	const char *syndrome = rnic_syndrome_text(c->syndrome);

	if (s->cpu->faulted || (s->cpu->is_short && c->syndrome == CQE_SYND_FLUSH))
		return;
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
		verdict_of_step(v, o->program, o->conf->path, 0, failed_wqebb(c->tag, c->syndrome), &cqe);
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

/* Numbers have 32 bits. Returns what is done then */
static uint64_t count_done(struct session *s, uint64_t received, uint64_t n, uint32_t number, uint64_t now_ns)
{
	uint64_t end = n + (uint32_t)(number - (uint32_t)n);

	for (; n < end && n < received; n++)
		cpu_request(s, n)->ns = now_ns - cpu_request(s, n)->ns;
	return n;
}

/* False: a verdict */
static bool take_some(struct session *s, struct rnic_plain_completion *some, int n)
{
	uint64_t received = s->cpu->received, done = s->cpu->done, now_ns = clock_ns();
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
			done = count_done(s, received, done, some[i].number, now_ns);
		} else {
			take_request(s, &some[i], received);
			cpu_request(s, received++)->ns = now_ns;
		}
	}
	if (received != s->cpu->received)
		s->cpu->received = received;
	if (done != s->cpu->done)
		s->cpu->done = done;
	return good;
}

int session_cpu_take(struct session *s)
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

/* ---- replies ---------------------------------------------------------------------------------- */

/* @m, number @i of its request, without its immediate, and then that */
static int send_number(struct session *s, uint64_t n, unsigned i, struct rnic_plain_send *m)
{
	struct session_cpu *c = s->cpu;
	struct rnic_plain_send number = *m;
	int r;

	number.opcode = WQE_OP_SEND;
	number.off = cpu_reply_at(s, n) + c->layout.data_size + 4ull * i;
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

/* Adds the messages of request @n, which was just executed. 0 or -errno */
static int send_replies(struct session *s, uint64_t n)
{
	const struct chain_env *env = &s->queues.env;
	const uint64_t at = cpu_reply_at(s, n), slot = env->slot_addr + n % env->slot_count * env->slot_size;
	const struct executor_message *m;
	unsigned count, i = 0;
	int r = 0;

	m = executor_messages(s->cpu->executor, &count);
	while (i < count && r == 0) {
		const bool pair = i + 1 < count && are_one(&m[i], &m[i + 1]);
		const struct executor_message *low = &m[i], *high = &m[i + pair], *last = high;
		struct rnic_plain_send send = {.tag = m[i].wqebb | last->wqebb << 16, .rkey = env->slot_rkey};

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
		r = s->sends && last->opcode == WQE_OP_WRITE_IMM ? send_number(s, n, i, &send)
								 : rnic_plain_send(s->cpu->queue, &send);
		i += 1u + pair;
	}
	return r;
}

/* ---- requests --------------------------------------------------------------------------------- */

/* The part of the request that is left, or as much of it as the turn allows */
static enum executor_result run(struct session_cpu *c)
{
	uint64_t before = executor_wqes(c->executor), did;
	enum executor_result r = executor_run(c->executor, c->wqes);

	did = executor_wqes(c->executor) - before;
	c->wqes -= did < c->wqes ? did : c->wqes;
	return r;
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

static const uint8_t *request_of(const struct session *s, uint64_t n)
{
	return rnic_plain_memory(s->cpu->queue) + cpu_request_at(s, n);
}

/* What requests read is in the cache by then, if they have come already: first what they name, and a request
 * later, when that is there, the beginning of what it leads to */
static void prefetch(struct session *s)
{
	struct session_cpu *c = s->cpu;
	const uint64_t ahead = c->received - c->begun;
	const uint8_t *at[EXECUTOR_READS];
	unsigned n;

	if (c->blind)
		return;
	c->looking = true;
	atomic_signal_fence(memory_order_seq_cst);
	n = ahead > 1 ? executor_reads(c->executor, request_of(s, c->begun + 1), at) : 0;
	while (n)
		__builtin_prefetch(at[--n]);
	n = ahead > 0 ? executor_reads_then(c->executor, request_of(s, c->begun), at) : 0;
	while (n) {
		__builtin_prefetch(at[--n]);
		__builtin_prefetch(at[n] + LINE);
	}
	atomic_signal_fence(memory_order_seq_cst);
	c->looking = false;
}

static void begin(struct session *s)
{
	struct session_cpu *c = s->cpu;
	uint8_t *mem = rnic_plain_memory(c->queue);

	executor_begin(
		c->executor, c->begun, mem + cpu_request_at(s, c->begun), mem + cpu_reply_at(s, c->begun));
	c->begun++;
	c->running = true;
	c->since = c->now;
	prefetch(s);
}

/* The request has been executed. 0 or -errno */
static int finish(struct session *s)
{
	struct session_cpu *c = s->cpu;
	uint64_t n = c->begun - 1;

	c->running = false;
	c->looped += executor_iterations(c->executor);
	cpu_request(s, n)->outcome = outcome_read(&s->offload->outcome, executor_replies(c->executor), 0);
	return send_replies(s, n);
}

static bool has_next(const struct session_cpu *c)
{
	return c->begun < c->received && c->begun - c->done < c->layout.replies;
}

/* After a fault those before it are still answered, as by a NIC */
static bool has_work(const struct session_cpu *c)
{
	return !c->faulted && (c->running || has_next(c));
}

/* Of a request that was wrong before, the words stay */
static void fault(struct session *s)
{
	struct session_cpu *c = s->cpu;

	if (!c->is_short || c->short_one >= c->begun - 1)
		describe_fault(s);
	c->faulted = true;
}

/* All of a turn is under one guard: one for each request takes 60 instructions. Only executor_run()
 * and prefetch() read memory of others. */
static void execute_guarded(void *arg)
{
	struct session *s = arg;
	struct session_cpu *c = s->cpu;

	while (c->wqes && has_work(c) && c->error == 0) {
		enum executor_result r;

		if (!c->running)
			begin(s);
		r = run(c);
		if (r == EXECUTOR_DONE)
			c->error = finish(s);
		else if (r == EXECUTOR_MORE)
			check_budget(s, c->now);
		else
			fault(s);
	}
}

/* False: a verdict */
static bool execute(struct session *s)
{
	struct session_cpu *c = s->cpu;

	while (bus_guard(execute_guarded, s) < 0) {
		c->blind = c->looking;
		c->looking = false;
		if (c->blind)
			continue; /* the request whose bytes these are has its turn, or its place is right by
				     then */
		c->cut_off = true;
		fault(s);
	}
	if (c->error == 0)
		c->error = rnic_plain_flush(c->queue, (uint32_t)(c->begun - c->running));
	if (c->error < 0)
		verdict_set(
			&c->verdict, VERDICT_QUEUE, true, "a reply cannot be sent: %s", strerror(-c->error));
	return c->error == 0;
}

/* There is a verdict, and nothing before it is under way */
static bool is_over(const struct session_cpu *c)
{
	return (c->is_short && c->done > c->short_one) || (c->faulted && c->done == c->begun - 1);
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
	struct loops *loops = c->loops;
	uint64_t n;

	if (!loops)
		return TURN_WQES;
	pthread_mutex_lock(&loops->lock);
	n = rate_available(&loops->rate, now);
	n = n < TURN_WQES ? n : TURN_WQES;
	rate_take(&loops->rate, n);
	if (n == 0)
		c->rests_to = now + rate_delay(&loops->rate, TURN_WQES / 4, now);
	pthread_mutex_unlock(&loops->lock);
	return n;
}

static void give_back(struct session_cpu *c, uint64_t unused)
{
	struct loops *loops = c->loops;

	if (!loops)
		return;
	pthread_mutex_lock(&loops->lock);
	rate_give(&loops->rate, unused);
	pthread_mutex_unlock(&loops->lock);
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
	taken = session_cpu_take(s);
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
	bool good;
	int taken = session_cpu_take(s);

	if (taken < 0 || is_over(c))
		return end_broken(c);
	if (has_work(c)) {
		allowed = c->wqes = allowance(c, now);
		if (allowed == 0)
			return SESSION_CPU_RESTING;
		c->now = now;
		good = execute(s);
		give_back(c, c->wqes);
		if (!good || is_over(c))
			return end_broken(c);
		c->iterations = c->looped + (c->running ? executor_iterations(c->executor) : 0);
	}
	if (taken || allowed)
		note_work(c, now);
	if (has_work(c) || taken || allowed)
		return SESSION_CPU_BUSY;
	return now - c->active < c->awake ? SESSION_CPU_IDLE : fall_asleep(s);
}

uint64_t session_cpu_resting(const struct session *s, uint64_t now)
{
	return now < s->cpu->rests_to ? s->cpu->rests_to - now : 0;
}

bool session_cpu_changed(struct session *s)
{
	struct session_cpu *c = s->cpu;
	const uint64_t done = c->done, unreported = done - c->reported;

	if (unreported < c->batch && !(unreported && c->slept) && !c->broken && !c->notes)
		return false;
	c->reported = done;
	return true;
}
