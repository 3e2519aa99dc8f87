/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/ucma-net.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

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
	REJ_CONSUMER_DEFINED = 28,
	SIDR_SUCCESS = 0,
	SIDR_UNSUPPORTED = 1,
	SIDR_REJECT = 2,
};

#define IB_EVENT_COMM_EST 4 /* enum ib_event_type, the same as IBV_EVENT_COMM_EST */

/*
 * cma.c asks 15 times, about 4 s apart, for an answer; a peer that has said MRA gets 2^(24-8) ms.
 * Both come to about this. Only the pace of asking again while a backlog is full is faster here.
 */
#define GIVE_UP_NS (UINT64_C(65536) * 1000000)
#define AGAIN_NS (UINT64_C(25) * 1000000)

/*
 * A request that finds no listener is asked again for this long before it is rejected. Between two real
 * machines it takes a while to arrive, and programs count on that: perftest's server tells the client to
 * connect and only then listens.
 */
#define NO_LISTENER_NS (UINT64_C(500) * 1000000)

#define DELIVER_MAX 4096 /* messages per pass, so that other work of the process gets its turn */

enum msg_type { MSG_REQ, MSG_REP, MSG_RTU, MSG_REJ, MSG_DREQ, MSG_DREP, MSG_SIDR_REQ, MSG_SIDR_REP };

struct ucma_msg {
	STAILQ_ENTRY(ucma_msg) link;
	enum msg_type type;
	uint32_t from, to; /* handles; @to is 0 for requests */
	uint32_t reason;   /* REJ reason, SIDR_REP status */
	uint16_t ps;
	uint8_t qp_type;
	struct sockaddr_storage src, dst;
	struct ucma_where src_at, dst_at;
	uint32_t qpn, qkey, psn;
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
	struct rdma_ucm_ece ece;
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
};

static bool is_ud(const struct ucma_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

static uint8_t min7(uint8_t v)
{
	return v < 7 ? v : 7;
}

/* ---- sending ----------------------------------------------------------------------------- */

static struct ucma_msg *msg_new(const struct ucma_id *id, enum msg_type type)
{
	struct ucma_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return NULL;
	msg->type = type;
	msg->from = id->handle;
	msg->to = id->peer;
	return msg;
}

static void post(struct ucma_net *net, struct ucma_msg *msg)
{
	STAILQ_INSERT_TAIL(&net->wire, msg, link);
}

/* Like a lost packet when memory is short: the timers of both sides deal with it. */
static void send_simple(struct ucma_id *id, enum msg_type type)
{
	struct ucma_msg *msg = msg_new(id, type);

	if (msg)
		post(id->net, msg);
}

static void send_rej(
	struct ucma_net *net, uint32_t from, uint32_t to, uint32_t reason, const uint8_t *data, size_t len)
{
	struct ucma_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return;
	msg->type = MSG_REJ;
	msg->from = from;
	msg->to = to;
	msg->reason = reason;
	if (len)
		memcpy(msg->data, data, len);
	post(net, msg);
}

static void send_sidr_rep(struct ucma_net *net, uint32_t from, uint32_t to, uint32_t status)
{
	struct ucma_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return;
	msg->type = MSG_SIDR_REP;
	msg->from = from;
	msg->to = to;
	msg->reason = status;
	post(net, msg);
}

static bool send_req(struct ucma_id *id)
{
	struct ucma_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *id->req;
	post(id->net, copy);
	ucma_timer_start(id, AGAIN_NS);
	return true;
}

static void forget_req(struct ucma_id *id)
{
	free(id->req);
	id->req = NULL;
}

/* The state of ib_cm after an exchange that failed or never was. */
static void cm_reset(struct ucma_id *id)
{
	forget_req(id);
	ucma_timer_stop(id);
	id->cm = UCMA_CM_IDLE;
}

static void enter_timewait(struct ucma_id *id)
{
	uint8_t t = ucma_id_timeout(id);

	forget_req(id);
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
	req = msg_new(id, is_ud(id) ? MSG_SIDR_REQ : MSG_REQ);
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
	id->req = req;
	if (!send_req(id)) {
		forget_req(id);
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
	id->first_asked = ucma_now();
	return 0;
}

static int accept_ud(struct ucma_id *id, const struct rdma_ucm_conn_param *p)
{
	struct ucma_msg *rep;

	if (id->cm != UCMA_CM_SIDR_RCVD || !p || p->private_data_len > SIDR_REP_DATA)
		return -EINVAL;
	rep = msg_new(id, MSG_SIDR_REP);
	if (!rep)
		return -ENOMEM;
	set_params(rep, p, &(struct rdma_ucm_ece){0});
	rep->reason = SIDR_SUCCESS;
	id->qkey = id->src.ss_family == AF_IB && p->qkey ? p->qkey : UCMA_UDP_QKEY;
	rep->qkey = id->qkey;
	id->qpn = rep->qpn;
	id->cm = UCMA_CM_IDLE;
	post(id->net, rep);
	return 0;
}

static int accept_rc(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	struct ucma_msg *rep;

	if (id->cm != UCMA_CM_REQ_RCVD || p->private_data_len > REP_DATA)
		return -EINVAL;
	rep = msg_new(id, MSG_REP);
	if (!rep)
		return -ENOMEM;
	set_params(rep, p, ece);
	rep->psn = id->rq_psn;
	id->qpn = rep->qpn;
	id->responder_resources = rep->responder_resources;
	id->initiator_depth = rep->initiator_depth;
	id->cm = UCMA_CM_REP_SENT;
	ucma_timer_start(id, GIVE_UP_NS);
	post(id->net, rep);
	return 0;
}

static int ready_to_use(struct ucma_id *id)
{
	if (id->cm != UCMA_CM_REP_RCVD)
		return -EINVAL;
	ucma_timer_stop(id);
	id->cm = UCMA_CM_ESTABLISHED;
	send_simple(id, MSG_RTU);
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
		send_sidr_rep(id->net, id->handle, id->peer, SIDR_REJECT);
		id->cm = UCMA_CM_IDLE;
		return 0;
	}
	if (len > REJ_DATA)
		return -EINVAL;
	switch (id->cm) {
	case UCMA_CM_REQ_SENT:
	case UCMA_CM_REQ_RCVD:
	case UCMA_CM_REP_RCVD:
		send_rej(id->net, id->handle, id->peer, reason, data, len);
		cm_reset(id);
		return 0;
	case UCMA_CM_REP_SENT:
		send_rej(id->net, id->handle, id->peer, reason, data, len);
		enter_timewait(id);
		return 0;
	default:
		return -EINVAL;
	}
}

int ucma_cm_disconnect(struct ucma_id *id)
{
	if (!id->has_cm)
		return -EINVAL;
	if (id->cm == UCMA_CM_ESTABLISHED) {
		send_simple(id, MSG_DREQ);
		id->cm = UCMA_CM_DREQ_SENT;
		ucma_timer_start(id, GIVE_UP_NS);
	} else if (id->cm == UCMA_CM_DREQ_RCVD) {
		send_simple(id, MSG_DREP);
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
	ucma_timer_stop(id);
	id->cm = UCMA_CM_ESTABLISHED;
	ucma_event(id, UCMA_EV_ESTABLISHED, 0);
	return 0;
}

void ucma_cm_end(struct ucma_id *id)
{
	switch (id->cm) {
	case UCMA_CM_SIDR_RCVD:
		send_sidr_rep(id->net, id->handle, id->peer, SIDR_REJECT);
		break;
	case UCMA_CM_REQ_SENT:
		send_rej(id->net, id->handle, id->peer, REJ_TIMEOUT, NULL, 0);
		break;
	case UCMA_CM_REQ_RCVD:
	case UCMA_CM_REP_SENT:
	case UCMA_CM_REP_RCVD:
		send_rej(id->net, id->handle, id->peer, REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case UCMA_CM_ESTABLISHED:
		send_simple(id, MSG_DREQ);
		break;
	case UCMA_CM_DREQ_RCVD:
		send_simple(id, MSG_DREP);
		break;
	default:
		break;
	}
	cm_reset(id);
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
	/* what the peer may have under way is what we have to answer, and the other way round */
	conn->responder_resources = msg->initiator_depth;
	conn->initiator_depth = msg->responder_resources;
	conn->flow_control = msg->flow_control;
	conn->retry_count = msg->retry_count;
	conn->rnr_retry_count = msg->rnr_retry_count;
	conn->srq = msg->srq;
	conn->qp_num = msg->qpn;
	resp->ece = msg->ece;
}

static void got_request(struct ucma_net *net, struct ucma_id *sender, const struct ucma_msg *msg)
{
	bool ud = msg->type == MSG_SIDR_REQ;
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_CONNECT_REQUEST};
	struct ucma_id *listener = ucma_id_listener(net, msg->ps, &msg->dst), *id;

	if (!sender || sender->heard || sender->cm != (ud ? UCMA_CM_SIDR_SENT : UCMA_CM_REQ_SENT))
		return;
	if (!listener && ucma_now() < sender->first_asked + NO_LISTENER_NS)
		return;
	if (!listener || is_ud(listener) != ud) {
		if (ud)
			send_sidr_rep(net, 0, msg->from, SIDR_UNSUPPORTED);
		else
			send_rej(net, 0, msg->from, REJ_INVALID_SERVICE_ID, NULL, 0);
		return;
	}
	if (!listener->backlog)
		return; /* the sender asks again */
	id = ucma_id_new(listener->file, listener->ps, msg->qp_type);
	if (!id)
		return;
	id->src = msg->dst;
	id->dst = msg->src;
	id->local = msg->dst_at;
	id->remote = msg->src_at;
	id->has_dev = true;
	id->tos = listener->tos;
	id->timeout_set = listener->timeout_set;
	id->timeout = listener->timeout;
	id->state = UCMA_CONNECT;
	id->cm = ud ? UCMA_CM_SIDR_RCVD : UCMA_CM_REQ_RCVD;
	id->has_cm = true;
	id->peer = msg->from;
	id->remote_qpn = msg->qpn;
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
	ucma_timer_start(sender, GIVE_UP_NS);
}

static void got_rep(struct ucma_id *id, const struct ucma_msg *msg)
{
	struct rdma_ucm_event_resp resp = {.event = UCMA_EV_CONNECT_RESPONSE};

	if (id->cm != UCMA_CM_REQ_SENT)
		return;
	forget_req(id);
	id->peer = msg->from;
	id->remote_qpn = msg->qpn;
	id->sq_psn = msg->psn;
	id->responder_resources = msg->initiator_depth;
	id->initiator_depth = msg->responder_resources;
	id->rnr_retry_count = msg->rnr_retry_count;
	id->cm = UCMA_CM_REP_RCVD;
	ucma_timer_stop(id);
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
		cm_reset(id);
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
		ucma_timer_stop(id);
		id->cm = UCMA_CM_DREQ_RCVD;
		disconnected(id, 0);
		break;
	case UCMA_CM_TIMEWAIT:
		send_simple(id, MSG_DREP);
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
	cm_reset(id);
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

	if (msg->type == MSG_REQ || msg->type == MSG_SIDR_REQ) {
		HASH_FIND(hh, net->ids, &msg->from, sizeof(msg->from), from);
		got_request(net, from, msg);
		return;
	}
	HASH_FIND(hh, net->ids, &msg->to, sizeof(msg->to), id);
	if (!id || (id->peer && msg->from && id->peer != msg->from)) {
		if (msg->type == MSG_DREQ) { /* cm.c: cm_issue_drep() */
			struct ucma_msg *drep = calloc(1, sizeof(*drep));

			if (!drep)
				return;
			drep->type = MSG_DREP;
			drep->from = msg->to;
			drep->to = msg->from;
			post(net, drep);
		}
		return;
	}
	switch (msg->type) {
	case MSG_REP:
		got_rep(id, msg);
		break;
	case MSG_RTU:
		if (id->cm == UCMA_CM_REP_SENT) {
			ucma_timer_stop(id);
			id->cm = UCMA_CM_ESTABLISHED;
			conn_event(id, UCMA_EV_ESTABLISHED, 0);
		}
		break;
	case MSG_REJ:
		got_rej(id, msg);
		break;
	case MSG_DREQ:
		got_dreq(id);
		break;
	case MSG_DREP:
		if (id->cm == UCMA_CM_DREQ_SENT || id->cm == UCMA_CM_DREQ_RCVD) {
			enter_timewait(id);
			disconnected(id, 0);
		}
		break;
	case MSG_SIDR_REP:
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

void ucma_cm_drop_wire(struct ucma_net *net)
{
	while (!STAILQ_EMPTY(&net->wire)) {
		struct ucma_msg *msg = STAILQ_FIRST(&net->wire);

		STAILQ_REMOVE_HEAD(&net->wire, link);
		free(msg);
	}
}

void ucma_cm_timer(struct ucma_id *id)
{
	switch (id->cm) {
	case UCMA_CM_REQ_SENT:
	case UCMA_CM_SIDR_SENT:
		if (!id->heard && ucma_now() < id->first_asked + GIVE_UP_NS) {
			if (!send_req(id))
				ucma_timer_start(id, AGAIN_NS);
			break;
		}
		cm_reset(id);
		conn_event(id, UCMA_EV_UNREACHABLE, -ETIMEDOUT);
		break;
	case UCMA_CM_REP_SENT:
		cm_reset(id);
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
