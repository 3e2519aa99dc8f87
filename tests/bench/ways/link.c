/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/link.h"

#include "tests/bench/ways/pages.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum { RESOLVE_MS = 5000 };

static int complain(const char *what)
{
	int e = errno ? errno : EIO;

	fprintf(stderr, "%s: %s\n", what, strerror(e));
	return -e;
}

static int find_way(struct link *l, const char *host, uint16_t port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai;
	char service[8];
	int r;

	snprintf(service, sizeof(service), "%u", port);
	r = rdma_getaddrinfo(host, service, &hints, &ai);
	if (r) {
		fprintf(stderr, "%s port %s: %s\n", host, service, r > 0 ? gai_strerror(r) : strerror(errno));
		return -EINVAL;
	}
	r = rdma_create_id(NULL, &l->id, NULL, RDMA_PS_TCP) ||
			    rdma_resolve_addr(l->id, NULL, ai->ai_dst_addr, RESOLVE_MS) ||
			    rdma_resolve_route(l->id, RESOLVE_MS)
		    ? complain("finding a way to the server")
		    : 0;
	rdma_freeaddrinfo(ai);
	return r;
}

int link_connect(
	struct link *l, const char *host, uint16_t port, struct link_wish wish, struct ibv_qp_cap cap)
{
	struct link_wish be = {htobe32(wish.way), htobe32(wish.depth), htobe32(wish.keys)};
	struct rdma_conn_param param = {.private_data = &be,
		.private_data_len = sizeof(be),
		.initiator_depth = 16,
		.responder_resources = 16,
		.retry_count = 7,
		.rnr_retry_count = 7};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = cap};
	int r = find_way(l, host, port);

	if (r < 0)
		return r;
	l->cq = ibv_create_cq(l->id->verbs, (int)(cap.max_send_wr + cap.max_recv_wr), NULL, NULL, 0);
	if (!l->cq)
		return complain("creating a CQ");
	attr.send_cq = attr.recv_cq = l->cq;
	if (rdma_create_qp(l->id, NULL, &attr))
		return complain("creating a QP");
	if (rdma_connect(l->id, &param))
		return complain("connecting");
	l->connected = true;
	if (l->id->event->param.conn.private_data_len < sizeof(l->offer)) {
		errno = EPROTO;
		return complain("the server's reply");
	}
	memcpy(&l->offer, l->id->event->param.conn.private_data, sizeof(l->offer));
	return 0;
}

static void drop_memory(struct link *l)
{
	if (l->mr)
		ibv_dereg_mr(l->mr);
	pages_put(l->mem, l->bytes);
	l->mr = NULL;
	l->mem = NULL;
}

int link_memory(struct link *l, size_t bytes)
{
	drop_memory(l);
	l->bytes = bytes;
	l->mem = pages_get(bytes);
	if (!l->mem)
		return complain("memory");
	l->mr = ibv_reg_mr(l->id->qp->pd, l->mem, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return l->mr ? 0 : complain("registering memory");
}

void link_close(struct link *l)
{
	if (l->connected)
		rdma_disconnect(l->id);
	drop_memory(l);
	if (l->id && l->id->qp)
		rdma_destroy_qp(l->id);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->id)
		rdma_destroy_id(l->id);
}
