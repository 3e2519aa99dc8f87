/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int reddn_session_sink(struct reddn_session *s)
{
	s->sink = map_pages(reddn_session_sink_len(s));
	return s->sink ? 0 : -ENOMEM;
}

int reddn_session_init(struct reddn_session *s)
{
	uint32_t depth = s->depth * s->info.connections;
	uint8_t *encoded;

	s->info.depth = depth;
	s->area_len = (size_t)depth * (s->info.slot_size + REDDN_REQUEST_BYTES + REDDN_NUMBER_BYTES);
	s->area = map_pages(s->area_len);
	s->connection = calloc(s->info.connections, sizeof(*s->connection));
	s->slots = calloc(depth, sizeof(*s->slots));
	s->recvs = calloc(depth, sizeof(*s->recvs));
	s->number = calloc(depth, sizeof(*s->number));
	if (!s->area || !s->connection || !s->slots || !s->recvs || !s->number)
		return -ENOMEM;
	encoded = s->area + (size_t)depth * s->info.slot_size;
	s->numbers = encoded + (size_t)depth * REDDN_REQUEST_BYTES;
	for (uint32_t i = 0; i < depth; i++) {
		bool last = (i + 1) % s->depth == 0;

		s->slots[i] = (struct reddn_slot){.next = &s->slots[last ? i + 1 - s->depth : i + 1],
			.mem = reddn_slot_mem(s, i),
			.encoded = encoded + (size_t)i * REDDN_REQUEST_BYTES,
			.refill = last && !s->into ? &s->connection[i / s->depth] : NULL};
		s->recvs[i] = (struct ibv_recv_wr){.wr_id = (uintptr_t)&s->connection[i / s->depth],
			.next = last ? NULL : &s->recvs[i + 1],
			.sg_list = &s->number[i],
			.num_sge = 1};
	}
	/* The completion of a batch of sends may come after their replies */
	s->wqes = 3 * s->depth;
	s->signal_every = s->depth;
	s->turn = s->connection;
	s->seen = REDDN_SEEN_NOTHING;
	s->plain = UINT64_MAX;
	for (uint32_t i = 0; i < s->info.connections; i++) {
		struct reddn_connection *k = &s->connection[i];

		k->base = i * s->depth;
		k->sent_slot = k->arrived_slot = &s->slots[k->base];
		k->until_signal = s->signal_every;
		k->recvs = s->recvs + k->base;
		k->next = &s->connection[i + 1 < s->info.connections ? i + 1 : 0];
	}
	return 0;
}

/* Bytes of the longest key that is sent in the usual way */
static size_t usual_key(const struct reddn_session *s)
{
	if (s->info.shape != REDDN_TABLE || s->geo.keys != 1 || s->geo.header ||
		s->info.request_len > s->inline_max)
		return 0;
	for (uint32_t i = 0; i < s->info.connections; i++)
		if (!s->connection[i].qp_ex)
			return 0;
	return s->geo.max_key;
}

void reddn_session_complete(struct reddn_session *s)
{
	/* An immediate has no bytes. Of the receives that are posted already it uses none */
	for (uint32_t i = 0; i < s->info.depth && !s->sends; i++)
		s->recvs[i].num_sge = 0;
	s->usual_key = usual_key(s);
}

static bool is_same_table(const struct reddn_geometry *a, const struct reddn_geometry *b)
{
	return a->seed == b->seed && a->buckets == b->buckets && a->max_key == b->max_key &&
	       a->max_value == b->max_value && a->offset_len == b->offset_len && a->keys == b->keys &&
	       a->header == b->header && a->part == b->part && a->room == b->room;
}

/* Neither arguments nor fields have bytes between their members. */
static bool is_same_format(const struct reddn_request_format *a, const struct reddn_request_format *b)
{
	return a->nargs == b->nargs && a->nfields == b->nfields && a->keys == b->keys &&
	       memcmp(a->arg, b->arg, a->nargs * sizeof(*a->arg)) == 0 &&
	       memcmp(a->field, b->field, a->nfields * sizeof(*a->field)) == 0;
}

bool reddn_session_is_same(const struct reddn_session *a, const struct reddn_session *b)
{
	return a->info.shape == b->info.shape && a->info.request_len == b->info.request_len &&
	       a->info.reply_max == b->info.reply_max && a->program == b->program &&
	       is_same_table(&a->geo, &b->geo) && is_same_format(&a->format, &b->format);
}

bool reddn_session_can_follow(const struct reddn_session *a, const struct reddn_session *b)
{
	return (a->info.shape == b->info.shape && a->info.shape != REDDN_OPAQUE) ||
	       reddn_session_is_same(a, b);
}

uint8_t reddn_session_part(const struct reddn_session *s, uint8_t kind, unsigned n)
{
	uint8_t best = 0;

	for (unsigned i = 0; i < REDDN_WIRE_PARTS; i++) {
		const uint8_t part = s->part[i];
		const unsigned keys = reddn_wire_part_keys(part), most = reddn_wire_part_keys(best);

		if (keys && (part & REDDN_WIRE_PART_EXISTS) == kind &&
			(most < n ? keys > most : keys >= n && keys < most))
			best = part;
	}
	return best;
}

uint64_t reddn_session_outstanding(const struct reddn_session *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->info.connections && s->connection; i++)
		n += s->connection[i].sent - s->connection[i].arrived;
	return n;
}

uint64_t reddn_session_sent(const struct reddn_session *s)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < s->info.connections && s->connection; i++)
		sent += s->connection[i].sent;
	return sent;
}

/* RECVs complete in turn, so what this one got without an immediate is beside the slot that is next. */
uint32_t reddn_session_number(const struct reddn_session *s, const struct ibv_wc *wc)
{
	const struct reddn_connection *k = (struct reddn_connection *)(uintptr_t)wc->wr_id;
	__be32 number = wc->imm_data;

	if (s->into)
		memcpy(&number, k->arrived_slot->mem + REDDN_INTO_NUMBER, sizeof(number));
	else if (s->sends)
		memcpy(&number, s->numbers + (k->arrived_slot - s->slots) * REDDN_NUMBER_BYTES,
			sizeof(number));
	return ntohl(number);
}

void reddn_session_deinit(struct reddn_session *s)
{
	if (s->area)
		munmap(s->area, s->area_len);
	if (s->sink)
		munmap(s->sink, reddn_session_sink_len(s));
	free(s->connection);
	free(s->slots);
	free(s->recvs);
	free(s->number);
	s->area = s->sink = NULL;
	s->connection = s->turn = NULL;
	s->slots = NULL;
	s->recvs = NULL;
	s->number = NULL;
}
