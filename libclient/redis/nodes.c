/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/redis/nodes.h"

#include "util/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	REDIRECTS = 16,
	AT_ONCE = 3, /* of them; nodes that name each other do not agree yet */
	PAUSE_US = 50000,
	HOST = 256,
};

struct node {
	struct node *next;
	char host[HOST];
	uint16_t port;
	redisContext *context; /* NULL: none */
	bool changed;          /* as of the source */
};

struct redirect {
	bool asks; /* for this command only */
	unsigned slot;
	char host[HOST];
	uint16_t port;
};

/* ---- replies ----------------------------------------------------------------------------------- */

static bool reply_is_error(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* "MOVED SLOT HOST:PORT", or ASK. Without a host it is that of the node that has answered, which a Unix
 * socket does not tell. */
static bool redirect_read(struct redirect *to, const redisReply *reply, const char *answered_by)
{
	const char *host, *colon;
	uint64_t port;
	char *end;

	to->asks = reply_is_error(reply, "ASK ");
	if (!to->asks && !reply_is_error(reply, "MOVED "))
		return false;
	to->slot = (unsigned)strtoul(strchr(reply->str, ' ') + 1, &end, 10);
	colon = strrchr(end, ':');
	if (*end != ' ' || to->slot >= REDIS_SLOTS || !colon ||
		number_parse_decimal(colon + 1, 1, UINT16_MAX, &port) < 0)
		return false;
	host = end + 1;
	if (host == colon)
		snprintf(to->host, sizeof(to->host), "%s", answered_by ? answered_by : "");
	else
		snprintf(to->host, sizeof(to->host), "%.*s", (int)(colon - host), host);
	to->port = (uint16_t)port;
	return *to->host;
}

static bool reply_is_time(const redisReply *reply, uint64_t *us)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
		reply->element[0]->type != REDIS_REPLY_STRING ||
		reply->element[1]->type != REDIS_REPLY_STRING)
		return false;
	*us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
	      strtoull(reply->element[1]->str, NULL, 10);
	return true;
}

/* ---- nodes ------------------------------------------------------------------------------------- */

static void node_close(struct node *node)
{
	if (node->context)
		redisFree(node->context);
	node->context = NULL;
}

static struct node *nodes_find(struct nodes *nodes, const struct redirect *to)
{
	struct node *node;

	for (node = nodes->first; node; node = node->next)
		if (node->port == to->port && strcmp(node->host, to->host) == 0)
			return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	strcpy(node->host, to->host);
	node->port = to->port;
	node->next = nodes->first;
	nodes->first = node;
	return node;
}

/* Its slots may be another one's by now, which the source knows. */
static void nodes_fail(struct nodes *nodes, struct node *node, int error, const char *why)
{
	nodes->source->err = error;
	snprintf(nodes->source->errstr, sizeof(nodes->source->errstr), "node %.60s:%u: %.54s", node->host,
		node->port, why);
	node_close(node);
	for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
		if (nodes->owner[slot] == node)
			nodes->owner[slot] = NULL;
}

static bool node_connect(struct nodes *nodes, struct node *node)
{
	if (!node->context)
		node->context = nodes->connect(nodes->of, node->host, node->port);
	if (node->context && !node->context->err)
		return true;
	nodes_fail(nodes, node, node->context ? node->context->err : REDIS_ERR_OTHER,
		node->context ? node->context->errstr : "there is no connection");
	return false;
}

/* False: there is no time. */
static bool context_read_time(redisContext *of, uint64_t *us)
{
	void *reply = NULL;
	uint64_t its;
	bool ok = redisGetReply(of, &reply) == REDIS_OK && reply_is_time(reply, &its);

	freeReplyObject(reply);
	if (ok && its > *us)
		*us = its;
	return ok;
}

/* @report may be NULL: it is no read. */
static redisReply *context_ask(
	redisContext *to, const struct command *c, bool asks, struct report *report, bool outdated)
{
	void *reply = NULL, *asking = NULL, *known = NULL;

	if (to->err || (asks && redisAppendCommand(to, "ASKING") != REDIS_OK) ||
		redisAppendFormattedCommand(to, c->text, c->size) != REDIS_OK ||
		(report && redisAppendCommand(to, "TIME") != REDIS_OK) ||
		(report && outdated && redisAppendCommand(to, "CLUSTER NODES") != REDIS_OK) ||
		(asks && redisGetReply(to, &asking) != REDIS_OK))
		return NULL;
	freeReplyObject(asking);
	if (redisGetReply(to, &reply) != REDIS_OK || !report)
		return reply;
	if (!context_read_time(to, &report->us))
		report->us = 0;
	freeReplyObject(report->nodes);
	if (outdated && redisGetReply(to, &known) != REDIS_OK)
		known = NULL;
	report->nodes = known;
	return reply;
}

/* @node may be NULL: the source. */
static redisReply *nodes_ask(
	struct nodes *nodes, struct node *node, const struct command *c, bool asks, struct report *report)
{
	bool *changed = node ? &node->changed : &nodes->changed;
	redisReply *reply;

	if (nodes->source->err || (node && !node_connect(nodes, node)))
		return NULL;
	if (!report)
		*changed = true;
	reply = context_ask(node ? node->context : nodes->source, c, asks, report, nodes->outdated);
	if (!reply && node)
		nodes_fail(nodes, node, node->context->err, node->context->errstr);
	if (reply && report && report->us && *changed) {
		*changed = false;
		/* kept, as there may be no answer in the end: a redirect leads to one that is lost */
		if (report->us > nodes->settled)
			nodes->settled = report->us;
	}
	return reply;
}

static bool context_ask_time(redisContext *of, uint64_t *us)
{
	return of && !of->err && redisAppendCommand(of, "TIME") == REDIS_OK && context_read_time(of, us);
}

bool nodes_settle(struct nodes *nodes, uint64_t *us)
{
	bool all = true;

	if (nodes->settled > *us)
		*us = nodes->settled;
	if (nodes->changed)
		nodes->changed = !(all = context_ask_time(nodes->source, us));
	for (struct node *node = nodes->first; node; node = node->next) {
		if (!node->changed)
			continue;
		node->changed = !context_ask_time(node->context, us);
		if (!node->changed)
			continue;
		node_close(node);
		nodes->outdated = true;
		all = false;
	}
	return all;
}

void nodes_forget_lost(struct nodes *nodes)
{
	for (struct node *node = nodes->first; node; node = node->next)
		node->changed = node->changed && node->context;
}

/* ---- slots ------------------------------------------------------------------------------------- */

static uint64_t name_hash(const struct command *c)
{
	return XXH3_64bits(c->word[0].key, c->word[0].key_len);
}

static struct node *nodes_owner(const struct nodes *nodes, const struct command *c)
{
	uint64_t name = c->n ? name_hash(c) : 0;
	const struct place *p = &nodes->place[name % PLACES];

	if (p->name != name || p->word >= c->n)
		return NULL;
	return nodes->owner[redis_slot(c->word[p->word].key, c->word[p->word].key_len)];
}

static void nodes_learn(struct nodes *nodes, const struct command *c, unsigned slot, struct node *node)
{
	uint64_t name = name_hash(c);

	nodes->outdated = true;
	nodes->owner[slot] = node;
	for (size_t i = 1; i < c->n; i++)
		if (redis_slot(c->word[i].key, c->word[i].key_len) == slot) {
			nodes->place[name % PLACES] = (struct place){name, i};
			return;
		}
}

/* ---- commands ---------------------------------------------------------------------------------- */

/* @from has answered with @reply. */
static redisReply *nodes_follow(struct nodes *nodes, const struct command *c, struct node *from,
	redisReply *reply, struct report *report)
{
	for (unsigned i = 0; nodes->connect && reply && i < REDIRECTS; i++) {
		struct redirect to = {0};

		/* some keys of a slot that is being moved have not moved yet */
		if (reply_is_error(reply, "TRYAGAIN"))
			from = nodes_owner(nodes, c);
		else if (!redirect_read(&to, reply, from ? from->host : nodes->source->tcp.host))
			break;
		else if (!(from = nodes_find(nodes, &to)))
			break;
		else if (!to.asks)
			nodes_learn(nodes, c, to.slot, from);
		if (!*to.host || i >= AT_ONCE)
			usleep(PAUSE_US);
		freeReplyObject(reply);
		reply = nodes_ask(nodes, from, c, to.asks, report);
	}
	return reply;
}

redisReply *nodes_read(struct nodes *nodes, const struct command *c, struct report *report)
{
	struct node *node = nodes_owner(nodes, c);

	return nodes_follow(nodes, c, node, nodes_ask(nodes, node, c, false, report), report);
}

redisReply *nodes_send(struct nodes *nodes, const struct command *c)
{
	return nodes_read(nodes, c, NULL);
}

redisReply *nodes_send_to_source(struct nodes *nodes, const struct command *c)
{
	return nodes_ask(nodes, NULL, c, false, NULL);
}

void nodes_forget_owners(struct nodes *nodes)
{
	memset(nodes->owner, 0, sizeof(nodes->owner));
}

void nodes_deinit(struct nodes *nodes)
{
	struct node *node;

	while ((node = nodes->first)) {
		nodes->first = node->next;
		node_close(node);
		free(node);
	}
}
