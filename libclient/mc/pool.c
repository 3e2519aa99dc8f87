/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/pool.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
	DEPTH_DEFAULT = 16,
	CONNECT_DEFAULT = 1000,
	REPLY_DEFAULT = 1000,
	RESTART_DEFAULT = 3000,
	FLUSH_DEFAULT = 10000,
	USES_DEFAULT = 1000,
	SPIN_DEFAULT = 20,
};

DEFINE_CLEANUP(struct reddn_mc *, reddn_mc_close)

static void or_default(uint32_t *option, uint32_t value)
{
	*option = *option ? *option : value;
}

/* The options outlive the caller's strings. -ENOMEM */
static int copy_string(const char **option, char **copy)
{
	*copy = *option ? strdup(*option) : NULL;
	if (*option && !*copy)
		return -ENOMEM;
	*option = *copy;
	return 0;
}

static int take_options(struct reddn_mc *mc, const struct reddn_mc_options *given, char *err, size_t errlen)
{
	struct reddn_mc_options *o = &mc->options;

	if (given)
		*o = *given;
	for (unsigned i = 0; i < COUNT(o->reserved); i++)
		if (o->reserved[i])
			return reddn_fail(-EINVAL, err, errlen, "reserved options must be 0");
	if (!o->offload)
		o->offload = "memcached";
	if (!*o->offload || strlen(o->offload) >= sizeof(mc->servers->where.offload))
		return reddn_fail(
			-EINVAL, err, errlen, "offload \"%s\": a name has 1 to 23 bytes", o->offload);
	if (o->depth > REDDN_WIRE_MAX_DEPTH)
		return reddn_fail(-EINVAL, err, errlen, "depth %u: up to %d", o->depth, REDDN_WIRE_MAX_DEPTH);
	o->port = o->port ? o->port : REDDN_WIRE_PORT;
	o->depth = o->depth ? o->depth : DEPTH_DEFAULT;
	or_default(&o->connect_ms, CONNECT_DEFAULT);
	or_default(&o->reply_ms, REPLY_DEFAULT);
	or_default(&o->restart_ms, RESTART_DEFAULT);
	or_default(&o->flush_ms, FLUSH_DEFAULT);
	or_default(&o->uses_per_s, USES_DEFAULT);
	or_default(&o->spin_us, SPIN_DEFAULT);
	if (copy_string(&o->nics, &mc->strings[0]) < 0 || copy_string(&o->offload, &mc->strings[1]) < 0 ||
		copy_string(&o->token_file, &mc->strings[2]) < 0)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	return 0;
}

static int open_pool(struct reddn_mc *mc, const char *config, char *err, size_t errlen)
{
	char why[512] = "";

	mc->memc = memcached(config, strlen(config));
	if (!mc->memc) {
		libmemcached_check_configuration(config, strlen(config), why, sizeof(why));
		return reddn_fail(-EINVAL, err, errlen, "\"%s\": %s", config,
			*why ? why : "libmemcached refuses this configuration");
	}
	if (memcached_server_count(mc->memc) == 0)
		return reddn_fail(-EINVAL, err, errlen, "\"%s\" names no server", config);
	if (memcached_behavior_get(mc->memc, MEMCACHED_BEHAVIOR_USE_UDP))
		return reddn_fail(-EINVAL, err, errlen, "UDP has no gets");
	/* answers have CAS ids */
	memcached_behavior_set(mc->memc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
	return 0;
}

static unsigned port_of(const memcached_instance_st *at)
{
	return *memcached_server_name(at) == '/' ? 0 : memcached_server_port(at);
}

static int add_servers(struct reddn_mc *mc, char *err, size_t errlen)
{
	uint32_t n = memcached_server_count(mc->memc);
	int r = 0;

	mc->servers = calloc(n + 1, sizeof(*mc->servers));
	mc->fds = calloc(n, 2 * sizeof(*mc->fds));
	if (!mc->servers || !mc->fds)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	for (; mc->nservers < n && r == 0; mc->nservers++) {
		const memcached_instance_st *at =
			memcached_server_instance_by_position(mc->memc, mc->nservers);
		const char *host = memcached_server_name(at);

		r = mc_server_init(&mc->servers[mc->nservers], host, port_of(at), &mc->options, err, errlen);
	}
	return r < 0 ? r : mc_server_init(&mc->servers[n], "", 0, &mc->options, err, errlen);
}

static int add_asks(struct reddn_mc *mc, char *err, size_t errlen)
{
	mc_queue_init(&mc->idle);
	mc_queue_init(&mc->held);
	mc_queue_init(&mc->nic);
	mc_queue_init(&mc->tcp);
	mc_queue_init(&mc->pieces);
	mc->asks = calloc(mc->options.depth, sizeof(*mc->asks));
	if (!mc->asks)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	for (uint32_t i = 0; i < mc->options.depth; i++)
		mc_queue_put(&mc->idle, &mc->asks[i]);
	return 0;
}

PUBLIC int reddn_mc_connect(struct reddn_mc **out, const char *config, const struct reddn_mc_options *opt,
	char *err, size_t errlen)
{
	CLEANUP(reddn_mc_closep) struct reddn_mc *mc = calloc(1, sizeof(*mc));
	int r;

	if (!mc)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	r = take_options(mc, opt, err, errlen);
	if (r == 0)
		r = open_pool(mc, config, err, errlen);
	if (r == 0)
		r = add_servers(mc, err, errlen);
	if (r == 0)
		r = add_asks(mc, err, errlen);
	if (r == 0)
		*out = steal_ptr(&mc);
	return r;
}

PUBLIC void reddn_mc_close(struct reddn_mc *mc)
{
	if (!mc)
		return;
	for (uint32_t i = 0; mc->servers && i < mc->nservers; i++)
		mc_server_deinit(&mc->servers[i]);
	for (uint32_t i = 0; mc->asks && i < mc->options.depth; i++)
		mc_tcp_deinit(&mc->asks[i].tcp);
	free(mc->servers);
	free(mc->fds);
	free(mc->asks);
	for (unsigned i = 0; i < COUNT(mc->strings); i++)
		free(mc->strings[i]);
	if (mc->memc)
		memcached_free(mc->memc);
	free(mc);
}

const char *mc_pool_namespace(const struct reddn_mc *mc, size_t *len)
{
	memcached_return_t rc;
	const char *space = memcached_callback_get(mc->memc, MEMCACHED_CALLBACK_NAMESPACE, &rc);

	space = space ? space : "";
	*len = strlen(space);
	return space;
}

static bool is_at(const struct mc_server *s, const memcached_instance_st *at)
{
	return s->port == port_of(at) && strcmp(s->host, memcached_server_name(at)) == 0;
}

/* libmemcached counts the answers that it has not read, but of what is sent without one */
static bool is_behind(const struct reddn_mc *mc, const memcached_instance_st *at)
{
	return memcached_behavior_get(mc->memc, MEMCACHED_BEHAVIOR_NOREPLY) ||
	       (memcached_behavior_get(mc->memc, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS) &&
		       memcached_server_response_count(at));
}

uint32_t mc_pool_server(struct reddn_mc *mc, const char *key, size_t key_len, bool *behind)
{
	const memcached_instance_st *at;
	uint32_t i;

	*behind = false;
	if (!memcached_server_count(mc->memc))
		return mc->nservers;
	/* servers that were ejected may be back */
	memcached_autoeject(mc->memc);
	i = memcached_generate_hash(mc->memc, key, key_len);
	at = memcached_server_instance_by_position(mc->memc, i);
	*behind = is_behind(mc, at);
	if (i < mc->nservers && is_at(&mc->servers[i], at))
		return i;
	for (i = 0; i < mc->nservers && !is_at(&mc->servers[i], at);)
		i++;
	return i;
}

PUBLIC struct memcached_st *reddn_mc_memcached(struct reddn_mc *mc)
{
	return mc->memc;
}

PUBLIC void reddn_mc_get_stats(const struct reddn_mc *mc, struct reddn_mc_stats *stats)
{
	*stats = mc->stats;
	for (uint32_t i = 0; i < mc->nservers; i++)
		stats->uses += mc->servers[i].uses.sent;
}

PUBLIC int reddn_mc_get_server(const struct reddn_mc *mc, unsigned i, struct reddn_mc_server *server)
{
	const struct mc_server *s;

	if (i >= mc->nservers)
		return -EINVAL;
	s = &mc->servers[i];
	*server = (struct reddn_mc_server){.name = s->name,
		.why = s->nic.why,
		.nic = s->nic.c && !s->nic.lost && s->verified.cas,
		.pid = s->verified.cas ? s->facts.lines.live.pid : 0};
	return 0;
}

PUBLIC const char *reddn_mc_errmsg(const struct reddn_mc *mc)
{
	return mc->errmsg;
}
