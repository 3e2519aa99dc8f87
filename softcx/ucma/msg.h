/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * msg.h - messages between two ids: the contents of MADs of the connection manager, and sending them.
 *
 * A message is lost like a packet if memory is short or a port on its way is down when it should arrive;
 * messages that need an answer are sent again, as by cm.c of Linux. The wire owns a message that was sent,
 * and keeps the order.
 */
#ifndef SOFTCX_UCMA_MSG_H
#define SOFTCX_UCMA_MSG_H

#include "softcx/ucma/net.h"

/*
 * cma.c asks again after 4.096 us * 2^20 (CMA_CM_RESPONSE_TIMEOUT), 15 times (CMA_MAX_CM_RETRIES); a peer
 * that has sent MRA gets 2^(24-8) ms, about the same.
 */
#define UCMA_AGAIN_NS (UINT64_C(4096) << 20)
#define UCMA_GIVE_UP_NS (16 * UCMA_AGAIN_NS)

enum ucma_msg_type {
	UCMA_MSG_REQ,
	UCMA_MSG_REP,
	UCMA_MSG_RTU,
	UCMA_MSG_REJ,
	UCMA_MSG_DREQ,
	UCMA_MSG_DREP,
	UCMA_MSG_SIDR_REQ,
	UCMA_MSG_SIDR_REP
};

struct ucma_msg {
	STAILQ_ENTRY(ucma_msg) link;
	enum ucma_msg_type type;
	uint32_t from, to; /* handles; @to is 0 for requests */
	unsigned from_dev, to_dev;
	uint32_t reason; /* REJ reason, SIDR_REP status */
	uint16_t ps;
	uint8_t qp_type;
	struct sockaddr_storage src, dst; /* of requests */
	struct ucma_where src_at, dst_at;
	uint32_t qpn, qkey, psn;
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
	uint8_t tclass;      /* of a REQ: the traffic class of the path, both ways */
	uint8_t ack_timeout; /* of a REQ: how long the passive side waits for an ACK, 4.096 us * 2^x */
	struct rdma_ucm_ece ece;
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
};

/** From @id to its peer; NULL when memory is short. The caller frees or sends it. */
struct ucma_msg *ucma_msg_new(const struct ucma_id *id, enum ucma_msg_type type);
/** Sends @msg, which it takes over. */
void ucma_msg_post(struct ucma_net *net, struct ucma_msg *msg);
/** Sends a message that consists of a reason and private data. */
void ucma_msg_tell(
	struct ucma_id *id, enum ucma_msg_type type, uint32_t reason, const uint8_t *data, size_t len);
/** Answers the sender of @to, in place of an id that does not exist. */
void ucma_msg_reply(
	struct ucma_net *net, const struct ucma_msg *to, enum ucma_msg_type type, uint32_t reason);
/** Sends @msg, which it takes over, again and again until ucma_msg_stop_asking(). False: not sent now. */
bool ucma_msg_ask(struct ucma_id *id, struct ucma_msg *msg);
/** The timer of ucma_msg_ask(). */
bool ucma_msg_ask_again(struct ucma_id *id);
/** A backlog was full: again after as long as it has asked, because thousands may wait. */
void ucma_msg_ask_later(struct ucma_id *id);
void ucma_msg_stop_asking(struct ucma_id *id); /* stops the timer too */
void ucma_msg_drop_all(struct ucma_net *net);

/** True if a message can pass between the devices now: both ports are up. */
bool ucma_msg_path(const struct ucma_net *net, unsigned from, unsigned to);

#endif
