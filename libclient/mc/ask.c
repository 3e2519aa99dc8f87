/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/pool.h"
#include "util/clock.h"
#include "util/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- sends a get to its NIC, there again if the answer is not to be relied on, and to memcached ---- */

enum { TRIES = 2 }; /* how often a NIC is asked again */

void mc_send_tcp(struct reddn_mc *mc, struct mc_ask *a, uint64_t *counter)
{
	++*counter;
	mc_queue_put(&mc->tcp, a);
}

/* Requests that are on their way to the NIC of @s get no reply any more: memcached is asked. */
static void mc_send_abandon(struct reddn_mc *mc, const struct mc_server *s)
{
	for (uint32_t i = 0; i < mc->options.depth; i++) {
		struct mc_ask *a = &mc->asks[i];

		if (!a->flying || &mc->servers[a->server] != s)
			continue;
		a->flying = false;
		mc_send_tcp(mc, a, &mc->stats.without_nic);
	}
}

/* The same, and the NIC is lost because of @why. */
static void mc_send_lose(struct reddn_mc *mc, struct mc_server *s, const char *why)
{
	mc_server_lose(s, clock_ms(), why);
	mc_send_abandon(mc, s);
}

void mc_send(struct reddn_mc *mc, struct mc_ask *a)
{
	struct mc_server *s = &mc->servers[a->server];
	int r;

	if (!mc_server_ready(s)) {
		mc_send_tcp(mc, a, &mc->stats.without_nic);
		return;
	}
	/* the reply of any bucket has where to look */
	if (!mc_facts_place(&s->facts, a->table, a->key, a->key_len, &a->place))
		a->place = (struct mc_place){0};
	a->newest = s->facts.newest;
	if (!a->began_ms)
		a->began_ms = clock_tick_ms();
	r = mc_nic_ask(&s->nic, a->place.at, (uint64_t)(a - mc->asks));
	if (r == -EAGAIN) {
		mc_queue_put(&mc->nic, a);
	} else if (r < 0) {
		mc_send_lose(mc, s, reddn_errmsg(s->nic.c));
		mc_send_tcp(mc, a, &mc->stats.without_nic);
	} else {
		a->flying = true;
		a->nth = ++s->asked;
	}
}

/* Asks the NIC from the start, or memcached if it was asked often enough. */
static void mc_send_again(struct reddn_mc *mc, struct mc_ask *a)
{
	a->table = 0;
	a->beyond = false;
	a->began_ms = 0;
	a->pieces = (struct mc_pieces){0};
	if (a->tries++ == TRIES) {
		mc_send_tcp(mc, a, &mc->stats.unsure);
		return;
	}
	mc->stats.repeated++;
	mc_send(mc, a);
}

/* Sends what its NIC had no room for before. */
static void mc_send_queued(struct reddn_mc *mc)
{
	struct mc_queue waiting = mc->nic;
	struct mc_ask *a;

	if (!waiting.first)
		return;
	mc_queue_init(&mc->nic);
	while ((a = mc_queue_take(&waiting)) != NULL)
		mc_send(mc, a);
}

/* ---- items that are longer than a reply of memcached-get: their bytes by memcached-piece, and then another
 * reply, which shows that they belong together ---- */

/* LINES: of a reply, before the piece. MOST: of an item; the file has as many bytes behind the last one */
enum { LINES = sizeof(struct mc_lines), MOST = 1 << 20, PIECES_BATCH = 16 };

static uint32_t piece_bytes(const struct mc_server *s)
{
	struct reddn_info info;

	reddn_get_info(s->pieces.c, &info);
	return info.reply_max > LINES ? info.reply_max - LINES : 0;
}

/* No piece of it is on its way, and none is to be sent */
static void settle(struct reddn_mc *mc, struct mc_ask *a)
{
	if (a->pieces.flying || a->pieces.waiting)
		return;
	if (a->pieces.lost)
		mc_send_tcp(mc, a, &mc->stats.elsewhere);
	else if (a->pieces.changed)
		mc_send_again(mc, a);
	else
		mc_send(mc, a);
}

/* Pieces that are on their way do not come any more */
static void lose(struct reddn_mc *mc, struct mc_server *s, const char *why)
{
	mc_nic_lose(&s->pieces, clock_ms(), why);
	for (uint32_t i = 0; i < mc->options.depth; i++) {
		struct mc_ask *a = &mc->asks[i];

		if (!(a->pieces.flying || a->pieces.waiting) || &mc->servers[a->server] != s)
			continue;
		a->pieces.lost = true;
		if (a->pieces.flying) {
			a->pieces.flying = 0;
			settle(mc, a);
		}
	}
}

/* Its next piece, if there is one. -EAGAIN: later */
static int send_piece(struct reddn_mc *mc, struct mc_ask *a, struct mc_server *s)
{
	struct mc_pieces *p = &a->pieces;
	uint64_t cookie = (uint64_t)p->sent << 32 | (uint64_t)(a - mc->asks);
	int r;

	if (p->sent == p->all || p->changed || p->lost)
		return 0;
	r = mc_nic_ask(&s->pieces, p->item.place + (uint64_t)p->sent * piece_bytes(s), cookie);
	if (r == -EAGAIN)
		return r;
	if (r < 0) {
		lose(mc, s, reddn_errmsg(s->pieces.c));
		return 0;
	}
	p->sent++;
	p->flying++;
	return 1;
}

/* Sends what is in mc->pieces, as far as there is room. */
static void mc_pieces_send(struct reddn_mc *mc)
{
	struct mc_queue waiting = mc->pieces;
	struct mc_ask *a;

	mc_queue_init(&mc->pieces);
	while ((a = mc_queue_take(&waiting)) != NULL) {
		int r;

		while ((r = send_piece(mc, a, &mc->servers[a->server])) > 0)
			;
		if (r == -EAGAIN) {
			mc_queue_put(&mc->pieces, a);
			continue;
		}
		a->pieces.waiting = false;
		settle(mc, a);
	}
}

/* Asks for the pieces of @item. False: nobody sends them. */
static bool mc_pieces_begin(struct reddn_mc *mc, struct mc_ask *a, const struct mc_item *item)
{
	struct mc_server *s = &mc->servers[a->server];
	size_t len = item->at + item->len;
	uint32_t bytes;

	if (len > MOST || !mc_server_has_pieces(s))
		return false;
	bytes = piece_bytes(s);
	if (!bytes || mc_tcp_reserve(&a->tcp, len) < 0)
		return false;
	a->pieces = (struct mc_pieces){.item = *item,
		.generation = a->place.generation,
		.all = (uint32_t)((len + bytes - 1) / bytes),
		.waiting = true};
	mc_queue_put(&mc->pieces, a);
	return true;
}

static void pieces_take(struct reddn_mc *mc, struct mc_server *s, const struct reddn_result *got)
{
	struct mc_ask *a = &mc->asks[got->cookie & UINT32_MAX];
	struct mc_pieces *p = &a->pieces;
	size_t bytes = got->length - LINES, from = (got->cookie >> 32) * bytes;
	size_t left = p->item.at + p->item.len - from;
	uint64_t known = s->facts.lines.served.identity;
	struct mc_lines lines;

	memcpy(&lines, got->value, sizeof(lines));
	p->flying--;
	s->pieces.pause_ms = 0;
	if (lines.live.generation != p->generation || lines.served.identity != known)
		p->changed = true;
	else
		memcpy(a->tcp.value + from, (const char *)got->value + LINES, left < bytes ? left : bytes);
	settle(mc, a);
}

/* Takes pieces from @s, from which some are due. Asks that have all pieces are sent to memcached-get again.
 */
static void mc_pieces_collect(struct reddn_mc *mc, struct mc_server *s)
{
	struct reddn_result got[PIECES_BATCH];
	const char *why;
	uint64_t now_ms;
	int k = mc_nic_poll(&s->pieces, got, PIECES_BATCH, mc->options.reply_ms, &now_ms, &why);

	if (k < 0)
		lose(mc, s, why);
	for (int i = 0; i < k; i++)
		pieces_take(mc, s, &got[i]);
	mc_nic_release(&s->pieces);
}

/* The pieces of @a are the value of *@item, which is what that reply showed; sets the value. */
static bool mc_pieces_judge(const struct mc_ask *a, struct mc_item *item, const struct mc_question *q)
{
	const struct mc_item after = *item;

	return a->place.generation == a->pieces.generation &&
	       mc_judge_pieces(&a->pieces.item, (const uint8_t *)a->tcp.value, &after, q, item);
}

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
	if (!mc_server_learn(s, &lines, a->nth, now_ms)) {
		if (mc_server_doubts(s, a->nth)) {
			mc_send_again(mc, a);
			return 0;
		}
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
