/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/raw-client.h"

#include "util/address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = RAW_DEPTH * RAW_SLOT + RAW_REQUEST };

const char *raw_case = "raw-client";
const char *raw_source;
uint8_t raw_tos;

void raw_fail(const char *what)
{
	fprintf(stderr, "%s: %s (%s)\n", raw_case, what, strerror(errno));
	exit(1);
}

void raw_need(bool ok, const char *what)
{
	if (!ok)
		raw_fail(what);
}

int raw_event(struct raw_client *c, int patience_ms)
{
	struct pollfd p = {.fd = c->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int type;

	if (poll(&p, 1, patience_ms) != 1)
		return -1;
	raw_need(rdma_get_cm_event(c->channel, &event) == 0, "no event");
	type = event->event;
	if (type == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data_len >= sizeof(c->rej))
		memcpy(&c->rej, event->param.conn.private_data, sizeof(c->rej));
	if ((type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_CONNECT_RESPONSE) &&
		event->param.conn.private_data_len >= sizeof(c->rep))
		memcpy(&c->rep, event->param.conn.private_data, sizeof(c->rep));
	rdma_ack_cm_event(event);
	return type;
}

void raw_expect(struct raw_client *c, int event, enum rdma_cm_event_type expected)
{
	char what[sizeof(c->rej.text) + 100];

	if (event == (int)expected)
		return;
	if (event < 0)
		snprintf(what, sizeof(what), "no %s", rdma_event_str(expected));
	else
		snprintf(what, sizeof(what), "%s instead of %s: %.*s", rdma_event_str(event),
			rdma_event_str(expected), (int)sizeof(c->rej.text), c->rej.text);
	raw_need(false, what);
}

void raw_prepare(struct raw_client *c, const char *address, const char *port, const char *offload)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai;
	struct sockaddr_in source = {.sin_family = AF_INET};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = {RAW_WRS, RAW_WRS, 1, 1, 0}, .sq_sig_all = 0};

	*c = (struct raw_client){.channel = rdma_create_event_channel()};
	raw_need(c->channel && rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) == 0,
		"no connection manager");
	raw_need(!raw_tos || rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &raw_tos,
				     sizeof(raw_tos)) == 0,
		"type of service");
	raw_need(rdma_getaddrinfo(address, port, &hints, &ai) == 0, "bad address");
	raw_need(!raw_source || inet_pton(AF_INET, raw_source, &source.sin_addr) == 1, "an address");
	raw_need(rdma_resolve_addr(
			 c->id, raw_source ? (struct sockaddr *)&source : NULL, ai->ai_dst_addr, 2000) == 0,
		"resolve address");
	raw_need(raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ADDR_RESOLVED, "address not resolved");
	raw_need(rdma_resolve_route(c->id, 2000) == 0, "resolve route");
	raw_need(raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED, "route not resolved");
	rdma_freeaddrinfo(ai);
	c->cq = ibv_create_cq(c->id->verbs, 4 * RAW_WRS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = c->cq;
	raw_need(c->cq && rdma_create_qp(c->id, NULL, &attr) == 0, "no queue pair");
	c->mem = aligned_alloc(4096, MEMORY);
	raw_need(c->mem, "no memory");
	memset(c->mem, 0, MEMORY);
	c->mr = ibv_reg_mr(c->id->pd, c->mem, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	raw_need(c->mr, "no memory region");
	c->req = (struct reddn_wire_req){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(RAW_DEPTH),
		.slot_addr = htobe64((uintptr_t)c->mem),
		.slot_rkey = htobe32(c->mr->rkey),
		.slot_size = htobe32(RAW_SLOT),
	};
	memcpy(c->req.offload, offload, strnlen(offload, sizeof(c->req.offload)));
}

void raw_name_session(struct raw_client *c, uint64_t session, uint64_t secret)
{
	const struct reddn_wire_join join = {.session = session, .secret = secret};

	c->req.flags = REDDN_REQ_JOIN;
	memcpy(c->req.offload, &join, sizeof(join));
}

struct token_ends raw_ends(const struct raw_client *c)
{
	struct token_ends ends = {.port = ntohs(rdma_get_dst_port(c->id)), .client_qpn = c->id->qp->qp_num};

	address_read(rdma_get_local_addr(c->id), ends.client);
	address_read(rdma_get_peer_addr(c->id), ends.server);
	raw_need(c->id->route.num_paths > 0, "no path");
	memcpy(ends.gid, c->id->route.path_rec[0].sgid.raw, sizeof(ends.gid));
	return ends;
}

void raw_sign(struct raw_client *c, const struct token_key *key)
{
	const struct token_ends ends = raw_ends(c);

	token_make(key, &c->req, &ends, (uint64_t)time(NULL), c->req.token);
}

void raw_ask(struct raw_client *c, const void *data, size_t size)
{
	struct rdma_conn_param param = {.private_data = data,
		.private_data_len = (uint8_t)size,
		.rnr_retry_count = 7,
		.retry_count = 7};

	raw_need(rdma_connect(c->id, &param) == 0, "connect");
}

int raw_connect(struct raw_client *c, const void *data, size_t size)
{
	raw_ask(c, data, size);
	return raw_event(c, RAW_PATIENCE_MS);
}

void raw_start(struct raw_client *c)
{
	raw_expect(c, raw_connect(c, &c->req, sizeof(c->req)), RDMA_CM_EVENT_ESTABLISHED);
}

void raw_finish(struct raw_client *c)
{
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->mr);
	ibv_destroy_cq(c->cq);
	rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->channel);
	free(c->mem);
}

void raw_expect_disconnect(struct raw_client *c)
{
	raw_need(raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_DISCONNECTED,
		"the server does not disconnect");
}

uint8_t *raw_request(struct raw_client *c)
{
	return c->mem + RAW_DEPTH * RAW_SLOT;
}

uint32_t raw_arg_len(const struct raw_client *c)
{
	return be32toh(c->rep.request_len);
}

void raw_post_recvs(struct raw_client *c, unsigned n)
{
	struct ibv_recv_wr wr = {0}, *bad;

	for (unsigned i = 0; i < n; i++)
		raw_need(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "post receive");
}

void raw_post_sends(struct raw_client *c, unsigned n, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)raw_request(c), len, c->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned i = 0; i < n; i++) {
		wr.send_flags = i % 16 == 15 || i == n - 1 ? IBV_SEND_SIGNALED : 0;
		raw_need(ibv_post_send(c->id->qp, &wr, &bad) == 0, "post send");
	}
}

unsigned raw_replies(struct raw_client *c, unsigned n, enum ibv_wc_status *status)
{
	unsigned got = 0, idle_ms = 0;
	struct ibv_wc wc;
	int r;

	if (status)
		*status = IBV_WC_SUCCESS;
	while (got < n && idle_ms < RAW_PATIENCE_MS) {
		r = ibv_poll_cq(c->cq, 1, &wc);
		raw_need(r >= 0, "the CQ cannot be polled");
		if (r > 0 && wc.status != IBV_WC_SUCCESS) {
			if (status)
				*status = wc.status;
			break;
		}
		if (r > 0 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
			got++;
			idle_ms = 0;
		} else if (r == 0) {
			usleep(1000);
			idle_ms++;
		}
	}
	return got;
}
