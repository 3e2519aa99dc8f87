/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * paper-client - the client of the RedN paper's published code (github.com/redn-io/RedN), with one request at
 * a time: a SEND of two pieces that are not inline, on a managed queue, where a SEND_EN of another queue
 * starts it. Run it with `softcx run`:
 *
 *	paper-client ADDRESS PORT OFFLOAD COUNT WARMUP NUMBER...
 *
 * The NUMBERs are the arguments of each request. Prints {"gets": COUNT, "seconds": ...}, from the timestamps
 * of completions.
 */
#include "libclient/args.h"
#include "reddnd/rnic/internal.h"
#include "tests/bench/managed.h"
#include "util/number.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SLOT bytes of the data are the reply slot, the REQUEST bytes behind them a request */
enum { LOG_RING = 6, DEPTH = 1, SLOT = 1 << 17, REQUEST = 256, DATA = SLOT + 4096 };

struct client {
	struct managed queues; /* the worker is connected to the server */
	uint32_t received;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct reddn_wire_rep rep;
};

static void need(bool ok, const char *what)
{
	managed_need(ok ? 0 : errno ? -errno : -EIO, what);
}

/* ---- the connection --------------------------------------------------------------------- */

static void expect(struct client *c, enum rdma_cm_event_type type, const char *what)
{
	struct rdma_cm_event *event;

	need(rdma_get_cm_event(c->channel, &event) == 0, "the connection manager");
	if (event->event != type) {
		fprintf(stderr, "%s: %s\n", what, rdma_event_str(event->event));
		exit(1);
	}
	if (event->param.conn.private_data_len >= sizeof(c->rep))
		memcpy(&c->rep, event->param.conn.private_data, sizeof(c->rep));
	rdma_ack_cm_event(event);
}

static struct ibv_qp_attr attributes(struct client *c, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	need(rdma_init_qp_attr(c->id, &attr, &mask) == 0, "attributes of the queue pair");
	return attr;
}

static void connect_worker(struct client *c)
{
	struct ibv_qp_attr rtr = attributes(c, IBV_QPS_RTR), rts = attributes(c, IBV_QPS_RTS);
	struct rnic_path path = {
		.port = c->id->port_num,
		.sgid_index = rtr.ah_attr.grh.sgid_index,
		.hop_limit = rtr.ah_attr.grh.hop_limit,
		.mtu = (uint8_t)rtr.path_mtu,
		.dest_qpn = rtr.dest_qp_num,
		.rq_psn = rtr.rq_psn,
		.sq_psn = rts.sq_psn,
		.remote_access = true,
		.min_rnr_timer = rtr.min_rnr_timer,
		.timeout = rts.timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	memcpy(path.dgid, rtr.ah_attr.grh.dgid.raw, sizeof(path.dgid));
	managed_need(rnic_neighbour_resolve(c->queues.device, &rtr.ah_attr, path.dmac, &path.udp_sport),
		"the server's MAC address");
	managed_need(rnic_qp_connect(&c->queues.worker, &path), "connecting");
}

static void post_recv(struct client *c)
{
	rnic_qp_post_recvs(&c->queues.worker, c->received + 1);
}

static void connect_to(struct client *c, const char *address, const char *port, const char *offload)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai = NULL;
	struct reddn_wire_req req = {
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(DEPTH),
		.slot_addr = htobe64(c->queues.block.iova),
		.slot_rkey = htobe32(c->queues.block.rkey),
		.slot_size = htobe32(SLOT - 4096),
	};
	struct rdma_conn_param param = {.private_data = &req,
		.private_data_len = sizeof(req),
		.retry_count = 7,
		.rnr_retry_count = 7};

	memcpy(req.offload, offload, strnlen(offload, sizeof(req.offload)));
	c->channel = rdma_create_event_channel();
	need(c->channel && rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) == 0 &&
			rdma_getaddrinfo(address, port, &hints, &ai) == 0 &&
			rdma_resolve_addr(c->id, NULL, ai->ai_dst_addr, 5000) == 0,
		"the server's address");
	rdma_freeaddrinfo(ai);
	expect(c, RDMA_CM_EVENT_ADDR_RESOLVED, "the server's address");
	need(rdma_resolve_route(c->id, 5000) == 0, "the way to the server");
	expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED, "the way to the server");
	param.qp_num = c->queues.worker.qpn;
	need(rdma_connect(c->id, &param) == 0, "connecting");
	expect(c, RDMA_CM_EVENT_CONNECT_RESPONSE, "the server does not accept");
	connect_worker(c);
	post_recv(c);
	need(rdma_establish(c->id) == 0, "establishing");
}

/* ---- requests --------------------------------------------------------------------------- */

static void put_segment(const struct client *c, uint8_t *segment, uint32_t offset, uint32_t len)
{
	wqe_put32(segment + WQE_SGE_LEN, len);
	wqe_put32(segment + WQE_SGE_LKEY, c->queues.block.lkey);
	wqe_put64(segment + WQE_SGE_ADDR, c->queues.block.iova + offset);
}

/* What matters is that there are two pieces */
static void ask(struct client *c, uint32_t len)
{
	struct managed *q = &c->queues;
	uint8_t enable[RNIC_WQEBB_BYTES] = {0};
	uint8_t *w = managed_wqe(q, &q->worker, q->worker_posted++, WQE_OP_SEND, 3, 0);

	put_segment(c, w + WQE_SEND_SGE, SLOT, len / 2);
	put_segment(c, w + WQE_SEND_SGE + WQE_DS, SLOT + len / 2, len - len / 2);
	enable[WQE_OPCODE] = WQE_OP_SEND_EN;
	wqe_put32(enable + WQE_QPN_DS, 2);
	wqe_put32(enable + WQE_SYNC_INDEX, q->worker_posted);
	wqe_put32(enable + WQE_SYNC_OBJECT, q->worker.qpn);
	rnic_qp_post(&q->master, enable);
}

/* Returns the timestamp of the reply. */
static uint64_t await_reply(struct client *c)
{
	struct rnic_cqe cqe;

	while (!rnic_cq_poll(&c->queues.worker_cq, &cqe))
		;
	rnic_cq_update(&c->queues.worker_cq);
	if (cqe.error || !cqe.receive) {
		fprintf(stderr, "no reply: %s\n", rnic_syndrome_text(cqe.syndrome));
		exit(1);
	}
	c->received++;
	post_recv(c);
	return cqe.timestamp;
}

static uint64_t ticks_per_ms(const struct client *c)
{
	struct ibv_device_attr_ex attr;

	need(ibv_query_device_ex(c->queues.device->ctx, NULL, &attr) == 0 && attr.hca_core_clock,
		"the clock of the NIC");
	return attr.hca_core_clock;
}

static uint32_t compose(struct client *c, char **numbers, unsigned n)
{
	struct reddn_request_format format;
	struct reddn_arg args[REDDN_WIRE_ARGS] = {0};
	uint32_t len = be32toh(c->rep.request_len);
	const char *why = reddn_format_read(&format, &c->rep, len);

	if (why || len > REQUEST || n > REDDN_WIRE_ARGS) {
		fprintf(stderr, "requests: %s\n", why ? why : "too long");
		exit(1);
	}
	for (unsigned i = 0; i < n; i++)
		managed_need(-abs(number_parse(numbers[i], 0, UINT64_MAX, &args[i].number)), "an argument");
	managed_need(reddn_format_encode(&format, args, n, len, c->queues.block.mem + SLOT), "the arguments");
	return len;
}

int main(int argc, char **argv)
{
	struct client c = {0};
	uint64_t count, warmup, begin = 0, end = 0;
	uint32_t len;

	if (argc < 6 || number_parse(argv[4], 1, 1u << 30, &count) ||
		number_parse(argv[5], 1, 1u << 30, &warmup)) {
		fprintf(stderr, "usage: paper-client ADDRESS PORT OFFLOAD COUNT WARMUP NUMBER...\n");
		return 2;
	}
	managed_open(&c.queues,
		&(struct managed_attr){.device = "", .log_ring = LOG_RING, .data = DATA, .peer = true});
	connect_to(&c, argv[1], argv[2], argv[3]);
	len = compose(&c, argv + 6, (unsigned)argc - 6);
	for (uint64_t i = 0; i < warmup + count; i++) {
		ask(&c, len);
		end = await_reply(&c);
		if (i == warmup - 1)
			begin = end;
	}
	printf("{\"gets\": %" PRIu64 ", \"seconds\": %.9f}\n", count,
		(double)(end - begin) / (double)ticks_per_ms(&c) / 1e3);
	rdma_disconnect(c.id);
	return 0;
}
