/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/into.h"

int reddn_into_receive(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_slot *slot, const struct reddn_request *q)
{
	const size_t head = reddn_into_at(&s->geo) + sizeof(struct reddn_record) + q->len;
	struct ibv_sge places[REDDN_INTO_PLACES] = {
		{.addr = (uintptr_t)slot->mem, .length = (uint32_t)head, .lkey = s->mr->lkey},
		{.addr = (uintptr_t)q->into.at,
			.length = q->into.room,
			.lkey = s->memory[q->into.memory]->lkey},
		{.addr = (uintptr_t)s->sink,
			.length = (uint32_t)reddn_session_sink_len(s),
			.lkey = s->sunk->lkey}};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = (uintptr_t)k, .sg_list = places, .num_sge = REDDN_INTO_PLACES};

	/* A NIC takes a segment without bytes for one of 2^31 */
	if (!q->into.room) {
		places[1] = places[2];
		wr.num_sge--;
	}
	return -ibv_post_recv(k->qp, &wr, &bad);
}
