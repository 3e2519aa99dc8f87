/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/ask.h"

#include "libclient/mc/pieces.h"
#include "libclient/mc/send.h"
#include "util/clock.h"
#include "util/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* MOVE_MS: a get takes less than moving an item there and back, in milliseconds. */
enum { BATCH = 16, TCP_BATCH = 64, MOVE_MS = 100 };

/* ---- what the NIC answers --------------------------------------------------------------- */

static void finish(struct reddn_mc *mc, struct mc_ask *a, struct reddn_mc_result *res, int status)
{
	*res = (struct reddn_mc_result){.cookie = a->cookie, .status = status};
	mc_queue_put(&mc->held, a);
	mc->busy--;
}

static int hit(struct reddn_mc *mc, struct mc_ask *a, const struct mc_item *item, uint64_t now_ms,
	struct reddn_mc_result *res)
{
	struct mc_server *s = &mc->servers[a->server];

	finish(mc, a, res, 0);
	res->value = item->value;
	res->length = item->len;
	res->cas = item->cas;
	res->flags = item->flags;
	res->ttl = item->exptime ? item->exptime - (uint32_t)mc_facts_clock(&s->facts, now_ms) : 0;
	res->by_nic = true;
	mc->stats.nic_hits++;
	if (item->due && mc->options.uses_per_s != REDDN_MC_NEVER && !s->facts.lines.served.died)
		mc_uses_report(&s->uses, a->key, a->key_len, clock_ns());
	return 1;
}

/* The table that was asked does not have it, among the items that the NIC sends */
static int absent(struct reddn_mc *mc, struct mc_ask *a, struct reddn_mc_result *res)
{
	const struct mc_facts *facts = &mc->servers[a->server].facts;
	struct mc_place next;

	if (mc_facts_place(facts, a->table + 1u, a->key, a->key_len, &next)) {
		a->table++;
		mc_send(mc, a);
		return 0;
	}
	/* what is dead does not move items */
	if (!a->beyond && (mc->options.misses == REDDN_MC_MISSES_FAST || facts->lines.served.died)) {
		finish(mc, a, res, REDDN_MISS);
		res->by_nic = true;
		mc->stats.nic_misses++;
		return 1;
	}
	a->absent = true;
	mc_send_tcp(mc, a, &mc->stats.absent);
	return 0;
}

static int judge(struct reddn_mc *mc, struct mc_ask *a, const struct mc_lines *lines,
	const struct reddn_result *got, uint64_t now_ms, struct reddn_mc_result *res)
{
	struct mc_facts *facts = &mc->servers[a->server].facts;
	const struct mc_question q = {.key = a->key,
		.key_len = a->key_len,
		.clock = mc_facts_clock(facts, now_ms),
		.newest = a->newest,
		.rules = MC_RULES};
	struct mc_item item;
	enum mc_judgement judgement = mc_judge(got->value, got->length, lines, &q, &item);

	mc_facts_saw(facts, item.cas);
	if (a->pieces.all)
		judgement = judgement == MC_LONG && mc_pieces_judge(a, &item, &q) ? MC_HIT : MC_UNSURE;
	/* an item that moves with its CAS id may come back to its place, but not within that time */
	if ((lines->served.traits & REDDN_CACHE_IDS_MOVE) && now_ms - a->began_ms > MOVE_MS)
		judgement = MC_UNSURE;
	switch (judgement) {
	case MC_HIT:
		return hit(mc, a, &item, now_ms, res);
	case MC_BEYOND:
		a->beyond = true;
		return absent(mc, a, res);
	case MC_ABSENT:
		return absent(mc, a, res);
	case MC_UNSURE:
		mc_send_again(mc, a);
		return 0;
	case MC_LONG:
		if (mc_pieces_begin(mc, a, &item))
			return 0;
		break;
	case MC_ELSEWHERE:
		break;
	}
	mc_send_tcp(mc, a, &mc->stats.elsewhere);
	return 0;
}

/* Returns the number of results, 0 or 1 */
static int take(struct reddn_mc *mc, struct mc_server *s, const struct reddn_result *got, uint64_t now_ms,
	struct reddn_mc_result *res)
{
	struct mc_ask *a = &mc->asks[got->cookie];
	bool listens = s->listens;
	struct mc_lines lines;
	uint64_t generation;

	a->flying = false;
	/* reddnd is writing its line, or the next memcached begins */
	s->begins = !mc_lines_read(got->value, got->length, &lines);
	s->listens = s->begins && listens;
	if (s->begins) {
		mc_send_again(mc, a);
		return 0;
	}
	generation = s->verified.generation;
	if (!mc_server_learn(s, &lines, now_ms)) {
		if (s->nic.lost)
			mc_send_abandon(mc, s);
		/* another memcached answers where libmemcached may pause */
		if (s->nic.lost && generation)
			memcached_quit(mc->memc);
		mc_send_tcp(mc, a, &mc->stats.without_nic);
		return 0;
	}
	/* the next memcached runs, and libmemcached need not wait for the end of its pause */
	if (generation && s->verified.generation != generation && !lines.served.died && !listens)
		memcached_quit(mc->memc);
	if (!mc_place_holds(&a->place, &lines)) {
		mc_send_again(mc, a);
		return 0;
	}
	if (mc->options.flush_ms != REDDN_MC_FOREVER &&
		mc_facts_age(&s->facts, now_ms) > mc->options.flush_ms) {
		mc_send_tcp(mc, a, &mc->stats.without_nic);
		return 0;
	}
	return judge(mc, a, &lines, got, now_ms, res);
}

static int collect(struct reddn_mc *mc, struct mc_server *s, struct reddn_mc_result *res, int max)
{
	struct reddn_result got[BATCH];
	const char *why;
	uint64_t now_ms;
	int k, n = 0;

	if (!s->nic.flying || s->nic.lost || max <= 0)
		return 0;
	k = mc_nic_poll(&s->nic, got, max < BATCH ? max : BATCH, mc->options.reply_ms, &now_ms, &why);
	if (k < 0)
		mc_send_lose(mc, s, why);
	for (int i = 0; i < k && !s->nic.lost; i++)
		n += take(mc, s, &got[i], now_ms, &res[n]);
	return n;
}

static void send_uses(struct mc_server *s)
{
	if (s->uses.len && !s->facts.lines.served.died)
		mc_uses_send_due(&s->uses, clock_tick_ns());
}

/* ---- over TCP --------------------------------------------------------------------------- */

/* Takes those of one server from the queue */
static size_t choose(struct reddn_mc *mc, struct mc_ask *chosen[TCP_BATCH], size_t max)
{
	struct mc_queue others;
	struct mc_ask *a;
	size_t n = 0;

	mc_queue_init(&others);
	while ((a = mc_queue_take(&mc->tcp)) != NULL) {
		if (n < max && (n == 0 || a->server == chosen[0]->server))
			chosen[n++] = a;
		else
			mc_queue_put(&others, a);
	}
	while ((a = mc_queue_take(&others)) != NULL)
		mc_queue_put(&mc->tcp, a);
	return n;
}

/* It may ask its NIC again, and wait for memcached meanwhile */
static bool may_wait(const struct reddn_mc *mc, const struct mc_ask *a)
{
	const struct mc_server *s = &mc->servers[a->server];

	return s->nic.c && !s->nic.lost && (s->begins || !s->facts.lines.served.died) &&
	       clock_ms() - a->asked_ms < mc->options.restart_ms;
}

/* Nobody answers, but it is not known either that its memcached is dead: it may have just died, or be about
 * to answer again */
static bool may_answer(const struct reddn_mc *mc, const struct mc_ask *a)
{
	return (a->tcp.status == -ECONNREFUSED || a->tcp.status == -ECONNRESET || a->tcp.status == -EPIPE ||
		       a->tcp.status == -EIO) &&
	       may_wait(mc, a);
}

/* Its memcached is started again, and does not listen yet: libmemcached would leave it alone for seconds.
 * Once it listens, libmemcached need not wait for the end of such a pause. */
static bool is_to_wait(struct reddn_mc *mc, const struct mc_ask *a)
{
	struct mc_server *s = &mc->servers[a->server];

	if (!s->begins || s->listens || !may_wait(mc, a))
		return false;
	if (!mc_server_listens(s))
		return true;
	memcached_quit(mc->memc);
	return false;
}

static void wait_for_memcached(struct reddn_mc *mc, struct mc_ask *a)
{
	a->tries = 0;
	a->absent = false;
	mc_send_again(mc, a);
}

static void finish_tcp(struct reddn_mc *mc, struct mc_ask *a, struct reddn_mc_result *res)
{
	const struct mc_tcp_get *get = &a->tcp;

	finish(mc, a, res, get->status);
	if (get->status < 0) {
		mc->stats.errors++;
		snprintf(mc->errmsg, sizeof(mc->errmsg), "%s", memcached_last_error_message(mc->memc));
		text_clean(mc->errmsg);
	} else if (get->status == REDDN_MISS) {
		mc->stats.tcp_misses++;
	} else {
		mc->stats.tcp_hits++;
		mc->stats.absent_wrong += a->absent;
		res->value = get->value;
		res->length = get->len;
		res->cas = get->cas;
		res->flags = get->flags;
		res->ttl = REDDN_MC_TTL_UNKNOWN;
	}
}

/* libmemcached puts its own in front of the key */
static bool has_namespace(const struct reddn_mc *mc, const struct mc_ask *a)
{
	size_t len;
	const char *space = mc_pool_namespace(mc, &len);

	return len == a->space_len && memcmp(space, a->key, len) == 0;
}

static int ask_tcp(struct reddn_mc *mc, struct reddn_mc_result *res, int max)
{
	struct mc_ask *chosen[TCP_BATCH];
	struct mc_tcp_get *gets[TCP_BATCH] = {NULL};
	size_t all = choose(mc, chosen, max < TCP_BATCH ? (size_t)max : TCP_BATCH), n = 0;
	int done = 0;

	for (size_t i = 0; i < all; i++) {
		struct mc_ask *a = chosen[i];

		if (!has_namespace(mc, a)) {
			finish(mc, a, &res[done++], -ECANCELED);
			mc->stats.errors++;
			snprintf(mc->errmsg, sizeof(mc->errmsg),
				"the namespace was changed while the get was outstanding");
			continue;
		}
		if (is_to_wait(mc, a)) {
			wait_for_memcached(mc, a);
			continue;
		}
		chosen[n] = a;
		gets[n] = &a->tcp;
		gets[n]->key = a->key + a->space_len;
		gets[n++]->key_len = a->key_len - a->space_len;
	}
	mc_tcp_ask(mc->memc, gets, n);
	for (size_t i = 0; i < n; i++) {
		if (!may_answer(mc, chosen[i])) {
			finish_tcp(mc, chosen[i], &res[done++]);
			continue;
		}
		/* one that listened, and was not proved, may have died, too */
		mc->servers[chosen[i]->server].listens = false;
		wait_for_memcached(mc, chosen[i]);
	}
	return done;
}

/* ----------------------------------------------------------------------------------------- */

void mc_ask_release(struct reddn_mc *mc)
{
	struct mc_ask *a;

	for (uint32_t i = 0; i < mc->nservers; i++)
		mc_server_release(&mc->servers[i]);
	while ((a = mc_queue_take(&mc->held)) != NULL)
		mc_queue_put(&mc->idle, a);
}

int mc_ask_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max)
{
	int n = 0;

	mc_ask_release(mc);
	mc_send_queued(mc);
	for (uint32_t i = 0; i < mc->nservers; i++) {
		struct mc_server *s = &mc->servers[i];

		if (s->pieces.flying)
			mc_pieces_collect(mc, s);
		n += collect(mc, s, res + n, max - n);
		send_uses(s);
	}
	if (mc->pieces.first)
		mc_pieces_send(mc);
	if (n == 0 && max > 0 && mc->tcp.first)
		n = ask_tcp(mc, res, max);
	return n;
}
