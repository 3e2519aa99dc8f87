/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile ADDRESS PORT OFFLOAD ATTACK [ARGUMENT...] - a client on plain verbs that attacks the server and its
 * clients. It gets more than an attacker knows: the table, and the keys, addresses and queue pairs of the
 * server.
 */
#include "tests/hostile/hostile.h"
#include "tests/lib/arg.h"
#include "util/array.h"
#include "util/xorshift.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITS_ID = 77 };

const char *hostile_address, *hostile_port, *hostile_offload;
static uint64_t rng = 1;

void hostile_seed(uint64_t seed)
{
	rng = seed * 2 + 1;
}

uint64_t hostile_random(uint64_t below)
{
	return (xorshift(&rng) >> 11) % below;
}

uint64_t hostile_number(const char *text)
{
	return arg_number(text, UINT64_MAX);
}

void hostile_prepare(struct raw_client *c)
{
	raw_prepare(c, hostile_address, hostile_port, hostile_offload);
}

bool hostile_answered(struct raw_client *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			return true;
	return false;
}

enum ibv_wc_status hostile_post(struct raw_client *c, struct ibv_send_wr *wr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)raw_request(c), len, c->mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = ITS_ID;
	wr->sg_list = &sge;
	wr->num_sge = len > 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	raw_need(ibv_post_send(c->id->qp, wr, &bad) == 0, "post");
	for (unsigned ms = 0; ms < RAW_PATIENCE_MS; ms++) {
		int r;

		while ((r = ibv_poll_cq(c->cq, 1, &wc)) > 0)
			if (wc.wr_id == ITS_ID)
				return wc.status;
		raw_need(r == 0, "the CQ cannot be polled");
		usleep(1000);
	}
	raw_fail("no completion");
}

struct rdma_cm_id *hostile_half_open(struct raw_client *c, uint32_t qpn, const void *data, size_t size)
{
	struct rdma_conn_param param = {.private_data = data,
		.private_data_len = (uint8_t)size,
		.rnr_retry_count = 7,
		.retry_count = 7,
		.qp_num = qpn};
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai = NULL;
	struct rdma_cm_id *id;

	raw_need(rdma_create_id(c->channel, &id, NULL, RDMA_PS_TCP) == 0 &&
			 rdma_getaddrinfo(hostile_address, hostile_port, &hints, &ai) == 0 &&
			 rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 2000) == 0,
		"resolve");
	raw_need(raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ADDR_RESOLVED &&
			 rdma_resolve_route(id, 2000) == 0 &&
			 raw_event(c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_ROUTE_RESOLVED,
		"not resolved");
	rdma_freeaddrinfo(ai);
	raw_need(rdma_connect(id, &param) == 0, "connect");
	return id;
}

struct hostile_key hostile_parse_key(const char *text)
{
	struct hostile_key k = {0};

	raw_need(sscanf(text, "%" SCNx32 ":%" SCNx64 ":%" SCNu64, &k.key, &k.addr, &k.len) == 3,
		"KEY:ADDRESS:LENGTH");
	return k;
}

static bool has_atomics(struct ibv_context *device)
{
	struct ibv_device_attr attr;

	raw_need(ibv_query_device(device, &attr) == 0, "query of the device");
	return attr.atomic_cap != IBV_ATOMIC_NONE;
}

struct ibv_send_wr hostile_one_sided(struct ibv_context *device, unsigned op, const struct hostile_key *k)
{
	enum { PLAIN = 3 };
	static const enum ibv_wr_opcode ops[HOSTILE_ONE_SIDED] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_send_wr wr = {.opcode = ops[op < PLAIN || has_atomics(device) ? op : op - PLAIN]};

	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = k->addr;
		wr.wr.atomic.rkey = k->key;
		wr.wr.atomic.compare_add = wr.wr.atomic.swap = 1;
	} else {
		wr.wr.rdma.remote_addr = k->addr;
		wr.wr.rdma.rkey = k->key;
	}
	return wr;
}

static const struct {
	const char *name;
	int args; /* at least */
	int (*run)(int argc, char **argv);
	const char *usage, *what;
} attacks[] = {
	{"bystander", 1, hostile_bystander, "FILE",
		"gets until SIGTERM and checks each answer and all of its memory"},
	{"arguments", 1, hostile_arguments, "FILE", "arguments at the edges of windows, and between buckets"},
	{"offsets", 2, hostile_offsets, "FILE TEXT",
		"every byte offset with the fingerprint there; TEXT is in deleted records only"},
	{"lengths", 1, hostile_lengths, "FILE", "requests of every wrong length"},
	{"bytes", 3, hostile_bytes, "FILE SEED COUNT", "random requests"},
	{"requests", 2, hostile_requests, "SEED COUNT [TABLE]",
		"random requests to any offload, every second one of a wrong length"},
	{"keys", 1, hostile_keys, "KEY:ADDRESS:LENGTH...",
		"memory of the server and of other clients, with their keys"},
	{"guesses", 1, hostile_guesses, "COUNT", "the same with keys near the client's own"},
	{"invalidate", 1, hostile_invalidate, "KEY:ADDRESS:LENGTH...", "SENDs that try to invalidate keys"},
	{"slots", 1, hostile_slots, "KEY:ADDRESS:LENGTH", "replies into the memory of another client"},
	{"queues", 1, hostile_queues, "QPN...", "packets to queue pairs of others"},
	{"states", 2, hostile_states, "FILE KEY:ADDRESS:LENGTH...",
		"each attack in each state of a connection"},
	{"flood", 0, hostile_flood, "", "more requests at once than are allowed"},
	{"qp-error", 0, hostile_qp_error, "", "a queue pair that fails at different moments"},
	{"storm", 1, hostile_storm, "COUNT", "connections that end in different ways"},
	{"middle", 1, hostile_middle, "COUNT", "half-open connections, until standard input ends"},
	{"tokens", 1, hostile_tokens, "KEYFILE", "forged, stale, misused and replayed tokens"},
	{"connects", 2, hostile_connects, "SEED COUNT", "random private data"},
};

int main(int argc, char **argv)
{
	if (argc >= 5) {
		hostile_address = argv[1];
		hostile_port = argv[2];
		hostile_offload = argv[3];
		raw_case = argv[4];
		for (size_t i = 0; i < COUNT(attacks); i++)
			if (strcmp(attacks[i].name, raw_case) == 0 && argc - 5 >= attacks[i].args)
				return attacks[i].run(argc - 5, argv + 5);
	}
	fputs("usage: hostile ADDRESS PORT OFFLOAD ATTACK [ARGUMENT...]\n", stderr);
	for (size_t i = 0; i < COUNT(attacks); i++)
		fprintf(stderr, "  %s %s: %s\n", attacks[i].name, attacks[i].usage, attacks[i].what);
	return 2;
}
