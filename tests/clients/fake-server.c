/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake-server - a server for tests of libreddn: plain verbs, lookups by the CPU, and misbehaviour on demand.
 *   fake-server PORT TABLE [NAME=VALUE...]
 * It serves one connection after the other until it is killed. With settings:
 *   reject=N detail=N text=WORDS refuse every connection; then magic= and version= are those of the refusal
 *   reject-len=N                 with so many bytes of private data
 *   magic= version= shape= depth= request_len= reply_max= buckets= offset_len= probes= max_key=
 *                                use these values in the reply
 *   accept-len=N                 accept with so many bytes of private data
 *   leave=1                      end each connection as soon as it has accepted it
 *   sends=1                      replies end with a SEND of their number
 *   slot=N                       refuse slots smaller than that (default: what the table needs)
 *   answers=N                    answer so many requests to connect, and no other
 *   after=N do=WHAT              after N requests: disconnect, exit, silence, wrong-imm, twice, qp-error
 */
#include "libclient/reddn-table.h"
#include "protocol/table-format.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "tests/lib/die.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARG = 256, BUF = 17 << 20 };

static int nsettings;
static char **settings;

static const char *text_setting(const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < nsettings; i++)
		if (!strncmp(settings[i], name, len) && settings[i][len] == '=')
			return settings[i] + len + 1;
	return NULL;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *s = text_setting(name);

	return s ? strtoull(s, NULL, 0) : otherwise;
}

static struct table {
	struct reddn_table_stat st;
	uint8_t *map;
	uint8_t offset_len;
} table;

static struct rdma_event_channel *cm;

static struct session {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *requests, *sent;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf; /* depth arguments, then room for the table's header and two records */
	struct reddn_wire_req req;
	uint16_t depth;
	uint32_t request_len;
	uint32_t served;
} s;

static void open_table(const char *file)
{
	struct reddn_table *t;
	char err[256];
	FILE *f;

	if (reddn_table_open(&t, file, 0, err, sizeof(err)) < 0) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	reddn_table_stat(t, &table.st);
	reddn_table_close(t);
	f = fopen(file, "re");
	table.map = mmap(NULL, table.st.file_size, PROT_READ, MAP_SHARED, fileno(f), 0);
	fclose(f);
	if (table.map == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	for (table.offset_len = 1; (table.st.buckets * 16 - 1) >> (8 * table.offset_len);)
		table.offset_len++;
}

static void post_recv(uint32_t i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(s.buf + i * ARG), .length = ARG, .lkey = s.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(s.id->qp, &wr, &bad))
		die("post_recv: %s", strerror(errno));
}

/* Take the event of a channel; its CQE may have been polled already. */
static void take_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context) < 0)
		die("completion channel: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
}

static void connection_event(void);

/* Wait for an event of @channel, if there is one, or of the connection manager. The latter may end the
 * session. */
static void wait_for(struct ibv_comp_channel *channel)
{
	struct pollfd p[2] = {
		{.fd = cm->fd, .events = POLLIN}, {.fd = channel ? channel->fd : -1, .events = POLLIN}};

	poll(p, 2, -1);
	if (p[1].revents)
		take_event(channel);
	if (p[0].revents)
		connection_event();
}

/* A client that has given the session up may have no RECV for the answer. */
static void wait_until_sent(void)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	int n = 0;

	while (s.id && (n = ibv_poll_cq(s.id->send_cq, 1, &wc)) == 0)
		wait_for(s.sent);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "write: %s\n", n < 0 ? "poll" : ibv_wc_status_str(wc.status));
}

static void write_slot(const uint8_t *from, uint32_t at, uint32_t len, enum ibv_wr_opcode op, uint32_t imm)
{
	uint64_t slot = be64toh(s.req.slot_addr) + (uint64_t)(s.served % s.depth) * be32toh(s.req.slot_size);
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = len, .lkey = s.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = op == IBV_WR_RDMA_WRITE ? 0 : IBV_SEND_SIGNALED,
			.imm_data = htonl(imm),
			.wr.rdma = {.remote_addr = slot + at, .rkey = be32toh(s.req.slot_rkey)}};

	if (ibv_post_send(s.id->qp, &wr, &bad))
		die("post_send: %s", strerror(errno));
}

static void answer(const uint8_t *arg, uint32_t imm)
{
	uint8_t *live = s.buf + (size_t)s.depth * ARG, *record = live + 64;

	for (int p = 0; p < 2; p++) {
		uint64_t fp = 0, off = 0;
		const uint64_t *words;

		for (int i = 0; i < 6; i++)
			fp = fp << 8 | *arg++;
		for (int i = 0; i < table.offset_len; i++)
			off = off << 8 | *arg++;
		words = (const uint64_t *)(table.map + table.st.buckets_off + off);
		if (off + 16 <= table.st.buckets * 16 && words[1] == reddn_mark(fp)) {
			uint32_t len = reddn_locator_len(words[0]);

			memcpy(record, table.map + table.st.heap_off + reddn_locator_off(words[0]), len);
			write_slot(record, REDDN_SLOT_RECORD, len, IBV_WR_RDMA_WRITE, 0);
			record += len;
		}
	}
	memcpy(live, table.map + table.st.live_off, 64);
	write_slot(live, REDDN_SLOT_LIVE, 64,
		setting("sends", 0) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM, imm);
	if (setting("sends", 0)) {
		*(uint32_t *)record = htobe32(imm);
		write_slot(record, 0, 4, IBV_WR_SEND, 0);
	}
	/* There is one buffer for replies. */
	wait_until_sent();
}

/* Misbehave if it is time. True: do not answer this request. */
static bool misbehave(const uint8_t *arg)
{
	const char *what = text_setting("do");

	if (!what || s.served < setting("after", 0))
		return false;
	if (!strcmp(what, "exit"))
		_exit(0);
	if (!strcmp(what, "silence"))
		return true;
	if (!strcmp(what, "disconnect")) {
		rdma_disconnect(s.id);
		return true;
	}
	if (!strcmp(what, "wrong-imm")) {
		answer(arg, s.served + 1);
		return true;
	}
	if (!strcmp(what, "twice")) {
		answer(arg, s.served);
		if (s.id)
			answer(arg, s.served);
		return true;
	}
	if (!strcmp(what, "qp-error")) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

		ibv_modify_qp(s.id->qp, &attr, IBV_QP_STATE);
		return true;
	}
	die("do=?: %s", strerror(errno));
}

static void reject(struct rdma_cm_id *id, uint32_t reason, uint32_t detail, const char *text)
{
	struct reddn_wire_rej rej = {.magic = htobe32((uint32_t)setting("magic", REDDN_WIRE_MAGIC)),
		.version = (uint8_t)setting("version", REDDN_WIRE_VERSION),
		.reason = (uint8_t)reason,
		.detail = htobe32(detail)};

	memset(rej.text, 'x', sizeof(rej.text));
	if (text)
		snprintf(rej.text, sizeof(rej.text), "%s", text);
	rdma_reject(id, &rej, (uint8_t)setting("reject-len", sizeof(rej)));
}

static void accept_session(struct rdma_cm_id *id)
{
	uint32_t room = (uint32_t)(64 + ((uint64_t)table.st.max_record + 63) / 64 * 64);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct reddn_wire_rep rep;
	struct rdma_conn_param param = {.private_data = &rep,
		.private_data_len = (uint8_t)setting("accept-len", sizeof(rep)),
		.rnr_retry_count = 7};
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	s.id = id;
	s.served = 0;
	s.depth = be16toh(s.req.depth);
	s.request_len = 2u * (6u + table.offset_len);
	rep = (struct reddn_wire_rep){.magic = htobe32((uint32_t)setting("magic", REDDN_WIRE_MAGIC)),
		.version = (uint8_t)setting("version", REDDN_WIRE_VERSION),
		.shape = (uint8_t)setting("shape", REDDN_SHAPE_TABLE),
		.depth = htobe16((uint16_t)setting("depth", s.depth)),
		.request_len = htobe32((uint32_t)setting("request_len", s.request_len)),
		.reply_max = htobe32((uint32_t)setting("reply_max", room)),
		.session = htobe64(1),
		.flags = (uint8_t)(setting("sends", 0) ? REDDN_REP_SENDS : 0),
		.table = {.hash_seed = htobe64(table.st.hash_seed),
			.buckets = htobe64(setting("buckets", table.st.buckets)),
			.max_key = htobe32((uint32_t)setting("max_key", table.st.max_key)),
			.max_value = htobe32(table.st.max_value),
			.offset_len = (uint8_t)setting("offset_len", table.offset_len),
			.probes = (uint8_t)setting("probes", 2)}};
	s.mr = pd ? ibv_reg_mr(pd, s.buf, BUF, IBV_ACCESS_LOCAL_WRITE) : NULL;
	s.requests = s.mr ? ibv_create_comp_channel(id->verbs) : NULL;
	s.sent = s.requests ? ibv_create_comp_channel(id->verbs) : NULL;
	s.cq = s.sent ? ibv_create_cq(id->verbs, s.depth + 16, NULL, s.requests, 0) : NULL;
	id->send_cq = s.cq ? ibv_create_cq(id->verbs, 16, NULL, s.sent, 0) : NULL;
	attr.cap.max_recv_wr = s.depth;
	attr.send_cq = id->send_cq;
	attr.recv_cq = s.cq;
	if (!attr.send_cq || rdma_create_qp(id, pd, &attr) < 0)
		die("queues: %s", strerror(errno));
	ibv_req_notify_cq(s.cq, 0);
	ibv_req_notify_cq(id->send_cq, 0);
	for (uint32_t i = 0; i < s.depth; i++)
		post_recv(i);
	if (rdma_accept(id, &param) < 0)
		die("accept: %s", strerror(errno));
}

static void end_session(void)
{
	struct ibv_cq *send_cq = s.id->send_cq;
	struct ibv_pd *pd = s.mr->pd;

	rdma_destroy_qp(s.id);
	ibv_dereg_mr(s.mr);
	ibv_destroy_cq(s.cq);
	ibv_destroy_cq(send_cq);
	ibv_destroy_comp_channel(s.requests);
	ibv_destroy_comp_channel(s.sent);
	ibv_dealloc_pd(pd);
	rdma_destroy_id(s.id);
	s.id = NULL;
}

static void connect_request(struct rdma_cm_id *id, const struct rdma_conn_param *p)
{
	uint32_t room = (uint32_t)setting("slot", 64 + ((uint64_t)table.st.max_record + 63) / 64 * 64);
	static uint64_t requests;

	if (requests++ >= setting("answers", UINT64_MAX))
		return;
	if (p->private_data_len < sizeof(s.req)) {
		reject(id, REDDN_REJ_MALFORMED, 0, "short request");
		return;
	}
	memcpy(&s.req, p->private_data, sizeof(s.req));
	if (setting("reject", 0))
		reject(id, (uint32_t)setting("reject", 0), (uint32_t)setting("detail", 0),
			text_setting("text"));
	else if (be32toh(s.req.slot_size) < room)
		reject(id, REDDN_REJ_SLOT, room, "slots too small");
	else if (s.id)
		reject(id, REDDN_REJ_RESOURCES, 0, "one client at a time");
	else
		accept_session(id);
	if (s.id && setting("leave", 0))
		end_session();
}

static void serve_requests(void)
{
	struct ibv_wc wc;

	while (s.id && ibv_poll_cq(s.cq, 1, &wc) > 0) {
		uint8_t arg[ARG];

		if (wc.status != IBV_WC_SUCCESS)
			continue;
		if (wc.byte_len != s.request_len)
			fprintf(stderr, "a request of %u bytes\n", wc.byte_len);
		/* A client that has its answer sends the next request at once: without a RECV that waits for
		 * the RNR timer, 655 ms as librdmacm leaves it */
		memcpy(arg, s.buf + wc.wr_id * ARG, sizeof(arg));
		post_recv((uint32_t)wc.wr_id);
		if (!misbehave(arg))
			answer(arg, s.served);
		s.served++;
	}
}

static void connection_event(void)
{
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	uint8_t data[256];

	if (rdma_get_cm_event(cm, &ev) < 0)
		die("event: %s", strerror(errno));
	id = ev->id;
	type = ev->event;
	param = ev->param.conn;
	memcpy(data, param.private_data, param.private_data_len);
	param.private_data = data;
	rdma_ack_cm_event(ev);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		connect_request(id, &param);
	else if (type == RDMA_CM_EVENT_DISCONNECTED && s.id)
		end_session();
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct rdma_cm_id *listener;

	if (argc < 3)
		return 2;
	nsettings = argc - 3;
	settings = argv + 3;
	open_table(argv[2]);
	s.buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	addr.sin_port = htons((uint16_t)atoi(argv[1]));
	cm = rdma_create_event_channel();
	if (s.buf == MAP_FAILED || !cm || rdma_create_id(cm, &listener, NULL, RDMA_PS_TCP) < 0 ||
		rdma_bind_addr(listener, (struct sockaddr *)&addr) < 0 || rdma_listen(listener, 8) < 0)
		die("listen: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	for (;;) {
		wait_for(s.id ? s.requests : NULL);
		serve_requests();
	}
}
