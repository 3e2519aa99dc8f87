/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/operator.h"

#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/live.h"
#include "reddnd/server/server-state.h"
#include "reddnd/session/limits.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* ---- limits and ends of sessions ---- */

/* NULL: there is none. *@d: where it is */
static struct session *find_session(struct server *sv, uint64_t id, struct dispatch **d)
{
	DEVICES_EACH (device, &sv->devices) {
		struct session *s = live_find(&device->dispatch, id);

		*d = &device->dispatch;
		if (s)
			return s;
	}
	return NULL;
}

int operator_limit_session(struct server *sv, uint64_t id, const struct operator_limit *limit)
{
	struct dispatch *d;
	struct session *s = find_session(sv, id, &d);

	if (!s)
		return -ENOENT;
	s = s->first;
	if (limit->has_rate)
		session_limit_requests(s, limit->rate, limit->burst, clock_us());
	if (limit->has_bytes)
		session_limit_bytes(s, limit->bytes_rate, clock_us());
	actions_limits_changed(d, s);
	return 0;
}

int operator_limit_tenant(struct server *sv, const char *name, const struct operator_limit *limit)
{
	struct catalog_limits limits;
	struct tenant *t;

	HASH_FIND_STR(sv->tenants, name, t);
	if (!t)
		return -ENOENT;
	limits = t->limits;
	if (limit->has_rate) {
		limits.rate = limit->rate;
		limits.burst = limit->burst;
	}
	if (limit->has_bytes)
		limits.bytes_rate = limit->bytes_rate;
	tenant_override(t, &limits, clock_us());
	DEVICES_EACH (device, &sv->devices)
		dispatch_tenant_changed(&device->dispatch, t);
	return 0;
}

int operator_kick(struct server *sv, uint64_t id)
{
	struct dispatch *d;
	struct session *s = find_session(sv, id, &d);

	if (!s)
		return -ENOENT;
	actions_end(d, s, REDDN_WIRE_END_OPERATOR, "the administrator ended it");
	collect_reap(d);
	return 0;
}

/* ---- handing over ---- */

#define IN_MEMORY "only files in memory can be handed over: memfds, and files on tmpfs and hugetlbfs"

/* The region @name, if @by may hand its file over */
static int find_handover(const struct server *sv, const char *name, uid_t by, unsigned *region)
{
	const struct catalog *c = sv->generation->catalog;

	for (unsigned i = 0; i < c->nregions; i++) {
		if (!c->regions[i].handover || strcmp(c->regions[i].name, name) != 0)
			continue;
		*region = i;
		return by == 0 || by == c->regions[i].owner ? 0 : -EPERM;
	}
	return -ENOENT;
}

int operator_hand_over(
	struct server *sv, const char *name, int fd, uid_t by, uint64_t *number, char why[REGION_WHY])
{
	uint64_t now = clock_us();
	unsigned i;
	int r = find_handover(sv, name, by, &i);

	if (r == 0)
		r = handovers_admit(sv->handovers, name, now);
	if (r < 0)
		return r;
	/* Other file systems may let whoever opens a file wait, or asks about it */
	if (fcntl(fd, F_GET_SEALS) < 0) {
		snprintf(why, REGION_WHY, IN_MEMORY);
		return -EINVAL;
	}
	r = generation_try_file(sv->generation, i, fd, why);
	if (r == 0)
		r = handovers_put(sv->handovers, name, fd, now);
	if (r < 0)
		return r;
	/* Not @fd: a lock that is held on it would outlive its holder */
	fd_store_put_region(name, r);
	log_notice("region %s: user %u hands its file over", name, by);
	*number = renewal_take(&sv->renewal);
	return 0;
}

int operator_give_back(struct server *sv, const char *name, uid_t by)
{
	unsigned i;
	int r = find_handover(sv, name, by, &i);

	return r == 0 ? handovers_copy(sv->handovers, &sv->generation->catalog->regions[i]) : r;
}

/* ---- state ---- */

static struct stats_status status(const struct server *sv, uint64_t now)
{
	const struct generation_regions n = generation_count_regions(sv->generation);

	return (struct stats_status){
		.uptime_us = now - sv->since,
		.sessions_total = sv->shared.last_session,
		.counts = sv->shared.accounting,
		.configuration_refused = sv->refused ? sv->refused : "",
		.disabled = generation_disabled(sv->generation),
		.moved = n.moved,
		.unfinished = n.unfinished,
	};
}

static struct stats_source source_of_stats(struct server *sv)
{
	uint64_t now = clock_us();
	struct stats_source source = {
		.generation = sv->generation,
		.left_out = sv->devices.left_out,
		.nleft_out = sv->devices.nleft_out,
		.tenants = sv->tenants,
		.now_us = now,
		.status = status(sv, now),
	};

	DEVICES_EACH (device, &sv->devices) {
		unsigned k = devices_number(&sv->devices, device);

		source.sessions[k] = device->dispatch.sessions;
		source.nsessions[k] = device->dispatch.nsessions;
	}
	return source;
}

void operator_glance(struct server *sv, struct stats *stats)
{
	const struct stats_source source = source_of_stats(sv);

	stats_overview(stats, &source);
}

void operator_overview(struct server *sv, struct stats *stats)
{
	devices_count(&sv->devices);
	operator_glance(sv, stats);
}

struct stats *operator_snapshot(struct server *sv)
{
	struct stats_source source;

	devices_count(&sv->devices);
	source = source_of_stats(sv);
	return stats_new(&source);
}
