/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/visitor.h"

#include "util/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	NAP_NS = 100000,
	NAPS = 100000 /* ten seconds at least, and more on a machine that stands still */
};

struct rnic_visitor {
	pthread_t thread;
	char address[64], service[8];
	uint64_t sent, received;
	int error;
	const char *step; /* that failed */
};

DEFINE_CLEANUP(struct rdma_addrinfo *, rdma_freeaddrinfo)

static int failed(struct rnic_visitor *v, const char *step)
{
	v->step = step;
	v->error = errno ? -errno : -EIO;
	return v->error;
}

static int await(struct rnic_visitor *v, struct ibv_cq *cq, const char *step)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct ibv_wc wc;
	int n;

	for (unsigned naps = 0; (n = ibv_poll_cq(cq, 1, &wc)) == 0 && naps < NAPS; naps++)
		nanosleep(&nap, NULL);
	errno = n == 0 ? ETIMEDOUT : EIO;
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : failed(v, step);
}

static int talk(struct rnic_visitor *v, struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	int r;

	if (rdma_post_recv(id, NULL, &v->received, sizeof(v->received), mr))
		return failed(v, "a RECV");
	if (rdma_connect(id, &param))
		return failed(v, "connecting");
	if (rdma_post_send(id, NULL, &v->sent, sizeof(v->sent), mr, IBV_SEND_SIGNALED))
		return failed(v, "a SEND");
	r = await(v, id->send_cq, "sending");
	return r == 0 ? await(v, id->recv_cq, "receiving") : r;
}

static void *visit(void *arg)
{
	struct rnic_visitor *v = arg;
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	CLEANUP(rdma_freeaddrinfop) struct rdma_addrinfo *ai = NULL;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	if (rdma_getaddrinfo(v->address, v->service, &hints, &ai) || rdma_create_ep(&id, ai, NULL, &attr)) {
		failed(v, "resolving the address");
		return NULL;
	}
	mr = rdma_reg_msgs(id, v, sizeof(*v));
	if (!mr)
		failed(v, "memory");
	else if (talk(v, id, mr) == 0)
		v->error = 0;
	if (mr)
		rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

int rnic_visitor_start(struct rnic_visitor **out, const char *address, uint16_t port, uint64_t word)
{
	CLEANUP(cleanup_free) struct rnic_visitor *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	snprintf(v->address, sizeof(v->address), "%s", address);
	snprintf(v->service, sizeof(v->service), "%u", port);
	v->sent = word;
	r = pthread_create(&v->thread, NULL, visit, v);
	if (r)
		return -r;
	*out = steal_ptr(&v);
	return 0;
}

int rnic_visitor_end(struct rnic_visitor *v, uint64_t *answer, char *why, size_t size)
{
	int r;

	pthread_join(v->thread, NULL);
	r = v->error;
	*answer = v->received;
	if (r < 0)
		snprintf(why, size, "the client's %s: %s", v->step, strerror(-r));
	free(v);
	return r;
}
