/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/arrivals.h"

#include "reddnd/generation/bindings.h"
#include "reddnd/generation/generation.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { ACCURACY_US = 10000, MS = 1000 };

/* An address that does not resolve takes a thread for a second. A tenant has jobs of two kinds, for addresses
 * that are known and for others */
static const struct worker_limits resolver_limits = {.threads = 12, .running = 3, .pending = ARRIVALS_MAX};

struct arrival {
	struct worker_job job;
	struct arrivals *of;
	struct session_client client;
	struct admit_result admitted;
	uint8_t gid[16];
	bool known; /* its address answered before */
	sd_event_source *timer;
	bool resolved;
	bool busy;            /* a worker has the job */
	atomic_bool answered; /* to be freed when the job is done */
	int error;            /* of the job */
	TAILQ_ENTRY(arrival) link;
};

static void step(struct arrival *v);

static void arrival_free(struct arrival *v)
{
	TAILQ_REMOVE(&v->of->all, v, link);
	sd_event_source_disable_unref(v->timer);
	if (v->client.conn)
		rnic_conn_free(v->client.conn);
	generation_leave(v->admitted.offload);
	free(v);
}

static void forget(struct arrival *v)
{
	v->answered = true;
	v->timer = sd_event_source_disable_unref(v->timer);
	if (!v->busy)
		arrival_free(v);
}

static void refuse(struct arrival *v, const struct reddn_wire_rej *rej)
{
	v->of->ops->refused(v->of->arg, &v->client, &v->admitted, rej);
	forget(v);
}

static void refuse_unreachable(struct arrival *v, const char *why)
{
	struct reddn_wire_rej rej;

	request_refuse(
		&rej, REDDN_REJ_INTERNAL, 0, "the network does not know the address of the client: %s", why);
	refuse(v, &rej);
}

static void refuse_shutdown(struct arrival *v)
{
	struct reddn_wire_rej rej;

	request_refuse(&rej, REDDN_REJ_SHUTDOWN, 0, "the daemon stops");
	refuse(v, &rej);
}

/* ---- addresses ---- */

/* Others with the GID of @v waited for what it learnt. The first of them may make others wait again. */
static void wake_others(const struct arrival *v)
{
	struct arrivals *a = v->of;
	struct arrival *o, *next;

	for (o = TAILQ_FIRST(&a->all); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o != v && !o->busy && !o->answered && memcmp(o->gid, v->gid, sizeof(v->gid)) == 0)
			step(o);
	}
}

/* A client that was refused while it waited for a thread takes none any more */
static void resolve(struct worker_job *job)
{
	struct arrival *v = (struct arrival *)job;

	v->error = v->answered ? -ECANCELED : rnic_conn_resolve(v->client.conn, v->of->dev);
}

static void note_answer(struct arrival *v)
{
	if (v->error == 0) {
		reachability_answered(&v->of->reachability, v->gid, clock_us());
		rnic_conn_remember(v->client.conn, &v->of->memory, clock_us());
	} else if (v->error != -ECANCELED) {
		reachability_failed(&v->of->reachability, v->gid, clock_us());
	}
}

static void on_resolved(struct worker_job *job)
{
	struct arrival *v = (struct arrival *)job;
	struct arrivals *a = v->of;

	v->busy = false;
	v->resolved = !job->canceled && v->error == 0;
	if (!job->canceled)
		note_answer(v);
	wake_others(v);
	if (v->answered)
		arrival_free(v);
	else if (job->canceled || a->ending)
		refuse_shutdown(v);
	else if (v->error < 0)
		refuse_unreachable(v, strerror(-v->error));
	else
		step(v);
}

static bool is_being_resolved(const struct arrivals *a, const uint8_t gid[16])
{
	const struct arrival *o;

	TAILQ_FOREACH (o, &a->all, link)
		if (o->busy && !o->resolved && memcmp(o->gid, gid, 16) == 0)
			return true;
	return false;
}

/* ---- regions ---- */

static struct rnic_pd *pd_of(const struct arrival *v)
{
	return v->admitted.tenant->domain[v->of->device].pd;
}

static void register_regions(struct worker_job *job)
{
	struct arrival *v = (struct arrival *)job;
	struct chain_env env;

	v->error = bindings_register(v->admitted.offload, pd_of(v), &env);
}

static void on_registered(struct worker_job *job)
{
	struct arrival *v = (struct arrival *)job;
	struct reddn_wire_rej rej;

	v->busy = false;
	if (v->answered) {
		arrival_free(v);
	} else if (job->canceled || v->of->ending) {
		refuse_shutdown(v);
	} else if (v->error < 0) {
		request_refuse(&rej, REDDN_REJ_INTERNAL, 0,
			"the server could not register the regions of the offload: %s", strerror(-v->error));
		refuse(v, &rej);
	} else {
		step(v);
	}
}

/* ---- life ---- */

static void submit(struct arrival *v, struct worker *w, void (*run)(struct worker_job *job),
	void (*done)(struct worker_job *job))
{
	struct reddn_wire_rej rej;

	v->job = (struct worker_job){.key = v->admitted.tenant,
		.kind = w == v->of->resolver && v->known,
		.run = run,
		.done = done};
	v->busy = true;
	if (worker_submit(w, &v->job) == 0)
		return;
	v->busy = false;
	request_refuse(&rej, REDDN_REJ_RESOURCES, 0, "too many clients of tenant %s connect at once",
		v->admitted.tenant->name);
	refuse(v, &rej);
}

/* What is next */
static void step(struct arrival *v)
{
	struct arrivals *a = v->of;

	if (!v->resolved)
		v->resolved = rnic_conn_recall(v->client.conn, &a->memory, clock_us());
	if (a->ending) {
		refuse_shutdown(v);
	} else if (!v->resolved) {
		if (reachability_is_silent(&a->reachability, v->gid, clock_us()))
			refuse_unreachable(v, "it did not answer some seconds ago");
		else if (!is_being_resolved(a, v->gid))
			submit(v, a->resolver, resolve, on_resolved);
	} else if (!bindings_are_registered(v->admitted.offload, pd_of(v))) {
		submit(v, a->registrar, register_regions, on_registered);
	} else {
		if (a->ops->ready(a->arg, &v->client, &v->admitted))
			v->client.conn = NULL;
		forget(v);
	}
}

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
	struct arrival *v = arg;
	struct reddn_wire_rej rej;

	(void)source;
	(void)usec;
	request_refuse(&rej, REDDN_REJ_RESOURCES, 0,
		v->resolved ? "the server registers regions for longer than %" PRIu64 " ms"
			    : "the address of the client was not resolved within %" PRIu64 " ms",
		v->of->connect_timeout / MS);
	refuse(v, &rej);
	return 0;
}

static unsigned count(const struct arrivals *a, const struct tenant *tenant, bool known)
{
	const struct arrival *v;
	unsigned n = 0;

	TAILQ_FOREACH (v, &a->all, link)
		n += v->admitted.tenant == tenant && v->known == known;
	return n;
}

/* NULL: no memory, or there are too many */
static struct arrival *arrival_new(
	struct arrivals *a, const struct session_client *client, const struct admit_result *admitted)
{
	struct arrival *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->of = a;
	v->client = *client;
	v->admitted = *admitted;
	rnic_conn_gid(client->conn, v->gid);
	v->known = reachability_is_known(&a->reachability, v->gid, clock_us());
	if (count(a, admitted->tenant, v->known) == ARRIVALS_MAX ||
		sd_event_add_time_relative(a->event, &v->timer, CLOCK_MONOTONIC, a->connect_timeout,
			ACCURACY_US, on_late, v) < 0) {
		free(v);
		return NULL;
	}
	generation_use(admitted->offload);
	TAILQ_INSERT_TAIL(&a->all, v, link);
	return v;
}

void arrivals_add(
	struct arrivals *a, const struct session_client *client, const struct admit_result *admitted)
{
	struct arrival *v = arrival_new(a, client, admitted);
	struct reddn_wire_rej rej;

	if (v) {
		step(v);
		return;
	}
	request_refuse(&rej, REDDN_REJ_RESOURCES, 0, "too many clients of tenant %s connect at once",
		admitted->tenant->name);
	a->ops->refused(a->arg, client, admitted, &rej);
	rnic_conn_free(client->conn);
}

int arrivals_init(struct arrivals *a, sd_event *event, struct rnic_device *dev, unsigned device,
	struct worker *registrar, const struct arrivals_ops *ops, void *arg)
{
	TAILQ_INIT(&a->all);
	a->event = event;
	a->dev = dev;
	a->device = device;
	a->registrar = registrar;
	a->ops = ops;
	a->arg = arg;
	return worker_new(&a->resolver, event, "reddnd-resolve", &resolver_limits);
}

void arrivals_end(struct arrivals *a)
{
	struct arrival *v, *next;

	a->ending = true;
	if (a->resolver)
		worker_free(a->resolver);
	a->resolver = NULL;
	/* Those whose regions are being registered are freed when that is done */
	for (v = TAILQ_FIRST(&a->all); v; v = next) {
		next = TAILQ_NEXT(v, link);
		if (!v->answered)
			refuse_shutdown(v);
	}
}
