/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/*
 * Messages between two ids: the contents of MADs of the connection manager, and sending them.
 *
 * A message is lost like a packet if memory is short or a port on its way is down when it should arrive;
 * messages that need an answer are sent again, as by cm.c of Linux. The wire owns a message that was sent,
 * and keeps the order.
 */

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

/*
 * cma.c asks again after 4.096 us * 2^20 (CMA_CM_RESPONSE_TIMEOUT), 15 times (CMA_MAX_CM_RETRIES); a peer
 * that has sent MRA gets 2^(24-8) ms, about the same.
 */
#define UCMA_AGAIN_NS (UINT64_C(4096) << 20)
#define UCMA_GIVE_UP_NS (16 * UCMA_AGAIN_NS)

/* Requests are repeated faster than by cma.c, for the sake of full backlogs. */
#define REQUEST_AGAIN_NS (UINT64_C(25) * 1000000)

bool ucma_msg_path(const struct ucma_net *net, unsigned from, unsigned to)
{
	return hw_port_up(net->devs[from].hw) && hw_port_up(net->devs[to].hw);
}

/* From @id to its peer; NULL when memory is short. The caller frees or sends it. */
static struct ucma_msg *msg_new(const struct ucma_id *id, enum ucma_msg_type type)
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

/* Sends @msg, which it takes over. */
static void msg_post(struct ucma_net *net, struct ucma_msg *msg)
{
	STAILQ_INSERT_TAIL(&net->wire, msg, link);
}

/* Sends a message that consists of a reason and private data. */
static void msg_tell(
	struct ucma_id *id, enum ucma_msg_type type, uint32_t reason, const uint8_t *data, size_t len)
{
	struct ucma_msg *msg = msg_new(id, type);

	if (!msg)
		return;
	msg->reason = reason;
	if (len)
		memcpy(msg->data, data, len);
	msg_post(id->net, msg);
}

/* Answers the sender of @to, in place of an id that does not exist. */
static void msg_reply(
	struct ucma_net *net, const struct ucma_msg *to, enum ucma_msg_type type, uint32_t reason)
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
	msg_post(net, msg);
}

/* The timer of msg_ask(). */
static bool msg_ask_again(struct ucma_id *id)
{
	bool request = id->asked->type == UCMA_MSG_REQ || id->asked->type == UCMA_MSG_SIDR_REQ;
	struct ucma_msg *copy = malloc(sizeof(*copy));

	ucma_timer_start(id, request ? REQUEST_AGAIN_NS : UCMA_AGAIN_NS);
	if (!copy)
		return false;
	*copy = *id->asked;
	msg_post(id->net, copy);
	return true;
}

/* A backlog was full: again after as long as it has asked, because thousands may wait. */
static void msg_ask_later(struct ucma_id *id)
{
	uint64_t asked = nic_now() - id->first_asked, pause = asked < UCMA_AGAIN_NS ? asked : UCMA_AGAIN_NS;

	ucma_timer_start(id, pause < REQUEST_AGAIN_NS ? REQUEST_AGAIN_NS : pause);
}

/* Sends @msg, which it takes over, again and again until msg_stop_asking(). False: not sent now. */
static bool msg_ask(struct ucma_id *id, struct ucma_msg *msg)
{
	free(id->asked);
	id->asked = msg;
	id->first_asked = nic_now();
	return msg_ask_again(id);
}

/* stops the timer too */
static void msg_stop_asking(struct ucma_id *id)
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

/*
 * User bytes of private data that each message carries, padded with zeros (include/rdma/ib_cm.h:
 * IB_CM_*_PRIVATE_DATA_SIZE). Requests with IP addresses give 36 of theirs to struct cma_hdr.
 */
#define CMA_HDR 36
#define REQ_DATA (92 - CMA_HDR)
#define REP_DATA 196
#define REJ_DATA 148
#define SIDR_REQ_DATA (216 - CMA_HDR)
#define SIDR_REP_DATA 136

enum { /* enum ib_cm_rej_reason, enum ib_cm_sidr_status */
	REJ_TIMEOUT = 4,
	REJ_INVALID_SERVICE_ID = 8,
	REJ_STALE_CONN = 10,
	REJ_CONSUMER_DEFINED = 28,
	SIDR_SUCCESS = 0,
	SIDR_UNSUPPORTED = 1,
	SIDR_REJECT = 2,
};

#define IB_EVENT_COMM_EST 4 /* enum ib_event_type, the same as IBV_EVENT_COMM_EST */

/*
 * A request that finds no listener is asked again for this long before it is rejected. Between two real
 * machines it takes a while to arrive, and programs count on that: perftest's server lets the client connect
 * and only then listens.
 */
#define NO_LISTENER_NS (UINT64_C(500) * 1000000)

#define DELIVER_MAX 4096 /* messages per pass, so that other work of the process gets its turn */

static bool is_ud(const struct ucma_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

static uint8_t min7(uint8_t v)
{
	return v < 7 ? v : 7;
}

/* The state of ib_cm after an exchange that failed or never was. */
void ucma_cm_forget(struct ucma_id *id)
{
	msg_stop_asking(id);
	id->cm = UCMA_CM_IDLE;
}

static void enter_timewait(struct ucma_id *id)
{
	uint8_t t = ucma_id_timeout(id);

	msg_stop_asking(id);
	id->cm = UCMA_CM_TIMEWAIT;
	/* cm.c: cm_convert_to_ms() */
	ucma_timer_start(id, (UINT64_C(1) << (t > 8 ? (t < 31 ? t : 31) - 8 : 0)) * 1000000);
}

/* ---- what the application asks for -------------------------------------------------------- */

static void set_params(
	struct ucma_msg *msg, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	msg->qpn = p->qp_num & 0xffffff;
	msg->responder_resources = p->responder_resources;
	msg->initiator_depth = p->initiator_depth;
	msg->flow_control = p->flow_control;
	msg->retry_count = min7(p->retry_count);
	msg->rnr_retry_count = min7(p->rnr_retry_count);
	msg->srq = p->srq ? 1 : 0;
	msg->ece = *ece;
	memcpy(msg->data, p->private_data, p->private_data_len);
}

int ucma_cm_connect(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	struct ucma_msg *req;

	if (id->state != UCMA_ROUTE_RESOLVED)
		return -EINVAL;
	if (p->private_data_len > (is_ud(id) ? SIDR_REQ_DATA : REQ_DATA))
		return -EINVAL;
	req = msg_new(id, is_ud(id) ? UCMA_MSG_SIDR_REQ : UCMA_MSG_REQ);
	if (!req)
		return -ENOMEM;
	set_params(req, p, ece);
	req->to = 0;
	req->ps = id->ps;
	req->qp_type = id->qp_type;
	req->src = id->src;
	req->dst = id->dst;
	req->src_at = id->local;
	req->dst_at = id->remote;
	req->psn = id->rq_psn;
	req->ack_timeout = ucma_id_asked_timeout(id);
	req->tclass = id->tos;
	if (!msg_ask(id, req)) {
		msg_stop_asking(id);
		return -ENOMEM;
	}
	id->qpn = req->qpn;
	id->responder_resources = req->responder_resources;
	id->initiator_depth = req->initiator_depth;
	id->retry_count = req->retry_count;
	id->rnr_retry_count = req->rnr_retry_count;
	id->state = UCMA_CONNECT;
	id->cm = is_ud(id) ? UCMA_CM_SIDR_SENT : UCMA_CM_REQ_SENT;
	id->has_cm = true;
	return 0;
}

static int accept_ud(struct ucma_id *id, const struct rdma_ucm_conn_param *p)
{
	struct ucma_msg *rep;

	if (id->cm != UCMA_CM_SIDR_RCVD || !p || p->private_data_len > SIDR_REP_DATA)
		return -EINVAL;
	rep = msg_new(id, UCMA_MSG_SIDR_REP);
	if (!rep)
		return -ENOMEM;
	set_params(rep, p, &(struct rdma_ucm_ece){0});
	rep->reason = SIDR_SUCCESS;
	id->qkey = id->src.ss_family == AF_IB && p->qkey ? p->qkey : UCMA_UDP_QKEY;
	rep->qkey = id->qkey;
	id->qpn = rep->qpn;
	id->cm = UCMA_CM_IDLE;
	msg_post(id->net, rep);
	return 0;
}

static int accept_rc(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	struct ucma_msg *rep;

	if (id->cm != UCMA_CM_REQ_RCVD || p->private_data_len > REP_DATA)
		return -EINVAL;
	rep = msg_new(id, UCMA_MSG_REP);
	if (!rep)
		return -ENOMEM;
	set_params(rep, p, ece);
	rep->psn = id->rq_psn;
	id->qpn = rep->qpn;
	id->responder_resources = rep->responder_resources;
	id->initiator_depth = rep->initiator_depth;
	id->cm = UCMA_CM_REP_SENT;
	msg_ask(id, rep);
	return 0;
}

static int ready_to_use(struct ucma_id *id)
{
	if (id->cm != UCMA_CM_REP_RCVD)
		return -EINVAL;
	id->cm = UCMA_CM_ESTABLISHED;
	msg_tell(id, UCMA_MSG_RTU, 0, NULL, 0);
	return 0;
}

int ucma_cm_accept(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	int err;

	if (id->state != UCMA_CONNECT)
		return -EINVAL;
	if (is_ud(id))
		err = accept_ud(id, p);
	else
		err = p ? accept_rc(id, p, ece) : ready_to_use(id);
	if (err)
		ucma_cm_reject(id, NULL, 0, REJ_CONSUMER_DEFINED);
	return err;
}

int ucma_cm_reject(struct ucma_id *id, const uint8_t *data, size_t len, uint8_t reason)
{
	if (is_ud(id)) {
		if (id->cm != UCMA_CM_SIDR_RCVD || len > SIDR_REP_DATA)
			return -EINVAL;
		msg_tell(id, UCMA_MSG_SIDR_REP, SIDR_REJECT, data, len);
		id->cm = UCMA_CM_IDLE;
		return 0;
	}
	if (len > REJ_DATA)
		return -EINVAL;
	switch (id->cm) {
	case UCMA_CM_REQ_SENT:
	case UCMA_CM_REQ_RCVD:
	case UCMA_CM_REP_RCVD:
		msg_tell(id, UCMA_MSG_REJ, reason, data, len);
		ucma_cm_forget(id);
		return 0;
	case UCMA_CM_REP_SENT:
		msg_tell(id, UCMA_MSG_REJ, reason, data, len);
		enter_timewait(id);
		return 0;
	default:
		return -EINVAL;
	}
}

int ucma_cm_disconnect(struct ucma_id *id)
{
	struct ucma_msg *dreq;

	if (!id->has_cm)
		return -EINVAL;
	if (id->cm == UCMA_CM_ESTABLISHED) {
		dreq = msg_new(id, UCMA_MSG_DREQ);
		if (!dreq)
			return -ENOMEM;
		id->cm = UCMA_CM_DREQ_SENT;
		msg_ask(id, dreq);
	} else if (id->cm == UCMA_CM_DREQ_RCVD) {
		msg_tell(id, UCMA_MSG_DREP, 0, NULL, 0);
		enter_timewait(id);
	}
	return 0;
}

int ucma_cm_notify(struct ucma_id *id, uint32_t ib_event)
{
	if (!id->has_cm || ib_event != IB_EVENT_COMM_EST)
		return -EINVAL;
	if (id->cm == UCMA_CM_ESTABLISHED)
		return -EISCONN;
	if (id->cm != UCMA_CM_REP_SENT)
		return -EINVAL;
	msg_stop_asking(id);
	id->cm = UCMA_CM_ESTABLISHED;
	ucma_event(id, UCMA_EV_ESTABLISHED, 0);
	return 0;
}

void ucma_cm_end(struct ucma_id *id)
{
	switch (id->cm) {
	case UCMA_CM_SIDR_RCVD:
		msg_tell(id, UCMA_MSG_SIDR_REP, SIDR_REJECT, NULL, 0);
		break;
	case UCMA_CM_REQ_SENT:
		msg_tell(id, UCMA_MSG_REJ, REJ_TIMEOUT, NULL, 0);
		break;
	case UCMA_CM_REQ_RCVD:
	case UCMA_CM_REP_SENT:
	case UCMA_CM_REP_RCVD:
		msg_tell(id, UCMA_MSG_REJ, REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case UCMA_CM_ESTABLISHED:
		msg_tell(id, UCMA_MSG_DREQ, 0, NULL, 0);
		break;
	case UCMA_CM_DREQ_RCVD:
		msg_tell(id, UCMA_MSG_DREP, 0, NULL, 0);
		break;
	default:
		break;
	}
	ucma_cm_forget(id);
}

/* ---- receiving ---------------------------------------------------------------------------- */

/* cma_ib_handler(): an id that left UCMA_CONNECT hears nothing of its connection but the end of timewait. */
static void conn_event(struct ucma_id *id, uint32_t event, int status)
{
	if (id->state == UCMA_CONNECT)
		ucma_event(id, event, status);
}

static void disconnected(struct ucma_id *id, int status)
{
	if (id->state != UCMA_CONNECT)
		return;
	id->state = UCMA_DISCONNECT;
	ucma_event(id, UCMA_EV_DISCONNECTED, status);
}

static void fill_conn(struct rdma_ucm_event_resp *resp, const struct ucma_msg *msg, uint8_t data_len)
{
	struct rdma_ucm_conn_param *conn = &resp->param.conn;

	memcpy(conn->private_data, msg->data, data_len);
	conn->private_data_len = data_len;
	/* the peer's initiator depth is our responder resources, and the other way round */
	conn->responder_resources = msg->initiator_depth;
	conn->initiator_depth = msg->responder_resources;
	conn->flow_control = msg->flow_control;
	conn->retry_count = msg->retry_count;
	conn->rnr_retry_count = msg->rnr_retry_count;
	conn->srq = msg->srq;
	conn->qp_num = msg->qpn;
	resp->ece = msg->ece;
}

/*
 * cm.c: cm_insert_remote_qpn(). A queue pair that @host believes connected cannot ask for another connection:
 * its peer has forgotten the old one, which is ended, and @msg is rejected. @but: not this one.
 */
static bool reject_stale(
	struct ucma_net *net, const struct ucma_msg *msg, unsigned host, const struct ucma_id *but)
{
	struct ucma_id *id;

	LIST_FOREACH (id, &net->by_remote[msg->qpn % UCMA_REMOTE_BUCKETS], in_remote) {
		if (id == but || id->host != host || is_ud(id) || id->remote_qpn != msg->qpn ||
			id->remote.dev != msg->from_dev)
			continue;
		if (id->cm < UCMA_CM_REQ_RCVD || id->cm > UCMA_CM_DREQ_RCVD)
			continue;
		msg_reply(net, msg, UCMA_MSG_REJ, REJ_STALE_CONN);
		if (id->cm == UCMA_CM_ESTABLISHED)
			ucma_cm_disconnect(id);
		return true;
	}
	return false;
}

static void got_request(struct ucma_net *net, struct ucma_id *sender, const struct ucma_msg *msg)
{
	bool ud = msg->type == UCMA_MSG_SIDR_REQ;
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_CONNECT_REQUEST};
	struct ucma_id *listener = ucma_id_listener(net, msg->dst_at.host, msg->ps, &msg->dst), *id;

	if (!sender || sender->heard || sender->cm != (ud ? UCMA_CM_SIDR_SENT : UCMA_CM_REQ_SENT))
		return;
	if (!ud && reject_stale(net, msg, msg->dst_at.host, NULL))
		return;
	if (!listener && nic_now() < sender->first_asked + NO_LISTENER_NS)
		return;
	if (!listener || is_ud(listener) != ud) {
		msg_reply(net, msg, ud ? UCMA_MSG_SIDR_REP : UCMA_MSG_REJ,
			ud ? (uint32_t)SIDR_UNSUPPORTED : (uint32_t)REJ_INVALID_SERVICE_ID);
		return;
	}
	if (!listener->backlog) {
		msg_ask_later(sender);
		return;
	}
	id = ucma_id_new(listener->file, listener->ps, msg->qp_type);
	if (!id)
		return;
	id->src = msg->dst;
	id->dst = msg->src;
	id->local = msg->dst_at;
	id->remote = msg->src_at;
	id->has_dev = true;
	id->tos = msg->tclass; /* cm.c: cm_format_paths_from_req() */
	/* rdma_init_qp_attr(): a value that was set takes precedence over the REQ's */
	id->timeout_set = listener->timeout_set || !ud;
	id->timeout = listener->timeout_set ? listener->timeout : msg->ack_timeout;
	id->state = UCMA_CONNECT;
	id->cm = ud ? UCMA_CM_SIDR_RCVD : UCMA_CM_REQ_RCVD;
	id->has_cm = true;
	id->peer = msg->from;
	ucma_id_set_remote(id, msg->qpn);
	id->sq_psn = msg->psn;
	id->responder_resources = msg->initiator_depth;
	id->initiator_depth = msg->responder_resources;
	id->retry_count = msg->retry_count;
	id->rnr_retry_count = msg->rnr_retry_count;
	if (ud) {
		memcpy(resp.param.ud.private_data, msg->data, SIDR_REQ_DATA);
		resp.param.ud.private_data_len = SIDR_REQ_DATA;
	} else {
		fill_conn(&resp, msg, REQ_DATA);
	}
	if (ucma_event_request(listener, id, &resp)) {
		id->cm = UCMA_CM_IDLE; /* not a word to the sender: it asks again */
		ucma_id_destroy(id);
		return;
	}
	sender->heard = true; /* Linux sends an MRA here */
	sender->peer = id->handle;
	ucma_timer_start(sender, UCMA_GIVE_UP_NS);
}

static void got_rep(struct ucma_id *id, const struct ucma_msg *msg)
{
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_CONNECT_RESPONSE};

	if (id->cm == UCMA_CM_ESTABLISHED) /* the RTU was lost */
		msg_tell(id, UCMA_MSG_RTU, 0, NULL, 0);
	if (id->cm != UCMA_CM_REQ_SENT)
		return;
	if (reject_stale(id->net, msg, id->host, id))
		return;
	msg_stop_asking(id);
	id->peer = msg->from;
	ucma_id_set_remote(id, msg->qpn);
	id->sq_psn = msg->psn;
	id->responder_resources = msg->initiator_depth;
	id->initiator_depth = msg->responder_resources;
	id->rnr_retry_count = msg->rnr_retry_count;
	id->cm = UCMA_CM_REP_RCVD;
	fill_conn(&resp, msg, REP_DATA);
	resp.param.conn.retry_count = 0; /* not in a REP */
	if (id->state == UCMA_CONNECT)
		ucma_event_resp(id, &resp);
}

static void got_rej(struct ucma_id *id, const struct ucma_msg *msg)
{
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_REJECTED, .status = msg->reason};

	switch (id->cm) {
	case UCMA_CM_REQ_SENT:
	case UCMA_CM_REQ_RCVD:
	case UCMA_CM_REP_SENT:
		ucma_cm_forget(id);
		break;
	case UCMA_CM_REP_RCVD:
	case UCMA_CM_DREQ_SENT:
		enter_timewait(id);
		break;
	default:
		return;
	}
	memcpy(resp.param.conn.private_data, msg->data, REJ_DATA);
	resp.param.conn.private_data_len = REJ_DATA;
	if (id->state == UCMA_CONNECT)
		ucma_event_resp(id, &resp);
}

static void got_dreq(struct ucma_id *id)
{
	switch (id->cm) {
	case UCMA_CM_REP_SENT:
	case UCMA_CM_DREQ_SENT:
	case UCMA_CM_ESTABLISHED:
		msg_stop_asking(id);
		id->cm = UCMA_CM_DREQ_RCVD;
		disconnected(id, 0);
		break;
	case UCMA_CM_TIMEWAIT:
		msg_tell(id, UCMA_MSG_DREP, 0, NULL, 0);
		break;
	default:
		break;
	}
}

static void got_sidr_rep(struct ucma_id *id, const struct ucma_msg *msg)
{
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_ESTABLISHED};
	struct rdma_ucm_ud_param *ud = &resp.param.ud;

	if (id->cm != UCMA_CM_SIDR_SENT)
		return;
	ucma_cm_forget(id);
	memcpy(ud->private_data, msg->data, SIDR_REP_DATA);
	ud->private_data_len = SIDR_REP_DATA;
	if (msg->reason != SIDR_SUCCESS) {
		resp.event = UCMA_EV_UNREACHABLE;
		resp.status = msg->reason;
	} else {
		id->qkey = msg->qkey;
		ud->qp_num = msg->qpn;
		ud->qkey = msg->qkey;
		ucma_ah_attr(id, &ud->ah_attr);
	}
	if (id->state == UCMA_CONNECT)
		ucma_event_resp(id, &resp);
}

static void deliver(struct ucma_net *net, const struct ucma_msg *msg)
{
	struct ucma_id *from, *id;

	if (!ucma_msg_path(net, msg->from_dev, msg->to_dev))
		return;
	if (msg->type == UCMA_MSG_REQ || msg->type == UCMA_MSG_SIDR_REQ) {
		HASH_FIND(hh, net->ids, &msg->from, sizeof(msg->from), from);
		got_request(net, from, msg);
		return;
	}
	HASH_FIND(hh, net->ids, &msg->to, sizeof(msg->to), id);
	if (!id || (id->peer && msg->from && id->peer != msg->from)) {
		if (msg->type == UCMA_MSG_DREQ) /* cm.c: cm_issue_drep() */
			msg_reply(net, msg, UCMA_MSG_DREP, 0);
		return;
	}
	switch (msg->type) {
	case UCMA_MSG_REP:
		got_rep(id, msg);
		break;
	case UCMA_MSG_RTU:
		if (id->cm == UCMA_CM_REP_SENT) {
			msg_stop_asking(id);
			id->cm = UCMA_CM_ESTABLISHED;
			conn_event(id, UCMA_EV_ESTABLISHED, 0);
		}
		break;
	case UCMA_MSG_REJ:
		got_rej(id, msg);
		break;
	case UCMA_MSG_DREQ:
		got_dreq(id);
		break;
	case UCMA_MSG_DREP:
		if (id->cm == UCMA_CM_DREQ_SENT || id->cm == UCMA_CM_DREQ_RCVD) {
			enter_timewait(id);
			disconnected(id, 0);
		}
		break;
	case UCMA_MSG_SIDR_REP:
		got_sidr_rep(id, msg);
		break;
	default:
		break;
	}
}

bool ucma_cm_deliver(struct ucma_net *net)
{
	unsigned n;

	for (n = 0; n < DELIVER_MAX && !STAILQ_EMPTY(&net->wire); n++) {
		struct ucma_msg *msg = STAILQ_FIRST(&net->wire);

		STAILQ_REMOVE_HEAD(&net->wire, link);
		deliver(net, msg);
		free(msg);
	}
	return n > 0;
}

void ucma_cm_timer(struct ucma_id *id)
{
	if (id->asked && !id->heard && nic_now() < id->first_asked + UCMA_GIVE_UP_NS) {
		msg_ask_again(id);
		return;
	}
	switch (id->cm) {
	case UCMA_CM_REQ_SENT:
	case UCMA_CM_SIDR_SENT:
	case UCMA_CM_REP_SENT:
		ucma_cm_forget(id);
		conn_event(id, UCMA_EV_UNREACHABLE, -ETIMEDOUT);
		break;
	case UCMA_CM_DREQ_SENT:
		enter_timewait(id);
		disconnected(id, -ETIMEDOUT);
		break;
	case UCMA_CM_TIMEWAIT:
		id->cm = UCMA_CM_IDLE;
		if (id->state == UCMA_DISCONNECT)
			ucma_event(id, UCMA_EV_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
}
