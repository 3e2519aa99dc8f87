/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server.h"

#include "reddnd/catalog/catalog.h"
#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/events.h"
#include "reddnd/server/live.h"
#include "reddnd/server/server-state.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- what a reload cannot change ---- */

static bool is_same_address(const struct catalog_listen *a, const struct catalog_listen *b)
{
	return a->port == b->port && strcmp(a->address, b->address) == 0;
}

static bool is_same_listen(const struct catalog *a, const struct catalog *b)
{
	bool same = a->nlisten == b->nlisten;

	for (unsigned i = 0; i < a->nlisten && same; i++)
		same = is_same_address(&a->listen[i], &b->listen[i]);
	return same;
}

static bool is_same_device(const struct catalog *a, const struct catalog *b)
{
	bool same = a->all_devices == b->all_devices && a->ndevices == b->ndevices;

	for (unsigned i = 0; i < a->ndevices && same; i++)
		same = strcmp(a->devices[i], b->devices[i]) == 0;
	return same;
}

/* The name of a setting that sessions depend on and that differs in @next; NULL: there is none */
static const char *reload_conflict(const struct catalog *now, const struct catalog *next)
{
	if (!is_same_listen(now, next))
		return "listen";
	if (!is_same_device(now, next))
		return "device";
	if (now->serves_metrics != next->serves_metrics || !is_same_address(&now->metrics, &next->metrics))
		return "metrics";
	if (now->fenced_enables != next->fenced_enables)
		return "fenced_enables";
	return now->arena != next->arena ? "arena" : NULL;
}

/* True if @next takes all offloads away and does not state that: it has no setting "offloads", as a file
 * that was not written to its end */
static bool reload_loses_offloads(const struct catalog *now, const struct catalog *next)
{
	return now->noffloads > 0 && !next->has_offloads;
}

/* Regions are looked at so often, and those that cannot be served are tried again. Nobody waits for this */
enum { WATCH_US = 5000000, WATCH_ACCURACY_US = 500000 };
/* Tables that clients find replaced are opened again no more often than that, and each time in vain half as
 * often as before */
enum { RETRY_US = 100000, RETRY_ACCURACY_US = 1000 };

/* A tenant's regions are registered one after the other, so that none is registered twice */
static const struct worker_limits worker_limits = {.threads = 4, .running = 1, .pending = CONNECTS_MAX};

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct server *, server_free)
DEFINE_CLEANUP(struct generation *, generation_unref)

/* ---- life ---- */

/* What owners handed over to the daemons before this one */
static void take_handovers(struct server *sv)
{
	const struct fd_store *left = &sv->store;

	for (unsigned i = 0; i < left->nregions; i++) {
		int r = handovers_put(sv->handovers, left->region_name[i], left->region[i], sv->since);

		if (r < 0)
			log_errno(r, "region %s: the file that was handed over cannot be kept",
				left->region_name[i]);
		close(left->region[i]);
	}
}

/* A session that outlives its daemon goes on to store, also where the next one does not have its offload */
static int take_stored(struct server *sv)
{
	int fd = sv->store.stored, r = fd < 0 ? -ENOENT : stored_load(&sv->stored_before, fd);

	if (r == 0 || r == -ENOMEM)
		return r;
	if (r == -EBADMSG)
		log_warning(
			"what programs have stored in files is not known any more: another daemon wrote it");
	fd = memfd_create("reddnd-stored", MFD_CLOEXEC);
	if (fd < 0)
		return log_errno(-errno, "cannot make a file in memory");
	fd_store_put_stored(&sv->store, fd);
	return 0;
}

/* The daemon goes on with the others */
static int on_lost(void *arg)
{
	struct server *sv = arg;
	unsigned left = 0;

	DEVICES_EACH (device, &sv->devices) {
		if (rnic_device_is_lost(device->dev))
			dispatch_lose(&device->dispatch);
		else
			left++;
	}
	return left ? 0 : -ENODEV;
}

static void go_on_with_clients(struct server *sv)
{
	DEVICES_EACH (device, &sv->devices)
		connects_go_on(&device->dispatch);
}

static void retry(struct server *sv)
{
	sv->retry_us = clock_us() + sv->retry_pause_us;
	renewal_retry(&sv->renewal);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct server *sv = arg;

	(void)source;
	(void)usec;
	if (renewal_is_coming(&sv->renewal))
		return 0;
	if (generation_count_regions(sv->generation).retired)
		retry(sv);
	else
		go_on_with_clients(sv); /* its writer has begun anew with the table */
	return 0;
}

/* A table may be replaced again soon: its clients wait. Of one that was only marked, or is replaced all the
 * time, they get the session that there is */
static bool on_retired(void *arg)
{
	struct server *sv = arg;
	bool soon = clock_us() < sv->retry_us;

	if (renewal_is_coming(&sv->renewal))
		return true;
	if (!soon)
		retry(sv);
	else if (sv->retry_pause_us == RETRY_US && sd_event_source_set_time(sv->retry, sv->retry_us) >= 0)
		return sd_event_source_set_enabled(sv->retry, SD_EVENT_ONESHOT) >= 0;
	return renewal_is_coming(&sv->renewal);
}

static int begin_dispatch(struct server *sv, struct device *device)
{
	const struct dispatch_parts parts = {.event = sv->event,
		.cm = device->cm,
		.dev = device->dev,
		.device = devices_number(&sv->devices, device),
		.arena = device->arena,
		.registrar = sv->worker,
		.shared = &sv->shared,
		.lost = on_lost,
		.retired = on_retired,
		.arg = sv};
	uint64_t last = ledger_head(device->ledger)->last_session;

	/* The ledger of each device has the numbers of its sessions */
	if (last > sv->shared.last_session)
		sv->shared.last_session = last;
	return dispatch_init(&device->dispatch, &parts);
}

/* ---- sessions of all devices, for stores ---- */

static void drain(void *arg)
{
	struct server *sv = arg;

	DEVICES_EACH (device, &sv->devices)
		collect_drain(&device->dispatch);
}

static void each_session(void *arg, void (*visit)(void *to, struct session *s), void *to)
{
	struct server *sv = arg;
	struct session *s, *next;

	DEVICES_EACH (device, &sv->devices)
		HASH_ITER (by_id, device->dispatch.sessions, s, next)
			visit(to, s);
}

static struct session *find_session(void *arg, uint64_t id)
{
	struct server *sv = arg;
	struct session *s = NULL;

	DEVICES_EACH (device, &sv->devices)
		if (!s)
			s = live_find(&device->dispatch, id);
	return s;
}

static void late_session(void *arg, struct session *s, const char *region, uint64_t us)
{
	struct server *sv = arg;
	struct verdict v;

	verdict_set(&v, VERDICT_TIME, false,
		"a request was taken more than %" PRIu64 " ms ago and is not answered; what is replaced in "
		"the store of region %s cannot be used again before",
		us / 1000, region);
	DEVICES_EACH (device, &sv->devices)
		if (live_find(&device->dispatch, s->id) == s) {
			actions_judge(&device->dispatch, s, &v);
			return;
		}
}

static void count_session(void *arg, struct session *s)
{
	struct server *sv = arg;

	accounting_update(&sv->shared.accounting, s);
}

static void rearm_session(void *arg, struct session *s)
{
	struct server *sv = arg;

	DEVICES_EACH (device, &sv->devices) {
		if (live_find(&device->dispatch, s->id) != s)
			continue;
		collect_rearm_later(&device->dispatch, s);
		collect_schedule(&device->dispatch);
	}
}

static const struct stores_ops stores_ops = {.drain = drain,
	.each = each_session,
	.find = find_session,
	.late = late_session,
	.count = count_session,
	.rearm = rearm_session};

static int begin_dispatches(struct server *sv)
{
	int r = shared_init(&sv->shared, sv->event, sv->events, sv->record, &stores_ops, sv);

	/* Locks of its own have other names than those of the daemon before this one */
	for (unsigned i = 0; i < sv->store.nlocked; i++)
		if (sv->store.locked[i].number > sv->shared.stores.served)
			sv->shared.stores.served = sv->store.locked[i].number;
	DEVICES_EACH (device, &sv->devices)
		if (r == 0)
			r = begin_dispatch(sv, device);
	return r;
}

static struct generation_parts generation_parts(struct server *sv)
{
	return (struct generation_parts){.served = &sv->devices.served,
		.stats = &sv->stats,
		.tenants = &sv->tenants,
		.handovers = sv->handovers,
		.left = &sv->stored_before,
		.worker = &sv->worker};
}

/* The link layer is the port's: no reload changes it */
static void warn_of_networks(const struct server *sv, const struct catalog *c)
{
	bool infiniband = false;

	for (unsigned i = 0; i < sv->devices.n; i++)
		infiniband |= rnic_device_caps(sv->devices.device[i].dev)->infiniband;
	if (!infiniband)
		return;
	for (unsigned i = 0; i < c->ntenants; i++)
		if (c->tenants[i].nnetworks)
			log_warning(
				"%s: tenant %s: addresses of clients cannot be verified on InfiniBand; %s",
				c->tenants[i].where, c->tenants[i].name,
				c->tenants[i].has_key ? "only its key decides, not its networks"
						      : "nobody belongs to it without a \"key\"");
}

/* After sessions that were proved with less have ended, and before anybody stores more */
static void keep_stored(const struct server *sv)
{
	int r = stored_save(&sv->generation->stored, sv->store.stored);

	if (r < 0)
		log_errno(r, "what programs store in files cannot be kept for the next daemon");
}

/* The catalog may be the one in force: limits stay as the operator has changed them meanwhile */
static void replace(struct server *sv, struct generation *generation)
{
	bool first = !sv->generation;

	if (!first)
		generation_unref(sv->generation);
	sv->generation = generation;
	stores_serve(&sv->shared.stores, generation);
	DEVICES_EACH (device, &sv->devices)
		dispatch_end_stores(&device->dispatch, generation);
	DEVICES_EACH (device, &sv->devices)
		dispatch_serve(&device->dispatch, generation);
	if (!first)
		keep_stored(sv);
}

static void put_in_force(struct server *sv, struct generation *generation)
{
	const char *useless;

	replace(sv, generation);
	warn_of_networks(sv, generation->catalog);
	generation_limit(generation, clock_us());
	DEVICES_EACH (device, &sv->devices)
		dispatch_use(&device->dispatch, generation->catalog);
	while ((useless = handovers_useless(sv->handovers, generation->catalog))) {
		fd_store_drop_region(useless);
		handovers_drop(sv->handovers, useless);
	}
}

/* Sessions that go on may have all of it: that is no reason to disable what they use */
static void check_room(const struct server *sv, struct generation *g)
{
	for (unsigned i = 0; i < sv->devices.n; i++) {
		const struct device *device = &sv->devices.device[i];
		uint64_t size = rnic_arena_size(device->arena), used = rnic_arena_used(device->arena);

		generation_check_room(
			g, i, inheritance_has_sessions(&device->inheritance) ? size : size - used);
	}
}

static int adopt(struct server *sv)
{
	int r = 0;

	DEVICES_EACH (device, &sv->devices)
		if (r == 0)
			r = inheritance_adopt(
				&device->inheritance, &device->dispatch, &sv->devices.served, &sv->tenants);
	return r;
}

/* Sessions that publish, before their stores are opened */
static void judge(void *arg, struct generation *g)
{
	struct server *sv = arg;

	DEVICES_EACH (device, &sv->devices)
		inheritance_judge(&device->inheritance, &device->dispatch, g);
	held_store_inherit_locks(sv->store.locked, sv->store.nlocked);
}

static int serve(struct server *sv, struct catalog *catalog)
{
	CLEANUP(generation_unrefp) struct generation *first = NULL;
	const struct generation_parts parts = generation_parts(sv);
	int r;

	r = generation_new(&first, catalog, NULL, &parts);
	if (r == 0)
		r = generation_open(first, judge, sv);
	held_store_expect_none();
	held_store_inherit_locks(NULL, 0);
	if (r < 0)
		return r;
	check_room(sv, first);
	put_in_force(sv, steal_ptr(&first));
	r = adopt(sv);
	if (r < 0)
		return r;
	fd_store_unlock(&sv->store);
	/* Its graces wait for all sessions that publish: those that were left are known, or have ended */
	stores_turn(&sv->shared.stores);
	keep_stored(sv);
	/* The last step: a client that is heard is served */
	DEVICES_EACH (device, &sv->devices)
		if (r == 0)
			r = rnic_cm_listen(device->cm);
	if (r == 0)
		DEVICES_EACH (device, &sv->devices)
			inheritance_deinit(&device->inheritance);
	return r;
}

/* ---- regions and generations ---- */

static struct generation *generation_now(void *arg)
{
	const struct server *sv = arg;

	return sv->generation;
}

static int check_next(void *arg, const struct catalog *next)
{
	const struct server *sv = arg;
	const struct catalog *now = sv->generation->catalog;
	const char *fixed = reload_conflict(now, next);

	if (reload_loses_offloads(now, next)) {
		log_error("the configuration has no \"offloads\", and %u are in force; is the file whole? If "
			  "none shall be offered, write \"offloads = ();\"",
			now->noffloads);
		return -EINVAL;
	}
	if (!fixed)
		return 0;
	log_error("\"%s\" cannot change while the daemon runs; restart it, or leave the setting as it was",
		fixed);
	return -EBUSY;
}

static void refuse(struct server *sv, char *why)
{
	free(sv->refused);
	sv->refused = why;
}

static void end_replaced(struct server *sv)
{
	sv->replaces = false;
	DEVICES_EACH (device, &sv->devices)
		dispatch_end_replaced(&device->dispatch);
}

/* Who asked for a reload hears of it when no session has a table that it replaced */
static void acknowledge(struct server *sv)
{
	uint64_t number = sv->reload;

	sv->reload = 0;
	if (number)
		sv->ops->reloaded(sv->arg, number, 0, "");
}

static void inspect(struct server *sv)
{
	const struct generation *g = sv->generation;

	/* What is added all the time is never done */
	if (inspection_is_busy(sv->inspection)) {
		inspection_go_on(sv->inspection);
		return;
	}
	for (unsigned i = 0; i < g->catalog->nregions; i++)
		inspection_add(sv->inspection, g->regions[i]);
	DEVICES_EACH (device, &sv->devices)
		dispatch_inspect(&device->dispatch, sv->inspection);
	inspection_go_on(sv->inspection);
}

static void on_inspected(void *arg, struct region *r, unsigned news)
{
	struct server *sv = arg;
	const struct generation *g = sv->generation;
	bool in_force = false;

	for (unsigned i = 0; news && i < g->catalog->nregions; i++)
		in_force |= g->regions[i] == r;
	if (in_force && news & REGION_MOVED)
		report_moved(sv->events, r->conf->name, r->conf->path, r->moved == -ESTALE);
	if (in_force && news & REGION_UNFINISHED)
		report_unfinished(sv->events, r->conf->name, r->conf->path);
}

static void on_all_inspected(void *arg, bool all)
{
	struct server *sv = arg;
	bool more = false;

	DEVICES_EACH (device, &sv->devices)
		more |= dispatch_end_bad(&device->dispatch);
	if (all && sv->again) {
		sv->again = false;
		inspect(sv);
		all = !inspection_is_busy(sv->inspection);
	}
	if (all && sv->replaces) {
		end_replaced(sv);
		acknowledge(sv);
	}
	if (all && more)
		inspect(sv);
}

static const struct inspection_ops inspection_ops = {.looked = on_inspected, .done = on_all_inspected};

static void on_reloaded(void *arg, uint64_t number, int error, struct generation *next, const char *errors)
{
	struct server *sv = arg;

	if (sv->ending) {
		if (next)
			generation_unref(next);
		return;
	}
	if (error == 0) {
		put_in_force(sv, next);
		refuse(sv, NULL);
		configuration_keep(&sv->store, next->catalog);
		sv->shared.accounting.reloads++;
		report_reloaded(sv->events, next->catalog->nregions, next->catalog->noffloads);
		sv->reload = number;
		sv->replaces = true;
		sv->again = inspection_is_busy(sv->inspection);
		inspect(sv);
		if (!inspection_is_busy(sv->inspection))
			on_all_inspected(sv, true);
	} else {
		/* What is asked before this one has succeeded */
		acknowledge(sv);
		refuse(sv, strndup(errors, strcspn(errors, "\n")));
		report_reload_failed(
			sv->events, sv->refused && *sv->refused ? sv->refused : strerror(-error));
		sv->ops->reloaded(sv->arg, number, error, errors);
	}
}

static void on_taken(void *arg, uint64_t number, int error, struct generation *next, const char *errors)
{
	struct server *sv = arg;

	if (sv->ending) {
		if (next)
			generation_unref(next);
		return;
	}
	if (error == 0)
		replace(sv, next);
	sv->ops->taken(sv->arg, number, error, errors);
}

/* Files that could not be served, and tables that were replaced, have been opened again */
static void on_retried(void *arg, struct generation *next)
{
	struct server *sv = arg;
	unsigned disabled = generation_disabled(sv->generation), left = generation_disabled(next);
	unsigned retired = generation_count_regions(sv->generation).retired,
		 still = generation_count_regions(next).retired;

	/* What one owner has made of his table keeps those of others from nobody */
	if (sv->ending || (left >= disabled && still >= retired)) {
		generation_unref(next);
		sv->retry_pause_us = sv->retry_pause_us < WATCH_US / 2 ? 2 * sv->retry_pause_us : WATCH_US;
		return;
	}
	sv->retry_pause_us = RETRY_US;
	replace(sv, next);
	if (left < disabled)
		log_notice("%u of the offloads that were disabled can be served again, %u cannot",
			disabled - left, left);
	if (still < retired)
		log_notice("%u tables were replaced: new sessions get the new ones", retired - still);
}

static void on_renewal_over(void *arg)
{
	go_on_with_clients(arg);
}

static const struct renewal_ops renewal_ops = {.now = generation_now,
	.check = check_next,
	.reloaded = on_reloaded,
	.taken = on_taken,
	.retried = on_retried,
	.over = on_renewal_over};

static int on_watch(sd_event_source *source, uint64_t usec, void *arg)
{
	struct server *sv = arg;
	const struct generation_regions n = generation_count_regions(sv->generation);
	int r;

	(void)usec;
	inspect(sv);
	stores_wake(&sv->shared.stores);
	if (generation_disabled(sv->generation) > generation_unfit(sv->generation) || n.bad || n.succeeded)
		renewal_retry(&sv->renewal);
	r = sd_event_source_set_time_relative(source, WATCH_US);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int watch_regions(struct server *sv, const char *config)
{
	const struct renewal_parts parts = {
		.worker = sv->worker, .config = config, .generation = generation_parts(sv)};
	int r = sd_event_add_time_relative(
		sv->event, &sv->watch, CLOCK_MONOTONIC, WATCH_US, WATCH_ACCURACY_US, on_watch, sv);

	if (r >= 0)
		r = sd_event_add_time(
			sv->event, &sv->retry, CLOCK_MONOTONIC, 0, RETRY_ACCURACY_US, on_retry, sv);
	if (r >= 0)
		r = sd_event_source_set_enabled(sv->retry, SD_EVENT_OFF);
	sv->retry_pause_us = RETRY_US;
	renewal_init(&sv->renewal, &parts, &renewal_ops, sv);
	if (r >= 0)
		r = inspection_new(&sv->inspection, sv->event, &inspection_ops, sv);
	return r < 0 ? log_errno(r, "cannot watch the files of regions") : 0;
}

/* ---- beginning and end ---- */

/* The next daemon tries again with what was left, as it is. If this one had a catalog that was not in force
 * yet, the next one has the one before: this may be why. Else it has the one of the file, which may have been
 * corrected meanwhile. */
static void __attribute__((noreturn)) leave_all(struct server *sv)
{
	devices_distrust(&sv->devices, !sv->kept);
	_exit(EX_TEMPFAIL);
}

int server_new(struct server **out, const struct server_parts *parts, struct configuration *begin)
{
	CLEANUP(catalog_freep) struct catalog *mine = steal_ptr(&begin->catalog);
	CLEANUP(server_freep) struct server *sv = calloc(1, sizeof(*sv));
	const struct catalog *catalog = mine;
	int r;

	if (!sv)
		return -ENOMEM;
	sv->refused = steal_ptr(&begin->refused);
	sv->since = clock_us();
	sv->event = sd_event_ref(parts->event);
	sv->ops = parts->ops;
	sv->arg = parts->arg;
	sv->events = events_new();
	sv->handovers = handovers_new();
	sv->store = begin->store;
	r = sv->events && sv->handovers ? 0 : -ENOMEM;
	if (r == 0)
		r = take_stored(sv);
	if (r == 0) {
		take_handovers(sv);
		sv->kept = configuration_is_kept(&sv->store, catalog);
		r = devices_open(&sv->devices, &sv->store, catalog, sv->kept);
	}
	if (r == 0)
		r = worker_new(&sv->worker, sv->event, "reddnd-worker", &worker_limits);
	if (r == 0)
		r = inheritance_open_record(&sv->store, devices_go_on(&sv->devices), &sv->record);
	if (r == 0)
		r = begin_dispatches(sv);
	if (r == 0)
		r = watch_regions(sv, parts->config);
	if (r == 0)
		r = serve(sv, steal_ptr(&mine));
	if (r < 0 && devices_go_on(&sv->devices))
		leave_all(sv);
	if (r < 0)
		return r;
	if (sv->refused)
		report_reload_failed(sv->events, sv->refused);
	*out = steal_ptr(&sv);
	return 0;
}

void server_free(struct server *sv)
{
	sv->ending = true;
	sd_event_source_disable_unref(sv->watch);
	sd_event_source_disable_unref(sv->retry);
	DEVICES_EACH (device, &sv->devices)
		connects_end(&device->dispatch.connects);
	if (sv->worker)
		worker_free(sv->worker);
	sv->worker = NULL;
	DEVICES_EACH (device, &sv->devices)
		dispatch_deinit(&device->dispatch);
	shared_deinit(&sv->shared);
	if (devices_clear_store(&sv->devices))
		fd_store_clear(&sv->store);
	if (sv->generation)
		generation_unref(sv->generation);
	if (sv->inspection)
		inspection_free(sv->inspection);
	handovers_free(sv->handovers);
	stored_free(&sv->stored_before);
	offload_stats_free(&sv->stats);
	devices_close(&sv->devices);
	if (sv->record)
		record_free(sv->record);
	events_free(sv->events);
	sd_event_unref(sv->event);
	free(sv->refused);
	free(sv);
}

/* The library would free doorbell pages that queues ring (ibv_close_device()), so nothing is closed */
void server_leave(struct server *sv)
{
	devices_count(&sv->devices);
	_exit(EX_TEMPFAIL);
}

void server_trust_catalog(struct server *sv)
{
	configuration_keep(&sv->store, sv->generation->catalog);
}

void server_distrust_catalog(struct server *sv)
{
	devices_count(&sv->devices);
	leave_all(sv);
}

bool server_has_sessions(const struct server *sv)
{
	for (unsigned i = 0; i < sv->devices.n; i++)
		if (sv->devices.device[i].dispatch.sessions)
			return true;
	return false;
}

uint64_t server_reload(struct server *sv)
{
	return renewal_reload(&sv->renewal);
}

const struct catalog *server_catalog(const struct server *sv)
{
	return sv->generation->catalog;
}

struct events *server_events(struct server *sv)
{
	return sv->events;
}
