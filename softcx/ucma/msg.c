/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/msg.h"

#include <stdlib.h>
#include <string.h>

/* Requests are repeated faster than by cma.c, for the sake of full backlogs. */
#define REQUEST_AGAIN_NS (UINT64_C(25) * 1000000)

bool ucma_msg_path(const struct ucma_net *net, unsigned from, unsigned to)
{
	return hw_port_up(net->devs[from].hw) && hw_port_up(net->devs[to].hw);
}

struct ucma_msg *ucma_msg_new(const struct ucma_id *id, enum ucma_msg_type type)
{
	struct ucma_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return NULL;
	msg->type = type;
	msg->from = id->handle;
	msg->to = id->peer;
	msg->from_dev = id->local.dev;
	msg->to_dev = id->remote.dev;
	return msg;
}

void ucma_msg_post(struct ucma_net *net, struct ucma_msg *msg)
{
	STAILQ_INSERT_TAIL(&net->wire, msg, link);
}

void ucma_msg_tell(
	struct ucma_id *id, enum ucma_msg_type type, uint32_t reason, const uint8_t *data, size_t len)
{
	struct ucma_msg *msg = ucma_msg_new(id, type);

	if (!msg)
		return;
	msg->reason = reason;
	if (len)
		memcpy(msg->data, data, len);
	ucma_msg_post(id->net, msg);
}

void ucma_msg_reply(struct ucma_net *net, const struct ucma_msg *to, enum ucma_msg_type type, uint32_t reason)
{
	struct ucma_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return;
	msg->type = type;
	msg->from = to->to;
	msg->to = to->from;
	msg->from_dev = to->to_dev;
	msg->to_dev = to->from_dev;
	msg->reason = reason;
	ucma_msg_post(net, msg);
}

bool ucma_msg_ask_again(struct ucma_id *id)
{
	bool request = id->asked->type == UCMA_MSG_REQ || id->asked->type == UCMA_MSG_SIDR_REQ;
	struct ucma_msg *copy = malloc(sizeof(*copy));

	ucma_timer_start(id, request ? REQUEST_AGAIN_NS : UCMA_AGAIN_NS);
	if (!copy)
		return false;
	*copy = *id->asked;
	ucma_msg_post(id->net, copy);
	return true;
}

void ucma_msg_ask_later(struct ucma_id *id)
{
	uint64_t asked = nic_now() - id->first_asked, pause = asked < UCMA_AGAIN_NS ? asked : UCMA_AGAIN_NS;

	ucma_timer_start(id, pause < REQUEST_AGAIN_NS ? REQUEST_AGAIN_NS : pause);
}

bool ucma_msg_ask(struct ucma_id *id, struct ucma_msg *msg)
{
	free(id->asked);
	id->asked = msg;
	id->first_asked = nic_now();
	return ucma_msg_ask_again(id);
}

void ucma_msg_stop_asking(struct ucma_id *id)
{
	ucma_timer_stop(id);
	free(id->asked);
	id->asked = NULL;
	id->heard = false;
}

void ucma_msg_drop_all(struct ucma_net *net)
{
	while (!STAILQ_EMPTY(&net->wire)) {
		struct ucma_msg *msg = STAILQ_FIRST(&net->wire);

		STAILQ_REMOVE_HEAD(&net->wire, link);
		free(msg);
	}
}
