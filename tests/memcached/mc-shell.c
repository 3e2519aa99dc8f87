/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mc-shell CONFIG [NAME=VALUE...]: a client of libreddn-mc for tests. NAMEs are options of the pool. It reads
 * commands, one a line, and answers each with a line:
 *
 *   set KEY FLAGS TTL VALUE, delete KEY, flush    the answer
 *   cas KEY VALUE            gets KEY, sets it by the CAS id that came; the answer
 *   fill PREFIX N BYTES      sets N keys; the number that was set
 *   get KEY                  hit|miss nic|tcp..., or an error
 *   mget PREFIX N            gets the keys of fill and compares their values; counts
 *   namespace NAME, buffer 0|1, sort, reset    change the memcached_st; the answer
 *   owner KEY                the server that a plain libmemcached chooses
 *   poll, stats, servers     what their functions return
 */
#include "libclient/reddn-mc.h"
#include "tests/lib/arg.h"
#include "util/array.h"

#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 5, VALUE_MOST = 1 << 20 };

static struct reddn_mc *mc;
static memcached_st *plain;
static uint64_t dead_timeout; /* which a configuration string cannot set */

static void say_rc(memcached_return_t rc)
{
	puts(memcached_strerror(reddn_mc_memcached(mc), rc));
}

static void get(const char *key)
{
	struct reddn_mc_result r;
	int status = reddn_mc_get(mc, key, strlen(key), &r);

	if (status < 0) {
		printf("error %s: %s\n", strerror(-status), reddn_mc_errmsg(mc));
		return;
	}
	printf("%s %s", status ? "miss" : "hit", r.by_nic ? "nic" : "tcp");
	if (status == 0) {
		printf(" flags=%u ttl=", r.flags);
		printf(r.ttl == REDDN_MC_TTL_UNKNOWN ? "?" : "%u", r.ttl);
		printf(" %.*s", (int)(r.length < 40 ? r.length : 40), (const char *)r.value);
	}
	puts("");
}

static void cas(const char *key, const char *value)
{
	struct reddn_mc_result r;

	if (reddn_mc_get(mc, key, strlen(key), &r) != 0)
		puts("absent");
	else
		say_rc(memcached_cas(
			reddn_mc_memcached(mc), key, strlen(key), value, strlen(value), 0, r.flags, r.cas));
}

/* "KEY KEY KEY ..." */
static char *value_of(const char *key, size_t bytes)
{
	char *value = calloc(1, bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		value[i] = i % (strlen(key) + 1) == strlen(key) ? ' ' : key[i % (strlen(key) + 1)];
	return value;
}

static void fill(const char *prefix, unsigned n, size_t bytes)
{
	unsigned set = 0;

	for (unsigned i = 0; i < n; i++) {
		char key[64], *value;

		snprintf(key, sizeof(key), "%s%u", prefix, i);
		value = value_of(key, bytes);
		set += memcached_set(reddn_mc_memcached(mc), key, strlen(key), value, bytes, 0, i) ==
		       MEMCACHED_SUCCESS;
		free(value);
	}
	printf("%u\n", set);
}

struct counts {
	char **keys;
	unsigned hits, nic, misses, errors, wrong, twice;
	bool *seen;
};

static void count(void *arg, const struct reddn_mc_result *r)
{
	struct counts *c = arg;
	char *value;

	c->twice += c->seen[r->cookie];
	c->seen[r->cookie] = true;
	c->hits += r->status == 0;
	c->misses += r->status == REDDN_MISS;
	c->errors += r->status < 0;
	if (r->status)
		return;
	c->nic += r->by_nic;
	value = value_of(c->keys[r->cookie], r->length);
	c->wrong += memcmp(value, r->value, r->length) != 0 || r->flags != r->cookie || !r->cas;
	free(value);
}

static void mget(const char *prefix, unsigned n)
{
	struct counts c = {.keys = calloc(n, sizeof(char *)), .seen = calloc(n, sizeof(bool))};
	size_t *lens = calloc(n, sizeof(*lens));
	unsigned absent = 0;

	for (unsigned i = 0; i < n; i++)
		lens[i] = (size_t)asprintf(&c.keys[i], "%s%u", prefix, i);
	reddn_mc_mget(mc, (const char *const *)c.keys, lens, n, count, &c);
	for (unsigned i = 0; i < n; i++) {
		absent += !c.seen[i];
		free(c.keys[i]);
	}
	printf("hits=%u nic=%u misses=%u errors=%u wrong=%u\n", c.hits, c.nic, c.misses, c.errors,
		c.wrong + c.twice + absent);
	free(c.keys);
	free(c.seen);
	free(lens);
}

static void owner(const char *key)
{
	memcached_return_t rc;
	const memcached_instance_st *at = memcached_server_by_key(plain, key, strlen(key), &rc);

	printf("%s:%u\n", memcached_server_name(at), memcached_server_port(at));
}

static void stats(void)
{
	struct reddn_mc_stats s;

	reddn_mc_get_stats(mc, &s);
	printf("gets=%" PRIu64 " nic_hits=%" PRIu64 " nic_misses=%" PRIu64 " tcp_hits=%" PRIu64
	       " tcp_misses=%" PRIu64 " errors=%" PRIu64 " repeated=%" PRIu64 " unsure=%" PRIu64
	       " absent=%" PRIu64 " absent_wrong=%" PRIu64 " elsewhere=%" PRIu64 " without_nic=%" PRIu64
	       " uses=%" PRIu64 "\n",
		s.gets, s.nic_hits, s.nic_misses, s.tcp_hits, s.tcp_misses, s.errors, s.repeated, s.unsure,
		s.absent, s.absent_wrong, s.elsewhere, s.without_nic, s.uses);
}

static void poll_once(void)
{
	struct reddn_mc_result r;

	printf("%d\n", reddn_mc_poll(mc, &r, 1));
}

static void servers(void)
{
	struct reddn_mc_server s;

	for (unsigned i = 0; reddn_mc_get_server(mc, i, &s) == 0; i++)
		printf("%s%s %s pid=%" PRIu64 " %s", i ? "; " : "", s.name, s.nic ? "nic" : "tcp", s.pid,
			s.why);
	puts("");
}

static void run(char *word[WORDS])
{
	memcached_st *m = reddn_mc_memcached(mc);

	if (strcmp(word[0], "set") == 0)
		say_rc(memcached_set(m, word[1], strlen(word[1]), word[4], strlen(word[4]),
			(time_t)arg_number(word[3], UINT32_MAX), (uint32_t)arg_number(word[2], UINT32_MAX)));
	else if (strcmp(word[0], "delete") == 0)
		say_rc(memcached_delete(m, word[1], strlen(word[1]), 0));
	else if (strcmp(word[0], "flush") == 0)
		say_rc(memcached_flush(m, 0));
	else if (strcmp(word[0], "namespace") == 0)
		say_rc(memcached_callback_set(m, MEMCACHED_CALLBACK_NAMESPACE, *word[1] ? word[1] : NULL));
	else if (strcmp(word[0], "buffer") == 0)
		say_rc(memcached_behavior_set(m, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, arg_number(word[1], 1)));
	else if (strcmp(word[0], "sort") == 0)
		say_rc(memcached_behavior_set(m, MEMCACHED_BEHAVIOR_SORT_HOSTS, 1));
	else if (strcmp(word[0], "reset") == 0)
		memcached_servers_reset(m), say_rc(MEMCACHED_SUCCESS);
	else if (strcmp(word[0], "cas") == 0)
		cas(word[1], word[2]);
	else if (strcmp(word[0], "fill") == 0)
		fill(word[1], (unsigned)arg_number(word[2], 1 << 20), arg_number(word[3], VALUE_MOST));
	else if (strcmp(word[0], "get") == 0)
		get(word[1]);
	else if (strcmp(word[0], "mget") == 0)
		mget(word[1], (unsigned)arg_number(word[2], 1 << 20));
	else if (strcmp(word[0], "owner") == 0)
		owner(word[1]);
	else if (strcmp(word[0], "stats") == 0)
		stats();
	else if (strcmp(word[0], "submit") == 0)
		printf("%d\n", reddn_mc_submit(mc, word[1], strlen(word[1]), 0));
	else if (strcmp(word[0], "poll") == 0)
		poll_once();
	else if (strcmp(word[0], "servers") == 0)
		servers();
	else
		puts("no such command");
}

static bool set_option(struct reddn_mc_options *o, char *text)
{
	const struct {
		const char *name;
		uint32_t *number;
	} numbers[] = {{"connect_ms", &o->connect_ms}, {"reply_ms", &o->reply_ms},
		{"restart_ms", &o->restart_ms}, {"flush_ms", &o->flush_ms}, {"uses_per_s", &o->uses_per_s}};
	char *value = strchr(text, '=');

	if (!value)
		return false;
	*value++ = '\0';
	for (unsigned i = 0; i < COUNT(numbers); i++)
		if (strcmp(text, numbers[i].name) == 0)
			return *numbers[i].number = (uint32_t)arg_number(value, UINT32_MAX), true;
	if (strcmp(text, "nics") == 0)
		o->nics = value;
	else if (strcmp(text, "misses") == 0)
		o->misses = strcmp(value, "fast") == 0 ? REDDN_MC_MISSES_FAST : REDDN_MC_MISSES_CONFIRM;
	else if (strcmp(text, "tcp_only") == 0)
		o->tcp_only = true;
	else if (strcmp(text, "dead_timeout") == 0)
		dead_timeout = arg_number(value, UINT32_MAX);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct reddn_mc_options options = {0};
	char *line = NULL, err[300];
	size_t room = 0;
	ssize_t len;

	for (int i = 2; i < argc; i++)
		if (!set_option(&options, argv[i]))
			return 2;
	if (argc < 2)
		return 2;
	if (reddn_mc_connect(&mc, argv[1], &options, err, sizeof(err)) < 0)
		return fprintf(stderr, "%s\n", err), 1;
	plain = memcached(argv[1], strlen(argv[1]));
	memcached_behavior_set(reddn_mc_memcached(mc), MEMCACHED_BEHAVIOR_DEAD_TIMEOUT, dead_timeout);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((len = getline(&line, &room, stdin)) > 0) {
		char *word[WORDS], *rest = line;

		line[len - 1] = '\0';
		for (unsigned i = 0; i < WORDS; i++) {
			word[i] = i + 1 < WORDS ? strsep(&rest, " ") : rest;
			word[i] = word[i] ? word[i] : line + len - 1;
		}
		run(word);
	}
	free(line);
	memcached_free(plain);
	reddn_mc_close(mc);
	return 0;
}
