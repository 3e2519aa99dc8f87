/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu.h"

#include "reddnd/session/count.h"
#include "reddnd/session/cpu-internal.h"
#include "reddnd/session/cpu-threads.h"
#include "reddnd/session/limits.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <string.h>

/* ---- life ------------------------------------------------------------------------------------- */

static int make_executor(struct session *s, struct session_cpu *c)
{
	const struct offload *o = s->offload;
	struct executor_parts parts = {
		.slot_size = s->queues.env.slot_size, .data_size = c->layout.data_size};

	for (unsigned i = 0; i < o->program->nregions; i++)
		parts.region[i] = (struct executor_region){
			.mem = region_memory(o->bound[i].region, o->bound[i].part),
			.size = region_part_size(o->bound[i].region, o->bound[i].part),
			.writable = o->bound[i].writable,
		};
	return executor_new(&c->executor, o->program, &parts);
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

/* All but its queues */
static int prepare(struct session *s, const struct session_parts *parts, const struct request *request)
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
	c->layout = layouts_for_cpu(s->offload, s->queues.layout.slots);
	c->requests = calloc(s->queues.layout.slots, sizeof(*c->requests));
	c->awake = AWAKE_MAX_US;
	session_cpu_set_paced(s, session_is_paced(s));
	if (s->offload->program->loop)
		make_loops(s, c);
	c->threads = parts->threads;
	r = c->requests ? cpu_threads_choose(c->threads, &c->events) : -ENOMEM;
	return r == 0 ? make_executor(s, c) : r;
}

static int begin_queue(struct session *s, const struct session_parts *parts)
{
	struct rnic_plain_attr attr = layouts_cpu_queue(s->offload, s->queues.layout.slots, s->sends);
	struct session_cpu *c = s->cpu;
	int r;

	attr.cookie = s->id;
	attr.events = c->events;
	attr.slot = s->slot;
	r = rnic_plain_new(&c->queue, s->domain->pd, parts->arena, &attr);
	if (r == 0)
		r = rnic_conn_connect_plain(s->client.conn, c->queue, session_is_paced(s));
	return r == 0 ? rnic_plain_arm(c->queue) : r;
}

int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	int r = prepare(s, parts, request);

	if (r < 0)
		return r;
	s->sends = request->no_immediates || rnic_device_caps(parts->dev)->no_immediates;
	if (s->sends)
		s->queues.layout.size = s->queues.layout.sends_size;
	r = begin_queue(s, parts);
	if (r < 0)
		return r;
	s->queues.qpn = rnic_plain_qpn(s->cpu->queue);
	s->progress.armed = s->queues.layout.slots;
	return 0;
}

/* ---- ending ----------------------------------------------------------------------------------- */

static void cpu_stop(struct session *s)
{
	cpu_threads_remove(s->cpu->threads, s);
	rnic_plain_stop(s->cpu->queue);
}

void session_cpu_free(struct session_cpu *c)
{
	if (!c)
		return;
	rnic_plain_free(c->queue);
	executor_free(c->executor);
	if (c->loops)
		pthread_mutex_destroy(&c->own.lock);
	free(c->requests);
	free(c);
}

/* ---- for the rest of the session -------------------------------------------------------------- */

void session_cpu_settle(struct session *s)
{
	struct session_cpu *c = s->cpu;
	int r = !c->broken;

	while (r > 0)
		r = session_cpu_take(s);
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

uint64_t session_cpu_received(const struct session *s, uint64_t to)
{
	(void)to;
	return s->cpu->received;
}

static uint64_t session_cpu_iterations(const struct session *s)
{
	return s->cpu->iterations;
}

/* As long as no RECV has been posted for the next request in its slot. */
static enum session_known session_cpu_outcome(const struct session *s, uint64_t n, struct outcome *out)
{
	*out = cpu_request(s, n)->outcome;
	return SESSION_KNOWN;
}

/* Those that were taken together, and completed together, are counted together */
static void cpu_count(struct session *s)
{
	uint64_t from = s->progress.done, n;

	s->progress.done = s->cpu->done;
	for (; from < s->progress.done; from += n) {
		uint64_t ns = cpu_request(s, from)->ns;

		for (n = 1; from + n < s->progress.done && cpu_request(s, from + n)->ns == ns;)
			n++;
		session_took(s, ns, n);
	}
}

static uint64_t cpu_postable(const struct session *s)
{
	return s->progress.armed - 1;
}

static int cpu_post(struct session *s, uint64_t to)
{
	int r = s->progress.posted < to ? rnic_plain_receive(s->cpu->queue, to) : 0;

	if (r < 0)
		return log_errno(r, "RECVs cannot be posted");
	s->progress.posted = to > s->progress.posted ? to : s->progress.posted;
	return 0;
}

/* ---- engine ----------------------------------------------------------------------------------- */

static int cpu_serve(struct session *s)
{
	return cpu_threads_add(s->cpu->threads, s);
}

static int cpu_settle(struct session *s, struct verdict *v)
{
	const struct verdict *broken;

	cpu_threads_remove(s->cpu->threads, s);
	session_cpu_settle(s);
	broken = session_cpu_broken(s);
	if (broken)
		*v = *broken;
	return broken != NULL;
}

static void cpu_free(struct session *s)
{
	session_cpu_free(s->cpu);
}

const struct session_engine engine_cpu = {
	.judges_budgets = true,
	.begin = session_cpu_begin,
	.serve = cpu_serve,
	.postable = cpu_postable,
	.post = cpu_post,
	.pace = session_cpu_set_paced,
	.count = cpu_count,
	.iterations = session_cpu_iterations,
	.received = session_cpu_received,
	.outcome = session_cpu_outcome,
	.settle = cpu_settle,
	.stop = cpu_stop,
	.free = cpu_free,
};
