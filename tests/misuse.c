/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misuse ADDRESS PORT OFFLOAD CASE - a client that breaks the protocol on purpose, on plain verbs. Exit status 0 when the
 * server reacted as it must: refused it with the right reason, or ended the connection, or answered.
 */
#include "libclient/wire.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 8, WRS = 1024, SLOT = 16384, PATIENCE_MS = 20000, FLOOD = 600, OPERAND = 256 };

struct client {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem; /* slots, then a request */
	struct reddn_wire_req req;
	struct reddn_wire_rej rej;
	struct reddn_wire_rep rep;
};

static const char *case_name;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s (%s)\n", case_name, what, strerror(errno));
	exit(1);
}

static void need(bool ok, const char *what)
{
	if (!ok)
		fail(what);
}

/* The next event, with the private data of an answer; -1 when none comes */
static int next_event(struct client *c, int patience_ms)
{
	struct pollfd p = {.fd = c->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int type;

	if (poll(&p, 1, patience_ms) != 1)
		return -1;
	need(rdma_get_cm_event(c->channel, &event) == 0, "no event");
	type = event->event;
	if (type == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data_len >= sizeof c->rej)
		memcpy(&c->rej, event->param.conn.private_data, sizeof c->rej);
	if (type == RDMA_CM_EVENT_ESTABLISHED && event->param.conn.private_data_len >= sizeof c->rep)
		memcpy(&c->rep, event->param.conn.private_data, sizeof c->rep);
	rdma_ack_cm_event(event);
	return type;
}

static void prepare(struct client *c, char **argv)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {WRS, WRS, 1, 1, 0}, .sq_sig_all = 0};

	*c = (struct client){.channel = rdma_create_event_channel()};
	need(c->channel && rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) == 0,
		"no connection manager");
	need(rdma_getaddrinfo(argv[1], argv[2], &hints, &ai) == 0, "bad address");
	need(rdma_resolve_addr(c->id, NULL, ai->ai_dst_addr, 2000) == 0, "resolve address");
	need(next_event(c, PATIENCE_MS) == RDMA_CM_EVENT_ADDR_RESOLVED, "address not resolved");
	need(rdma_resolve_route(c->id, 2000) == 0, "resolve route");
	need(next_event(c, PATIENCE_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED, "route not resolved");
	rdma_freeaddrinfo(ai);
	c->cq = ibv_create_cq(c->id->verbs, 4 * WRS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = c->cq;
	need(c->cq && rdma_create_qp(c->id, NULL, &attr) == 0, "no queue pair");
	c->mem = aligned_alloc(4096, DEPTH * SLOT + 4096);
	need(c->mem, "no memory");
	memset(c->mem, 0, DEPTH * SLOT + 4096);
	c->mr = ibv_reg_mr(
		c->id->pd, c->mem, DEPTH * SLOT + 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(c->mr, "no memory region");
	c->req = (struct reddn_wire_req){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(DEPTH),
		.slot_addr = htobe64((uintptr_t)c->mem),
		.slot_rkey = htobe32(c->mr->rkey),
		.slot_size = htobe32(SLOT),
	};
	memcpy(c->req.offload, argv[3], strnlen(argv[3], sizeof c->req.offload));
}

static int connect_with(struct client *c, const void *data, size_t size)
{
	struct rdma_conn_param param = {.private_data = data,
		.private_data_len = (uint8_t)size,
		.rnr_retry_count = 7,
		.retry_count = 7};

	need(rdma_connect(c->id, &param) == 0, "connect");
	return next_event(c, PATIENCE_MS);
}

static void finish(struct client *c)
{
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->mr);
	ibv_destroy_cq(c->cq);
	rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->channel);
	free(c->mem);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void bad_magic(struct reddn_wire_req *r)
{
	r->magic = htobe32(0x12345678);
}

static void bad_version(struct reddn_wire_req *r)
{
	r->version = 77;
}

static void bad_flags(struct reddn_wire_req *r)
{
	r->flags = 1;
}

static void bad_token(struct reddn_wire_req *r)
{
	r->token[7] = 1;
}

static void no_depth(struct reddn_wire_req *r)
{
	r->depth = 0;
}

static void much_depth(struct reddn_wire_req *r)
{
	r->depth = htobe16(65535);
}

static void no_offload(struct reddn_wire_req *r)
{
	memset(r->offload, 0, sizeof r->offload);
}

static void other_offload(struct reddn_wire_req *r)
{
	memset(r->offload, 'x', sizeof r->offload);
}

static void control_offload(struct reddn_wire_req *r)
{
	memset(r->offload, '\n', sizeof r->offload);
}

static void odd_slot(struct reddn_wire_req *r)
{
	r->slot_addr = htobe64(be64toh(r->slot_addr) + 8);
}

static void odd_size(struct reddn_wire_req *r)
{
	r->slot_size = htobe32(SLOT + 1);
}

static void small_slot(struct reddn_wire_req *r)
{
	r->slot_size = htobe32(64);
}

static void far_slot(struct reddn_wire_req *r)
{
	r->slot_addr = htobe64(UINT64_MAX - 63);
}

static const struct refusal {
	const char *name;
	void (*spoil)(struct reddn_wire_req *r);
	uint8_t reason;
} refusals[] = {
	{"bad magic", bad_magic, REDDN_REJ_MALFORMED},
	{"bad version", bad_version, REDDN_REJ_VERSION},
	{"flags", bad_flags, REDDN_REJ_MALFORMED},
	{"token", bad_token, REDDN_REJ_MALFORMED},
	{"depth 0", no_depth, REDDN_REJ_DEPTH},
	{"depth 65535", much_depth, REDDN_REJ_DEPTH},
	{"empty offload", no_offload, REDDN_REJ_MALFORMED},
	{"unknown offload", other_offload, REDDN_REJ_OFFLOAD},
	{"offload of control characters", control_offload, REDDN_REJ_MALFORMED},
	{"slots misaligned", odd_slot, REDDN_REJ_SLOT},
	{"slot size odd", odd_size, REDDN_REJ_SLOT},
	{"slots too small", small_slot, REDDN_REJ_SLOT},
	{"slots past the end", far_slot, REDDN_REJ_SLOT},
};

static void expect_refusal(struct client *c, const void *data, size_t size, uint8_t reason)
{
	need(connect_with(c, data, size) == RDMA_CM_EVENT_REJECTED, "not refused");
	need(be32toh(c->rej.magic) == REDDN_WIRE_MAGIC && c->rej.version == REDDN_WIRE_VERSION,
		"refusal without words");
	if (c->rej.reason != reason) {
		fprintf(stderr, "%s: reason %u, not %u: %s\n", case_name, c->rej.reason, reason, c->rej.text);
		exit(1);
	}
	printf("%s: %s\n", case_name, c->rej.text);
}

static void refuse_all(char **argv)
{
	uint8_t garbage[sizeof(struct reddn_wire_req)];
	struct client c;

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		case_name = refusals[i].name;
		prepare(&c, argv);
		refusals[i].spoil(&c.req);
		expect_refusal(&c, &c.req, sizeof c.req, refusals[i].reason);
		finish(&c);
	}
	case_name = "no private data";
	prepare(&c, argv);
	expect_refusal(&c, NULL, 0, REDDN_REJ_MALFORMED);
	finish(&c);
	case_name = "garbage";
	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof garbage; i++)
			garbage[i] = (uint8_t)((i + 1) * 2654435761u * (round + 3) >> 9);
		prepare(&c, argv);
		expect_refusal(&c, garbage, sizeof garbage, REDDN_REJ_MALFORMED);
		finish(&c);
	}
}

/* ---- requests that are wrong ------------------------------------------------------------------------------------ */

static void start(struct client *c)
{
	int event = connect_with(c, &c->req, sizeof c->req);

	need(event == RDMA_CM_EVENT_ESTABLISHED,
		event == RDMA_CM_EVENT_REJECTED ? c->rej.text : "not accepted");
}

static void post_recvs(struct client *c, unsigned n)
{
	struct ibv_recv_wr wr = {0}, *bad;

	for (unsigned i = 0; i < n; i++)
		need(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "post receive");
}

static void post_sends(struct client *c, unsigned n, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)c->mem + DEPTH * SLOT, len, c->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned i = 0; i < n; i++) {
		wr.send_flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
		need(ibv_post_send(c->id->qp, &wr, &bad) == 0, "post send");
	}
}

static uint32_t arg_len(const struct client *c)
{
	return be32toh(c->rep.arg_len);
}

/* Replies that arrive until there are @n, or a CQE in error, or nothing more */
static unsigned replies(struct client *c, unsigned n)
{
	unsigned got = 0, idle_ms = 0;
	struct ibv_wc wc;
	int r;

	while (got < n && idle_ms < PATIENCE_MS) {
		r = ibv_poll_cq(c->cq, 1, &wc);
		if (r < 0 || (r > 0 && wc.status != IBV_WC_SUCCESS))
			break;
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

static void expect_disconnect(struct client *c)
{
	need(next_event(c, PATIENCE_MS) == RDMA_CM_EVENT_DISCONNECTED, "the server does not disconnect");
}

static void wrong_rkey(struct client *c)
{
	c->req.slot_rkey ^= htobe32(0x5500);
	start(c);
	post_recvs(c, DEPTH);
	post_sends(c, 1, arg_len(c));
	expect_disconnect(c);
}

static void short_send(struct client *c)
{
	start(c);
	post_recvs(c, DEPTH);
	post_sends(c, 1, arg_len(c) - 1);
	expect_disconnect(c);
}

static void long_send(struct client *c)
{
	start(c);
	post_recvs(c, DEPTH);
	post_sends(c, 1, arg_len(c) + 1);
	expect_disconnect(c);
}

static void outside_window(struct client *c)
{
	start(c);
	memset(c->mem + DEPTH * SLOT, 0xff, OPERAND);
	post_recvs(c, DEPTH);
	post_sends(c, 1, arg_len(c));
	expect_disconnect(c);
}

static void no_receives(struct client *c)
{
	start(c);
	post_sends(c, 1, arg_len(c));
	expect_disconnect(c);
}

/* Harmless: what outruns the armed instances is told to try again */
static void flood(struct client *c)
{
	start(c);
	post_recvs(c, FLOOD);
	post_sends(c, FLOOD, arg_len(c));
	need(replies(c, FLOOD) == FLOOD, "not every request is answered");
	rdma_disconnect(c->id);
	expect_disconnect(c);
}

static void leave_in_flight(struct client *c)
{
	start(c);
	post_recvs(c, FLOOD);
	post_sends(c, FLOOD, arg_len(c));
	rdma_disconnect(c->id);
}

static void until_killed(struct client *c)
{
	start(c);
	puts("running");
	fflush(stdout);
	for (;;) {
		post_recvs(c, 16);
		post_sends(c, 16, arg_len(c));
		need(replies(c, 16) == 16, "not answered");
	}
}

static const struct {
	const char *name;
	void (*run)(struct client *c);
} cases[] = {
	{"wrong-rkey", wrong_rkey},
	{"short-send", short_send},
	{"long-send", long_send},
	{"outside-window", outside_window},
	{"no-receives", no_receives},
	{"flood", flood},
	{"leave-in-flight", leave_in_flight},
	{"until-killed", until_killed},
};

int main(int argc, char **argv)
{
	struct client c;

	if (argc != 5) {
		fputs("usage: misuse ADDRESS PORT OFFLOAD CASE\n", stderr);
		return 2;
	}
	case_name = argv[4];
	if (strcmp(case_name, "refusals") == 0) {
		refuse_all(argv);
		return 0;
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].name, case_name) != 0)
			continue;
		prepare(&c, argv);
		cases[i].run(&c);
		finish(&c);
		return 0;
	}
	fprintf(stderr, "misuse: no case %s\n", case_name);
	return 2;
}
