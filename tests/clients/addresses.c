/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addresses PORT ADDRESS... - connects with libreddn to a name that has these addresses, in this order.
 * "nodevice:" before one means that no RDMA device leads there, "silent:" that nobody answers a connect
 * request, "late:" that the time is over when the address is resolved, "ended:" that the client is so slow
 * that the server has ended the connection before it goes on after the server's answer.
 *
 * Prints the result and the library's words; exit status 0 if it connects, 2 if not, as for the tools. No
 * time passes while it waits for an answer that does not come, but the wait must be one that leaves time for
 * the addresses behind. Part of errors.sh.
 */
#include "libclient/reddn.h"
#include "util/array.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { ADDRESSES = 4, TIMEOUT_MS = 60000 };

static const char *const ways[] = {"", "nodevice:", "silent:", "late:", "ended:"};

static struct {
	const char *text;
	enum { SERVED, NO_DEVICE, SILENT, LATE, ENDED } way;
} address[ADDRESSES];
static unsigned naddresses, at; /* the one that is tried */
static bool ignored;            /* its connect request */
static unsigned waits;          /* since then */
static unsigned late_s;         /* the clock is ahead */

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void await_event(const struct rdma_cm_id *id)
{
	struct pollfd p = {.fd = id->channel->fd, .events = POLLIN};

	poll(&p, 1, -1);
}

/* These replace functions of libc and librdmacm. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))next("getaddrinfo");
	int r = 0;

	(void)node;
	for (unsigned i = 0; i < naddresses && !r; i++, list = &(*list)->ai_next)
		r = real(address[i].text, service, hints, list);
	return r;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	int (*real)(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int) =
		(__typeof__(real))next("rdma_resolve_addr");
	size_t len = to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	char text[64];

	ignored = false;
	getnameinfo(to, (socklen_t)len, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	for (at = 0; at + 1 < naddresses && strcmp(address[at].text, text);)
		at++;
	if (address[at].way == NO_DEVICE) {
		errno = ENODEV;
		return -1;
	}
	if (real(id, from, to, timeout_ms) < 0)
		return -1;
	if (address[at].way == LATE) {
		await_event(id);
		late_s += TIMEOUT_MS / 1000;
	}
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int (*real)(clockid_t, struct timespec *) = (__typeof__(real))next("clock_gettime");
	int r = real(id, t);

	t->tv_sec += late_s;
	return r;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) = (__typeof__(real))next("rdma_connect");

	ignored = address[at].way == SILENT;
	waits = 0;
	return ignored ? 0 : real(id, param);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int (*real)(struct rdma_cm_id *, struct ibv_qp_attr *, int *) =
		(__typeof__(real))next("rdma_init_qp_attr");

	if (address[at].way == ENDED && attr->qp_state == IBV_QPS_RTR)
		await_event(id);
	return real(id, attr, mask);
}

/* Wait no longer for an answer that does not come than leaves time for the addresses behind. */
int epoll_wait(int epoll, struct epoll_event *ev, int max, int timeout_ms)
{
	int (*real)(int, struct epoll_event *, int, int) = (__typeof__(real))next("epoll_wait");

	if (!ignored)
		return real(epoll, ev, max, timeout_ms);
	if (waits++) {
		printf("it goes on to wait for the first of %u addresses\n", naddresses - at);
		exit(1);
	}
	late_s += (TIMEOUT_MS / 1000 - late_s) / (naddresses - at) + 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {.host = "several", .offload = "x", .timeout_ms = TIMEOUT_MS};
	struct reddn *c;
	char err[512] = "a reason of before";
	int r;

	if (argc < 3 || argc > 2 + ADDRESSES)
		return 1;
	opt.port = (uint16_t)atoi(argv[1]);
	for (naddresses = 0; argv[2 + naddresses]; naddresses++) {
		const char *text = argv[2 + naddresses];
		unsigned way = COUNT(ways) - 1;

		while (strncmp(text, ways[way], strlen(ways[way])))
			way--;
		address[naddresses].text = text + strlen(ways[way]);
		address[naddresses].way = way;
	}
	r = reddn_connect(&c, &opt, err, sizeof(err));
	printf("%d: %s\n", r, r < 0 || *err ? err : "connected");
	if (r == 0)
		reddn_close(c);
	return r < 0 ? 2 : 0;
}
