/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu.h"

#include "reddnd/session/cpu-completions.h"
#include "reddnd/session/cpu-counters.h"
#include "reddnd/session/cpu-replies.h"
#include "reddnd/session/cpu-state.h"
#include "reddnd/util/bus-guard.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	LINE = 64,         /* of the cache */
	TURN_WQES = 4000,  /* some 100 us */
	AWAKE_MAX_US = 50, /* without work, before it sleeps: an event takes longer than that */
	AWAKE_MIN_US = 2,  /* if polling has found nothing again and again */
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

static struct rnic_plain_attr queue_attr(const struct session *s, const struct session_parts *parts)
{
	struct rnic_plain_attr attr = layouts_cpu_queue(s->offload, s->queues.layout.slots, s->cpu->sends);

	attr.cookie = s->id;
	attr.events = parts->plain_events;
	attr.slot = s->slot;
	return attr;
}

void session_cpu_share_loops(struct session *s)
{
	if (s->cpu && s->cpu->loops && s->first->cpu)
		s->cpu->loops = &s->first->cpu->own;
}

/* Half of the slots that a client at its depth does not need: it is at work while the rest is used up */
void session_cpu_set_paced(struct session *s, bool paced)
{
	if (s->cpu)
		s->cpu->batch = paced ? 1 : (s->queues.layout.slots - s->queues.env.slot_count) / 2;
}

static void make_loops(struct session *s, struct session_cpu *c)
{
	pthread_mutex_init(&c->own.lock, NULL);
	rate_init(&c->own.rate, s->offload->conf->loop_rate, TURN_WQES, s->since);
	c->loops = &c->own;
}

static void choose_sends(struct session *s, bool sends)
{
	s->cpu->sends = sends;
	if (sends)
		s->queues.layout.size = s->queues.layout.sends_size;
}

/* All but its queues */
static int prepare(struct session *s, const struct request *request)
{
	struct session_cpu *c = calloc(1, sizeof(*c));
	struct chain_env *env = &s->queues.env;

	if (!c)
		return -ENOMEM;
	s->cpu = c;
	env->slot_addr = request->slot_addr;
	env->slot_rkey = request->slot_rkey;
	env->slot_size = request->slot_size;
	env->slot_count = request->depth;
	c->kept = s->slot ? &s->slot->session.cpu : &c->unkept;
	c->layout = layouts_for_cpu(s->offload, s->queues.layout.slots);
	c->times = calloc(s->queues.layout.slots, sizeof(*c->times));
	c->awake = AWAKE_MAX_US;
	session_cpu_set_paced(s, session_is_paced(s));
	if (s->offload->program->loop)
		make_loops(s, c);
	return c->times ? make_executor(s, c) : -ENOMEM;
}

static int begin_queue(struct session *s, const struct session_parts *parts)
{
	const struct rnic_plain_attr attr = queue_attr(s, parts);
	struct session_cpu *c = s->cpu;
	int r = rnic_plain_new(&c->queue, s->domain->pd, parts->arena, &attr);

	if (r == 0)
		r = rnic_conn_connect_plain(s->client.conn, c->queue, session_is_paced(s));
	return r == 0 ? rnic_plain_arm(c->queue) : r;
}

int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	int r = prepare(s, request);

	if (r < 0)
		return r;
	choose_sends(s, request->no_immediates || rnic_device_caps(parts->dev)->no_immediates);
	s->cpu->kept->sends = s->cpu->sends;
	r = begin_queue(s, parts);
	if (r < 0)
		return r;
	s->queues.qpn = rnic_plain_qpn(s->cpu->queue);
	s->progress.armed = s->queues.layout.slots;
	return 0;
}

/* ---- taking over ------------------------------------------------------------------------------ */

const char *session_cpu_obstacle(const struct ledger_slot *slot, const struct offload *o)
{
	const struct ledger_cpu *l = &slot->session.cpu;

	if (slot->block.size == 0)
		return "the server was restarted or upgraded, and its CPU executes this offload; connect "
		       "again";
	if (l->spoilt)
		return "the server was restarted when the session was about to end; connect again";
	if (!o->cpu)
		return "the server was restarted, and the NIC executes the offload now; connect again";
	if (offload_writes(o) && cpu_counters_amid(l))
		return "the server was restarted in the middle of a request that may have written to a "
		       "region; connect again";
	return NULL;
}

/* What the event loop of the other daemon had not counted yet is counted by this one */
static int restore_progress(struct session *s, const struct cpu_counters *k)
{
	const struct ledger_counters *l = &s->slot->session.counters;
	unsigned slots = s->queues.layout.slots;
	uint16_t ahead = (uint16_t)(rnic_plain_received(s->cpu->queue) - k->received);

	/* .read is written after .done (session_note()) */
	if (l->done > k->done || l->read > l->done || l->done - l->read > slots ||
		k->received + ahead > l->done + slots)
		return -EBADMSG;
	s->progress.done = l->done;
	s->progress.posted = k->received + ahead;
	s->progress.armed = l->done + slots;
	s->counters.read = l->read;
	return 0;
}

/* A request that was being executed is executed from its start; so are its loops */
static void restore_state(struct session *s, const struct cpu_counters *k)
{
	struct session_cpu *c = s->cpu;

	c->received = k->received;
	c->begun = k->finished;
	c->done = k->done;
	c->reported = s->progress.done;
	c->looped = s->slot->session.counters.iterations;
	c->iterations = c->looped;
	c->timed = k->received;
}

int session_cpu_adopt(struct session *s, const struct session_parts *parts, const struct request *request)
{
	struct rnic_plain_attr attr;
	struct cpu_counters k;
	int r = prepare(s, request);

	if (r < 0)
		return r;
	choose_sends(s, s->cpu->kept->sends);
	r = cpu_counters_read(s->cpu->kept, s->queues.layout.slots, s->cpu->layout.replies, &k);
	if (r < 0)
		return r;
	attr = queue_attr(s, parts);
	r = rnic_plain_adopt(&s->cpu->queue, s->domain->pd, parts->arena, &attr,
		&(struct rnic_plain_position){.completions = k.cqes, .sends = k.added});
	if (r == 0)
		r = restore_progress(s, &k);
	if (r < 0)
		return r;
	rnic_plain_go_on(s->cpu->queue, k.finished);
	s->queues.qpn = rnic_plain_qpn(s->cpu->queue);
	restore_state(s, &k);
	return 0;
}

/* ---- ending ----------------------------------------------------------------------------------- */

void session_cpu_stop(struct session_cpu *c)
{
	if (c)
		rnic_plain_stop(c->queue);
}

static void forget(struct session_cpu *c)
{
	executor_free(c->executor);
	if (c->loops)
		pthread_mutex_destroy(&c->own.lock);
	free(c->times);
	free(c);
}

void session_cpu_free(struct session_cpu *c)
{
	if (!c)
		return;
	rnic_plain_free(c->queue);
	forget(c);
}

void session_cpu_forget(struct session_cpu *c)
{
	if (!c)
		return;
	rnic_plain_forget(c->queue);
	forget(c);
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
	cpu_counters_begun(c->kept, ++c->begun);
	c->running = true;
	c->since = c->now;
	prefetch(s);
}

/* The request has been executed. 0 or -errno */
static int finish(struct session *s)
{
	struct session_cpu *c = s->cpu;
	struct outcome out = outcome_read(&s->offload->outcome, executor_replies(c->executor), 0);
	uint64_t n = c->begun - 1;
	int r;

	c->running = false;
	c->looped += executor_iterations(c->executor);
	*cpu_outcome_at(s, n) = out.bytes << 1 | out.hit;
	r = cpu_replies_send(s, n);
	cpu_counters_finished(c->kept, c->begun, rnic_plain_added(c->queue));
	return r;
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
	taken = cpu_completions_take(s);
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
	int taken = cpu_completions_take(s);

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

/* ---- for the rest of the session -------------------------------------------------------------- */

bool session_cpu_sends(const struct session *s)
{
	return s->cpu->sends;
}

void session_cpu_settle(struct session *s)
{
	struct session_cpu *c = s->cpu;
	int r = !c->broken;

	while (r > 0)
		r = cpu_completions_take(s);
	if (c->faulted || c->is_short || (r < 0 && c->verdict.syndrome != CQE_SYND_FLUSH))
		c->broken = true;
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
	uint64_t out = *cpu_outcome_at(s, n);

	return (struct outcome){.hit = out & 1, .bytes = out >> 1};
}

uint64_t session_cpu_timed(const struct session *s)
{
	return s->cpu->timed;
}

uint64_t session_cpu_took(const struct session *s, uint64_t n)
{
	return s->cpu->times[cpu_slot(s, n)];
}

int session_cpu_post(struct session *s, uint64_t to)
{
	int r = s->progress.posted < to ? rnic_plain_receive(s->cpu->queue, to) : 0;

	if (r < 0)
		return log_errno(r, "RECVs cannot be posted");
	s->progress.posted = to > s->progress.posted ? to : s->progress.posted;
	return 0;
}
