/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * onesided-server - lets clients READ a table file: "onesided-server TABLE ADDRESS PORT". Runs until SIGTERM or
 * SIGINT; prints "listening" when clients may come.
 */
#include "tests/bench/onesided.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct server {
	void *table;
	size_t size;
	struct ibv_pd *pd; /* made at the first connection, which tells the device */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int map_table(struct server *s, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !st.st_size) {
		fprintf(stderr, "%s: %s\n", path, fd < 0 ? strerror(errno) : "empty");
		return -EINVAL;
	}
	s->size = (size_t)st.st_size;
	s->table = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (s->table == MAP_FAILED) {
		perror(path);
		return -EINVAL;
	}
	return 0;
}

static int use_device(struct server *s, struct ibv_context *ctx)
{
	if (s->pd)
		return s->pd->context == ctx ? 0 : -EXDEV;
	s->pd = ibv_alloc_pd(ctx);
	s->cq = s->pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	s->mr = s->cq ? ibv_reg_mr(s->pd, s->table, s->size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
		      : NULL;
	return s->mr ? 0 : -errno;
}

static int welcome(struct server *s, struct rdma_cm_id *id, const struct rdma_conn_param *asked)
{
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct onesided_rep rep;
	struct rdma_conn_param param = {
		.private_data = &rep,
		.private_data_len = sizeof(rep),
		.responder_resources = asked->responder_resources,
		.initiator_depth = asked->initiator_depth,
		.rnr_retry_count = 7,
	};
	int r = use_device(s, id->verbs);

	if (r)
		return r;
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(id, s->pd, &attr))
		return -errno;
	rep = (struct onesided_rep){htobe64((uintptr_t)s->table), htobe64(s->size), htobe32(s->mr->rkey)};
	return rdma_accept(id, &param) ? -errno : 0;
}

static void handle(struct server *s, struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev;
	struct rdma_conn_param asked;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(ch, &ev))
		return;
	id = ev->id;
	type = ev->event;
	asked = ev->param.conn;
	rdma_ack_cm_event(ev);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		int r = welcome(s, id, &asked);

		if (r) {
			fprintf(stderr, "a client is refused: %s\n", strerror(-r));
			rdma_reject(id, NULL, 0);
			rdma_destroy_id(id);
		}
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		rdma_disconnect(id);
		if (id->qp)
			rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *ai;
	struct sigaction sa = {.sa_handler = on_signal};
	struct server s = {0};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: onesided-server TABLE ADDRESS PORT\n");
		return 2;
	}
	if (map_table(&s, argv[1]))
		return 1;
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	r = rdma_getaddrinfo(argv[2], argv[3], &hints, &ai);
	if (r) {
		fprintf(stderr, "%s port %s: %s\n", argv[2], argv[3],
			r > 0 ? gai_strerror(r) : strerror(errno));
		return 1;
	}
	ch = rdma_create_event_channel();
	if (!ch || rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) ||
		rdma_bind_addr(listener, ai->ai_src_addr) || rdma_listen(listener, 16)) {
		fprintf(stderr, "cannot listen on %s port %s: %m\n", argv[2], argv[3]);
		return 1;
	}
	rdma_freeaddrinfo(ai);
	puts("listening");
	fflush(stdout);
	while (!stop) {
		struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};

		if (poll(&pfd, 1, -1) > 0)
			handle(&s, ch);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(ch);
	if (s.mr)
		ibv_dereg_mr(s.mr);
	if (s.cq)
		ibv_destroy_cq(s.cq);
	if (s.pd)
		ibv_dealloc_pd(s.pd);
	munmap(s.table, s.size);
	return 0;
}
