/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misuse ADDRESS PORT OFFLOAD CASE - a client on plain verbs that breaks the protocol on purpose. Exit status
 * 0 if the server reacts as documented: it refuses with the right reason, ends the connection, or answers.
 */
#include "tests/lib/raw-client.h"
#include "util/array.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOOD = 600 };

/* ---- refusals
 * ------------------------------------------------------------------------------------------------- */

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
	r->flags = 0x80;
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
	memset(r->offload, 0, sizeof(r->offload));
}

static void other_offload(struct reddn_wire_req *r)
{
	memset(r->offload, 'x', sizeof(r->offload));
}

static void control_offload(struct reddn_wire_req *r)
{
	memset(r->offload, '\n', sizeof(r->offload));
}

static void odd_slot(struct reddn_wire_req *r)
{
	r->slot_addr = htobe64(be64toh(r->slot_addr) + 8);
}

static void odd_size(struct reddn_wire_req *r)
{
	r->slot_size = htobe32(RAW_SLOT + 1);
}

static void small_slot(struct reddn_wire_req *r)
{
	r->slot_size = htobe32(64);
}

static void guessed_slot(struct reddn_wire_req *r)
{
	r->flags = REDDN_REQ_SLOT_GUESS;
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
	{"token", bad_token, REDDN_REJ_ACCESS},
	{"depth 0", no_depth, REDDN_REJ_DEPTH},
	{"depth 65535", much_depth, REDDN_REJ_DEPTH},
	{"empty offload", no_offload, REDDN_REJ_MALFORMED},
	{"unknown offload", other_offload, REDDN_REJ_OFFLOAD},
	{"offload of control characters", control_offload, REDDN_REJ_MALFORMED},
	{"slots misaligned", odd_slot, REDDN_REJ_SLOT},
	{"slot size odd", odd_size, REDDN_REJ_SLOT},
	{"slots too small", small_slot, REDDN_REJ_SLOT},
	{"slots too small, as guessed", guessed_slot, REDDN_REJ_SLOT},
	{"slots past the end", far_slot, REDDN_REJ_SLOT},
};

static void expect_refusal(struct raw_client *c, const void *data, size_t size, uint8_t reason)
{
	raw_need(raw_connect(c, data, size) == RDMA_CM_EVENT_REJECTED, "not refused");
	raw_need(be32toh(c->rej.magic) == REDDN_WIRE_MAGIC && c->rej.version == REDDN_WIRE_VERSION,
		"a refusal without a message");
	if (c->rej.reason != reason) {
		fprintf(stderr, "%s: reason %u, not %u: %s\n", raw_case, c->rej.reason, reason, c->rej.text);
		exit(1);
	}
	printf("%s: %s\n", raw_case, c->rej.text);
}

static void refuse_all(char **argv)
{
	uint8_t garbage[sizeof(struct reddn_wire_req)];
	struct raw_client c;

	for (size_t i = 0; i < COUNT(refusals); i++) {
		raw_case = refusals[i].name;
		raw_prepare(&c, argv[1], argv[2], argv[3]);
		refusals[i].spoil(&c.req);
		expect_refusal(&c, &c.req, sizeof(c.req), refusals[i].reason);
		raw_finish(&c);
	}
	raw_case = "no private data";
	raw_prepare(&c, argv[1], argv[2], argv[3]);
	expect_refusal(&c, NULL, 0, REDDN_REJ_MALFORMED);
	raw_finish(&c);
	raw_case = "garbage";
	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(garbage); i++)
			garbage[i] = (uint8_t)((i + 1) * 2654435761u * (round + 3) >> 9);
		raw_prepare(&c, argv[1], argv[2], argv[3]);
		expect_refusal(&c, garbage, sizeof(garbage), REDDN_REJ_MALFORMED);
		raw_finish(&c);
	}
}

/* ---- the reason for the end of a session
 * -------------------------------------------------------------------------- */

static void ask(char **argv, const struct reddn_wire_query *why, uint8_t reason)
{
	struct raw_client c;

	raw_prepare(&c, argv[1], argv[2], argv[3]);
	expect_refusal(&c, why, sizeof(*why), reason);
	if (reason == REDDN_REJ_ENDED)
		raw_need(be32toh(c.rej.detail) == REDDN_WIRE_END_PROTOCOL, "another reason");
	raw_finish(&c);
}

static void ask_why(char **argv)
{
	struct reddn_wire_query why = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = REDDN_REQ_END_REASON};
	struct raw_client c;

	raw_prepare(&c, argv[1], argv[2], argv[3]);
	raw_start(&c);
	why.slot_addr = c.req.slot_addr;
	why.slot_rkey = c.req.slot_rkey;
	why.session = c.rep.session;
	ask(argv, &why, REDDN_REJ_NOT_ENDED);
	why.slot_rkey ^= htobe32(1);
	ask(argv, &why, REDDN_REJ_UNKNOWN);
	raw_post_recvs(&c, RAW_DEPTH);
	raw_post_sends(&c, 1, raw_arg_len(&c) + 1);
	raw_expect_disconnect(&c);
	ask(argv, &why, REDDN_REJ_UNKNOWN);
	why.slot_rkey = c.req.slot_rkey;
	ask(argv, &why, REDDN_REJ_ENDED);
	why.slot_addr ^= htobe64(64);
	ask(argv, &why, REDDN_REJ_UNKNOWN);
	why.slot_addr = c.req.slot_addr;
	why.session = htobe64(be64toh(why.session) + 1);
	ask(argv, &why, REDDN_REJ_UNKNOWN);
	raw_finish(&c);
}

/* ---- wrong requests
 * ------------------------------------------------------------------------------------ */

static void wrong_rkey(struct raw_client *c)
{
	c->req.slot_rkey ^= htobe32(0x5500);
	raw_start(c);
	raw_post_recvs(c, RAW_DEPTH);
	raw_post_sends(c, 1, raw_arg_len(c));
	raw_expect_disconnect(c);
}

static void short_send(struct raw_client *c)
{
	raw_start(c);
	raw_post_recvs(c, RAW_DEPTH);
	raw_post_sends(c, 1, raw_arg_len(c) - 1);
	raw_expect_disconnect(c);
}

static void long_send(struct raw_client *c)
{
	raw_start(c);
	raw_post_recvs(c, RAW_DEPTH);
	raw_post_sends(c, 1, raw_arg_len(c) + 1);
	raw_expect_disconnect(c);
}

static void outside_window(struct raw_client *c)
{
	raw_start(c);
	memset(raw_request(c), 0xff, RAW_REQUEST);
	raw_post_recvs(c, RAW_DEPTH);
	raw_post_sends(c, 1, raw_arg_len(c));
	raw_expect_disconnect(c);
}

static void no_receives(struct raw_client *c)
{
	raw_start(c);
	raw_post_sends(c, 1, raw_arg_len(c));
	raw_expect_disconnect(c);
}

/* Harmless: requests beyond the armed instances get RNR and are sent again */
static void flood(struct raw_client *c)
{
	raw_start(c);
	raw_post_recvs(c, FLOOD);
	raw_post_sends(c, FLOOD, raw_arg_len(c));
	raw_need(raw_replies(c, FLOOD, NULL) == FLOOD, "not every request is answered");
	rdma_disconnect(c->id);
	raw_expect_disconnect(c);
}

static void leave_in_flight(struct raw_client *c)
{
	raw_start(c);
	raw_post_recvs(c, FLOOD);
	raw_post_sends(c, FLOOD, raw_arg_len(c));
	rdma_disconnect(c->id);
}

/* A client whose device takes none: its reply ends with a SEND, or it is refused. Prints which. */
static void no_immediates(struct raw_client *c)
{
	uint8_t *number = raw_request(c) + RAW_REQUEST - 4;
	struct ibv_sge sge = {(uintptr_t)number, 4, c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;
	int event, n;

	c->req.flags = REDDN_REQ_NO_IMMEDIATES;
	event = raw_connect(c, &c->req, sizeof(c->req));
	if (event == RDMA_CM_EVENT_REJECTED) {
		printf("refused: %s\n", c->rej.text);
		return;
	}
	raw_expect(c, event, RDMA_CM_EVENT_ESTABLISHED);
	raw_need(c->rep.flags & REDDN_REP_SENDS, "another form of replies");
	memset(number, 0xff, 4);
	raw_need(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "post receive");
	raw_post_sends(c, 1, raw_arg_len(c));
	do {
		while ((n = ibv_poll_cq(c->cq, 1, &wc)) == 0)
			usleep(1000);
		raw_need(n > 0 && wc.status == IBV_WC_SUCCESS, "a completion");
	} while (wc.wr_id != 7);
	raw_need(wc.opcode == IBV_WC_RECV && wc.byte_len == 4 && !number[0] && !number[3],
		"no SEND of the number 0");
	puts("answered by a SEND");
}

/* The client never confirms the accept, so the connection is never complete */
static void half_open(struct raw_client *c)
{
	struct rdma_conn_param param = {
		.private_data = &c->req, .private_data_len = sizeof(c->req), .retry_count = 7};

	raw_need(rdma_connect(c->id, &param) == 0, "rdma_connect");
	pause();
}

static void until_killed(struct raw_client *c)
{
	raw_start(c);
	puts("running");
	fflush(stdout);
	for (;;) {
		raw_post_recvs(c, 16);
		raw_post_sends(c, 16, raw_arg_len(c));
		raw_need(raw_replies(c, 16, NULL) == 16, "not answered");
	}
}

static void join_fails(char **argv, uint64_t session, uint64_t secret)
{
	struct raw_client c;

	raw_prepare(&c, argv[1], argv[2], "");
	raw_name_session(&c, session, secret);
	raw_need(raw_connect(&c, &c.req, sizeof(c.req)) == RDMA_CM_EVENT_REJECTED &&
			 c.rej.reason == REDDN_REJ_UNKNOWN,
		"a connection joins that may not");
	raw_finish(&c);
}

/* What others cannot join, who may not, and that all connections end together */
static void joins(char **argv)
{
	const uint64_t other = htobe64(1), second = htobe64(UINT64_C(1) << 48);
	struct raw_client c[REDDN_WIRE_CONNECTIONS];
	uint64_t session, secret;

	raw_prepare(&c[0], argv[1], argv[2], argv[3]);
	raw_start(&c[0]);
	session = c[0].rep.session;
	secret = c[0].rep.secret;
	raw_need(secret != 0, "there is no secret");
	join_fails(argv, session, secret ^ other);
	join_fails(argv, session, 0);
	join_fails(argv, 0, secret);
	for (unsigned i = 1; i < REDDN_WIRE_CONNECTIONS; i++) {
		raw_prepare(&c[i], argv[1], argv[2], "");
		raw_name_session(&c[i], session, secret);
		raw_start(&c[i]);
		raw_need(c[i].rep.session == session, "it is another session");
		raw_post_recvs(&c[i], 1);
		raw_post_sends(&c[i], 1, raw_arg_len(&c[i]));
		raw_need(raw_replies(&c[i], 1, NULL) == 1, "not answered");
		join_fails(argv, session | second, secret);
		join_fails(argv, session | second, 0);
	}
	join_fails(argv, session, secret);
	raw_post_recvs(&c[3], 1);
	raw_post_sends(&c[3], 1, raw_arg_len(&c[3]) + 1);
	for (unsigned i = 0; i < REDDN_WIRE_CONNECTIONS; i++) {
		raw_expect_disconnect(&c[i]);
		raw_finish(&c[i]);
	}
	join_fails(argv, session, secret);
}

static const struct {
	const char *name;
	void (*run)(struct raw_client *c);
} cases[] = {
	{"wrong-rkey", wrong_rkey},
	{"short-send", short_send},
	{"long-send", long_send},
	{"outside-window", outside_window},
	{"no-receives", no_receives},
	{"flood", flood},
	{"leave-in-flight", leave_in_flight},
	{"half-open", half_open},
	{"no-immediates", no_immediates},
	{"until-killed", until_killed},
};

int main(int argc, char **argv)
{
	struct raw_client c;

	if (argc != 5) {
		fputs("usage: misuse ADDRESS PORT OFFLOAD CASE\n", stderr);
		return 2;
	}
	raw_case = argv[4];
	if (strcmp(raw_case, "refusals") == 0) {
		refuse_all(argv);
		return 0;
	}
	if (strcmp(raw_case, "why") == 0) {
		ask_why(argv);
		return 0;
	}
	if (strcmp(raw_case, "joins") == 0) {
		joins(argv);
		return 0;
	}
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (strcmp(cases[i].name, raw_case) != 0)
			continue;
		raw_prepare(&c, argv[1], argv[2], argv[3]);
		cases[i].run(&c);
		raw_finish(&c);
		return 0;
	}
	fprintf(stderr, "misuse: no case %s\n", raw_case);
	return 2;
}
