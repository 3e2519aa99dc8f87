/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/pieces.h"

#include "libclient/mc/send.h"
#include "util/clock.h"

#include <errno.h>
#include <string.h>

/* LINES: of a reply, before the piece. MOST: of an item; the file has as many bytes behind the last one */
enum { LINES = sizeof(struct mc_lines), MOST = 1 << 20, BATCH = 16 };

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

void mc_pieces_send(struct reddn_mc *mc)
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

bool mc_pieces_begin(struct reddn_mc *mc, struct mc_ask *a, const struct mc_item *item)
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

static void take(struct reddn_mc *mc, struct mc_server *s, const struct reddn_result *got)
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

void mc_pieces_collect(struct reddn_mc *mc, struct mc_server *s)
{
	struct reddn_result got[BATCH];
	const char *why;
	uint64_t now_ms;
	int k = mc_nic_poll(&s->pieces, got, BATCH, mc->options.reply_ms, &now_ms, &why);

	if (k < 0)
		lose(mc, s, why);
	for (int i = 0; i < k; i++)
		take(mc, s, &got[i]);
	mc_nic_release(&s->pieces);
}

bool mc_pieces_judge(const struct mc_ask *a, struct mc_item *item, const struct mc_question *q)
{
	const struct mc_item after = *item;

	return a->place.generation == a->pieces.generation &&
	       mc_judge_pieces(&a->pieces.item, (const uint8_t *)a->tcp.value, &after, q, item);
}
