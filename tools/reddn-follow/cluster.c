/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/cluster.h"

#include "tools/common/tool.h"
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEK_MS = 200 };

/* ---- servers ----------------------------------------------------------------------------------- */

static bool cluster_has_number(const struct cluster *c, uint8_t number)
{
	for (unsigned i = 0; i < c->whole.n; i++)
		if (c->server[i]->redis.number == number)
			return true;
	return false;
}

static struct cluster_server *cluster_add(struct cluster *c, const struct url *url, const char *id)
{
	struct cluster_server *s = tool_must(calloc(1, sizeof(*s)));
	uint8_t number = 1;

	while (cluster_has_number(c, number))
		number++;
	s->url = *url;
	strcpy(s->id, id);
	c->server[c->whole.n] = s;
	redis_init(&s->redis, &s->url, &c->whole);
	s->redis.number = number;
	s->source = redis_as_source(&s->redis);
	return s;
}

/* As redis.c takes it out of the whole: the last one comes into its place. */
static void cluster_remove(struct cluster *c, unsigned i)
{
	struct cluster_server *s = c->server[i];

	c->left += s->redis.loads;
	s->source.deinit(s->source.of);
	c->server[i] = c->server[c->whole.n];
	free(s);
}

/* Those without slots: they were given, or have lost theirs. */
static void cluster_remove_seeds(struct cluster *c)
{
	for (unsigned i = c->whole.n; i--;)
		if (!c->server[i]->slots)
			cluster_remove(c, i);
}

static const char *server_id(const struct cluster_server *s)
{
	return *s->redis.id ? s->redis.id : s->id;
}

/* ---- slots ------------------------------------------------------------------------------------- */

/* What more than half of those say that are attached and have been asked, if it is not followed; NULL:
 * nothing */
static const struct cluster_server *cluster_hear(const struct cluster *c)
{
	for (unsigned i = 0; i < c->whole.n; i++) {
		const struct redis *r = &c->server[i]->redis;
		unsigned same = 0, all = 0;

		for (unsigned j = 0; j < c->whole.n; j++) {
			all += c->server[j]->redis.view != 0;
			same += c->server[j]->redis.view == r->view;
		}
		if (r->view && r->nodes && r->view != c->whole.view && 2 * same > all)
			return c->server[i];
	}
	return NULL;
}

/* The same node, at the same address or attached */
static bool server_is(const struct cluster_server *s, const struct redis_master *m)
{
	return strcmp(server_id(s), m->id) == 0 &&
	       (redis_is_attached(&s->redis) ||
		       (s->url.port == m->port && strcmp(s->url.host, m->host) == 0));
}

static struct cluster_server *cluster_find(
	struct cluster *c, const struct redis_master *m, const struct url *told_by)
{
	struct url url = c->seeds[0];

	for (unsigned i = 0; i < c->whole.n; i++)
		if (server_is(c->server[i], m))
			return c->server[i];
	if (c->whole.n == REDIS_SERVERS)
		return NULL;
	snprintf(url.host, sizeof(url.host), "%s", *m->host ? m->host : told_by->host);
	url.port = m->port;
	return cluster_add(c, &url, m->id);
}

static bool has_others(const uint8_t *before, const uint8_t *now, uint8_t number)
{
	for (unsigned i = 0; i < REDIS_SLOTS; i++)
		if ((before[i] == number) != (now[i] == number))
			return true;
	return false;
}

static void cluster_assign(struct cluster *c, const struct cluster_server *heard)
{
	struct url told_by = heard->url;
	char *text = tool_must(strdup(heard->redis.nodes));
	uint8_t before[REDIS_SLOTS];
	uint64_t view = heard->redis.view;
	struct redis_master m;
	const char *rest = text;
	unsigned slots = 0;

	for (unsigned i = 0; i < c->whole.n; i++)
		c->server[i]->slots = 0;
	memcpy(before, c->whole.owner, sizeof(before));
	memset(c->whole.owner, 0, sizeof(c->whole.owner));
	while (redis_nodes_next(&rest, &m)) {
		struct cluster_server *s = redis_nodes_assign(&m, c->whole.slots, NULL, 0)
						   ? cluster_find(c, &m, &told_by)
						   : NULL;

		if (!s)
			continue;
		strcpy(s->id, m.id);
		s->slots = redis_nodes_assign(&m, c->whole.slots, c->whole.owner, s->redis.number);
		slots += s->slots;
	}
	c->whole.is_covered = slots == redis_slots_count(c->whole.slots);
	c->whole.view = view;
	c->whole.origin = redis_nodes_origin(text, c->whole.prefixes->text, c->whole.prefixes->n);
	if (c->whole.slots != REDIS_SLOTS_ALL)
		c->whole.origin = ~c->whole.origin;
	for (unsigned i = 0; i < c->whole.n; i++)
		redis_reassign(
			&c->server[i]->redis, has_others(before, c->whole.owner, c->server[i]->redis.number));
	cluster_remove_seeds(c);
	free(text);
}

/* As long as none that is attached has a view, the nodes that were given are tried, one after the other: one
 * that is cut off from the other masters may have been replaced. */
static void cluster_seek(struct cluster *c, uint64_t now)
{
	bool attached = false, looks_up = false;

	for (unsigned i = 0; i < c->whole.n; i++) {
		looks_up |= redis_is_looked_up(&c->server[i]->redis);
		attached |= redis_is_attached(&c->server[i]->redis);
		if (!c->server[i]->redis.view)
			continue;
		c->seek_at = now;
		if (c->server[i]->slots)
			return cluster_remove_seeds(c);
	}
	/* a name server may need longer than any patience with a node */
	if (looks_up || now <= c->seek_at + (attached ? REDIS_PATIENCE_MS : 0))
		return;
	c->seek_at = now + SEEK_MS;
	cluster_remove_seeds(c);
	if (c->whole.n < REDIS_SERVERS)
		cluster_add(c, &c->seeds[c->next++ % c->nseeds], "");
}

/* ---- the source -------------------------------------------------------------------------------- */

/* One that was given is not apart while there are others to try. */
static void server_report(const struct cluster *c, const struct cluster_server *s, struct source_report *its)
{
	s->source.report(&s->redis, its);
	if (its->stage == SOURCE_APART && !s->slots && c->next % c->nseeds != 0)
		its->stage = SOURCE_LOADING;
}

/* The trouble of one of them, with its address */
static void cluster_keep_why(struct cluster *c)
{
	struct source_report its;
	char address[URL_ADDRESS];

	for (unsigned i = 0; i < c->whole.n; i++) {
		server_report(c, c->server[i], &its);
		if (its.stage != SOURCE_APART)
			continue;
		snprintf(c->why, sizeof(c->why), "%s: %s", url_address(&c->server[i]->url, address), its.why);
		return;
	}
}

static void cluster_turn(void *of, const struct pollfd *fds)
{
	struct cluster *c = of;
	const struct cluster_server *heard;

	for (unsigned i = 0; i < c->whole.n; i++)
		c->server[i]->source.turn(&c->server[i]->redis, fds + c->server[i]->fds);
	heard = cluster_hear(c);
	if (heard)
		cluster_assign(c, heard);
	cluster_seek(c, clock_ms());
	cluster_keep_why(c);
}

static int cluster_prepare(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n)
{
	struct cluster *c = of;
	int pause = SEEK_MS;

	*n = 0;
	for (unsigned i = 0; i < c->whole.n; i++) {
		struct cluster_server *s = c->server[i];
		nfds_t some;
		int its = s->source.prepare(&s->redis, fds + *n, &some);

		s->fds = (unsigned)*n;
		*n += some;
		pause = its < pause ? its : pause;
	}
	return pause;
}

static void cluster_report(const void *of, struct source_report *report)
{
	static const char *const names[] = {
		[SOURCE_APART] = "apart", [SOURCE_LOADING] = "loading", [SOURCE_FOLLOWING] = "following"};
	const struct cluster *c = of;

	*report = (struct source_report){.stage = c->whole.view ? SOURCE_FOLLOWING : SOURCE_LOADING,
		.loads = c->left,
		.complete = c->whole.is_covered,
		.settled = c->whole.view};
	for (unsigned i = 0; i < c->whole.n; i++) {
		struct source_report its;

		server_report(c, c->server[i], &its);
		report->stage = its.stage < report->stage ? its.stage : report->stage;
		report->loads += its.loads;
		report->reported += its.reported;
		report->absent += its.absent;
		report->complete = report->complete && its.complete;
		report->settled = report->settled && its.settled;
	}
	report->state = names[report->stage];
	report->why = report->stage == SOURCE_APART ? c->why : "";
}

static void cluster_deinit(void *of)
{
	struct cluster *c = of;

	while (c->whole.n)
		cluster_remove(c, c->whole.n - 1);
}

void cluster_init(struct cluster *c, const struct url *seeds, unsigned nseeds, uint64_t slots,
	const struct prefixes *prefixes, struct mirror *m)
{
	char address[URL_ADDRESS];

	*c = (struct cluster){.seeds = seeds, .nseeds = nseeds};
	redis_whole_init(&c->whole, prefixes, m);
	c->whole.is_cluster = true;
	c->whole.slots = m->slots = slots;
	snprintf(c->name, sizeof(c->name), "redis+cluster://%s", url_address(&seeds[0], address));
}

struct source cluster_as_source(struct cluster *c)
{
	return (struct source){.of = c,
		.name = c->name,
		.prepare = cluster_prepare,
		.turn = cluster_turn,
		.report = cluster_report,
		.deinit = cluster_deinit};
}
