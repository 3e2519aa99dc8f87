/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/cm.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/host.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_LISTENERS = 16,
	MAX_OLD = 16,         /* files */
	EVENTS_OF_A_CONN = 8, /* that can be unread, at most: it has fewer states */
	MAX_DEVICES = 16,
	BACKLOG = 128,
};

/** A device as the kernel's CM knows it. */
struct cm_device {
	uint64_t node_guid;
	int index;
	char name[IBV_SYSFS_NAME_MAX];
};

struct cm_listener {
	uint32_t id;
	struct sockaddr_in6 address; /* or IPv4 */
	bool inherited, kept;
	uint16_t port;
	char text[INET6_ADDRSTRLEN + IFNAMSIZ + 16]; /* "address%interface port N" */
	const char *device;                          /* NULL: none in particular */
};

struct rnic_cm {
	int fd;
	struct ledger *ledger; /* or NULL */
	struct cm_listener listeners[MAX_LISTENERS];
	unsigned nlisteners;
	struct cm_listener inherited[MAX_LISTENERS]; /* that nobody has asked for */
	unsigned ninherited;
	int old[MAX_OLD]; /* files of daemons before this one */
	unsigned nold;
	unsigned unread;                       /* events that may have come before this process did */
	struct cm_device devices[MAX_DEVICES]; /* looked up so far */
	unsigned ndevices;
	const struct rnic_cm_ops *ops;
	void *arg;
};

static void close_old(struct rnic_cm *cm)
{
	while (cm->nold)
		close(cm->old[--cm->nold]);
}

DEFINE_CLEANUP(struct rnic_cm *, rnic_cm_free)

int rnic_cm_new(struct rnic_cm **out, const struct rnic_cm_ops *ops, void *arg, struct ledger *ledger)
{
	CLEANUP(rnic_cm_freep) struct rnic_cm *cm = calloc(1, sizeof(*cm));
	int r;

	if (!cm)
		return -ENOMEM;
	cm->ops = ops;
	cm->arg = arg;
	cm->ledger = ledger;
	cm->fd = -1;
	r = rnic_ucm_open(&cm->fd);
	if (r < 0)
		return log_errno(r, "cannot open the RDMA connection manager; check for an RDMA device and "
				    "the module rdma_ucm");
	*out = steal_ptr(&cm);
	return 0;
}

void rnic_cm_free(struct rnic_cm *cm)
{
	for (unsigned i = 0; i < cm->nlisteners; i++)
		rnic_ucm_destroy_id(cm->fd, cm->listeners[i].id);
	close_old(cm);
	if (cm->fd >= 0)
		close(cm->fd);
	free(cm);
}

/* ---- devices ---- */

DEFINE_CLEANUP(struct ibv_device **, ibv_free_device_list)

static bool is_device(struct ibv_device *dev, const struct cm_device *wanted)
{
	int index = ibv_get_device_index(dev);

	/* Two devices may have one GUID; the library knows indices only by RDMA netlink */
	if (index >= 0 && wanted->index >= 0)
		return index == wanted->index;
	return ibv_get_device_guid(dev) == wanted->node_guid;
}

/* A client cannot have a list of all devices made for each request that it sends. */
static const char *device_name(struct rnic_cm *cm, const struct rnic_ucm_route *route)
{
	CLEANUP(ibv_free_device_listp) struct ibv_device **list = NULL;
	struct cm_device *dev = cm->devices;

	for (unsigned i = 0; i < cm->ndevices; i++, dev++)
		if (dev->node_guid == route->node_guid && dev->index == route->device_index)
			return dev->name;
	if (cm->ndevices == MAX_DEVICES)
		return "a device of many";
	dev->node_guid = route->node_guid;
	dev->index = route->device_index;
	list = ibv_get_device_list(NULL);
	for (unsigned i = 0; list && list[i]; i++) {
		if (!is_device(list[i], dev))
			continue;
		snprintf(dev->name, sizeof(dev->name), "%s", ibv_get_device_name(list[i]));
		cm->ndevices++;
		return dev->name;
	}
	return "an unknown device";
}

/* ---- listeners ---- */

static void describe(const struct sockaddr_in6 *address, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN + IFNAMSIZ] = "?";

	/* As long as of IPv6; IPv4 addresses have their port in the same place */
	getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host), NULL, 0,
		NI_NUMERICHOST);
	snprintf(text, size, "%s port %u", host, ntohs(address->sin6_port));
}

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

static void destroy_listener(struct rnic_cm *cm, uint32_t id)
{
	if (cm->ledger)
		ledger_remove_listener(cm->ledger, id);
	rnic_ucm_destroy_id(cm->fd, id);
}

static int describe_listener(struct rnic_cm *cm, struct cm_listener *l)
{
	struct rnic_ucm_route route;
	int r = rnic_ucm_query_route(cm->fd, l->id, &route);

	if (r < 0)
		return r;
	l->address = route.local;
	l->port = ntohs(route.local.sin6_port); /* IPv4 addresses have it in the same place */
	describe(&route.local, l->text, sizeof(l->text));
	l->device = route.node_guid ? device_name(cm, &route) : NULL;
	return 0;
}

static bool is_at(const struct cm_listener *l, const struct addrinfo *ai)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&l->address, *b4;
	const struct sockaddr_in6 *b6;

	if (a4->sin_family != ai->ai_family)
		return false;
	b4 = (const struct sockaddr_in *)ai->ai_addr;
	b6 = (const struct sockaddr_in6 *)ai->ai_addr;
	/* Port 0 is any: then the one that the kernel chose stays */
	if (b4->sin_port && b4->sin_port != a4->sin_port)
		return false;
	if (ai->ai_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&l->address.sin6_addr, &b6->sin6_addr) &&
	       l->address.sin6_scope_id == b6->sin6_scope_id;
}

static bool take_inherited(struct rnic_cm *cm, const struct addrinfo *ai)
{
	for (unsigned i = 0; i < cm->ninherited; i++) {
		if (!is_at(&cm->inherited[i], ai))
			continue;
		cm->listeners[cm->nlisteners++] = cm->inherited[i];
		cm->inherited[i] = cm->inherited[--cm->ninherited];
		return true;
	}
	return false;
}

static int bind_listener(struct rnic_cm *cm, const struct addrinfo *ai)
{
	struct cm_listener *l = &cm->listeners[cm->nlisteners];
	int r;

	if (take_inherited(cm, ai))
		return 0;
	*l = (struct cm_listener){0};
	r = rnic_ucm_create_id(cm->fd, CM_LISTENER | cm->nlisteners, &l->id);
	if (r < 0)
		return r;
	if (cm->ledger)
		r = ledger_add_listener(cm->ledger, l->id);
	if (r == 0 && ai->ai_family == AF_INET6)
		r = rnic_ucm_set_afonly(cm->fd, l->id);
	if (r == 0)
		r = rnic_ucm_bind(cm->fd, l->id, ai->ai_addr, ai->ai_addrlen);
	if (r == 0)
		r = describe_listener(cm, l);
	if (r < 0) {
		destroy_listener(cm, l->id);
		return r;
	}
	cm->nlisteners++;
	return 0;
}

static int resolve(const char *address, uint16_t port, struct addrinfo **ai)
{
	int r = host_look_up(address, port, AI_PASSIVE | AI_NUMERICHOST, ai);

	if (!r)
		return 0;
	log_error("cannot listen on %s port %u: %s", address, port,
		strchr(address, '%') ? "there is no such interface" : gai_strerror(r));
	return -EINVAL;
}

int rnic_cm_bind(struct rnic_cm *cm, const char *address, uint16_t port)
{
	CLEANUP(freeaddrinfop) struct addrinfo *ai = NULL;
	int r;

	if (cm->nlisteners == MAX_LISTENERS) {
		log_error("cannot listen on %s port %u: at most %d addresses", address, port, MAX_LISTENERS);
		return -ENOSPC;
	}
	r = resolve(address, port, &ai);
	if (r < 0)
		return r;
	r = bind_listener(cm, ai);
	return r < 0 ? log_errno(r, "cannot listen on %s port %u", address, port) : 0;
}

uint16_t rnic_cm_port(const struct rnic_cm *cm)
{
	return cm->listeners[0].port;
}

int rnic_cm_listen(struct rnic_cm *cm)
{
	for (unsigned i = 0; i < cm->nlisteners; i++) {
		const struct cm_listener *l = &cm->listeners[i];
		int r = rnic_ucm_listen(cm->fd, l->id, BACKLOG);

		/* An inherited one listens, or its daemon did not get so far (cma.c, rdma_listen) */
		if (r < 0 && !(l->inherited && r == -EINVAL))
			return log_errno(r, "cannot listen on %s", l->text);
		log_info("listening on %s", l->text);
	}
	return 0;
}

const char *rnic_cm_device(const struct rnic_cm *cm)
{
	for (unsigned i = 0; i < cm->nlisteners; i++)
		if (cm->listeners[i].device)
			return cm->listeners[i].device;
	return NULL;
}

/* ---- events ---- */

int rnic_cm_fd(const struct rnic_cm *cm)
{
	return cm->fd;
}

static struct rnic_conn *new_conn(const struct rnic_cm *cm, uint32_t id)
{
	struct rnic_conn *conn = calloc(1, sizeof(*conn));

	if (conn)
		*conn = (struct rnic_conn){.fd = cm->fd, .ledger = cm->ledger, .id = id};
	return conn;
}

/* Asks the kernel for all that is known of a client. */
static int describe_client(struct rnic_cm *cm, struct rnic_conn *conn)
{
	int r = rnic_ucm_query_route(conn->fd, conn->id, &conn->route);

	if (r < 0)
		return log_errno(r, "cannot get the address of a client");
	describe(&conn->route.peer, conn->peer, sizeof(conn->peer));
	conn->device = device_name(cm, &conn->route);
	return conn_get_attr(conn, IBV_QPS_RTR, &conn->rtr);
}

/* From the old file that has it: 0, or the error of the last one */
static int move_here(struct rnic_cm *cm, uint32_t id)
{
	int r = -ENOENT;

	for (unsigned i = 0; i < cm->nold && r < 0; i++)
		r = rnic_ucm_migrate_id(cm->fd, cm->old[i], id);
	return r;
}

static void *event_room(struct rnic_cm *cm)
{
	return cm->ledger ? ledger_head(cm->ledger)->event : NULL;
}

/* It was in the ledger from when it was read, as the last event */
static void record_request(struct rnic_cm *cm, uint32_t id)
{
	if (!cm->ledger)
		return;
	ledger_add_request(cm->ledger, id);
	rnic_ucm_forget_event(event_room(cm));
}

/* Before its id can be that of another */
static void forget_request(struct rnic_cm *cm, uint32_t id)
{
	if (cm->ledger)
		ledger_remove_request(cm->ledger, id);
}

static void destroy_request(struct rnic_cm *cm, uint32_t id, const void *data, size_t size)
{
	rnic_ucm_reject(cm->fd, id, data, size);
	forget_request(cm, id);
	rnic_ucm_destroy_id(cm->fd, id);
}

static void new_request(struct rnic_cm *cm, const struct rnic_ucm_event *event)
{
	CLEANUP(cleanup_free) struct rnic_conn *conn = new_conn(cm, event->id);
	int r = -ENOMEM;

	record_request(cm, event->id);
	move_here(cm, event->id); /* unless it is here, as are those that came to this process */
	if (conn)
		r = describe_client(cm, conn);
	if (r < 0) {
		destroy_request(cm, event->id, NULL, 0);
		return;
	}
	conn->recorded = cm->ledger;
	cm->ops->request(cm->arg, steal_ptr(&conn), event->data, event->size);
}

static const char *why_gone(unsigned type)
{
	switch (type) {
	case RNIC_UCM_DISCONNECTED:
		return "the client disconnected";
	case RNIC_UCM_UNREACHABLE:
		return "the client does not answer the connection manager";
	case RNIC_UCM_REJECTED:
		return "the client rejected the connection";
	case RNIC_UCM_DEVICE_REMOVAL:
		return "the device is gone";
	default:
		return "the connection failed";
	}
}

/* If this process dies meanwhile, the next one has the event once more */
static void run_callback(struct rnic_cm *cm, const struct rnic_ucm_event *event)
{
	if (event->type == RNIC_UCM_CONNECT_REQUEST)
		new_request(cm, event);
	else if (event->uid & CM_LISTENER)
		log_warning("connection manager: event %u of a listener", event->type);
	else if (event->type == RNIC_UCM_ESTABLISHED)
		cm->ops->established(cm->arg, event->uid);
	else if (event->type != RNIC_UCM_TIMEWAIT_EXIT)
		cm->ops->gone(cm->arg, event->uid, why_gone(event->type));
	if (cm->ledger)
		rnic_ucm_forget_event(event_room(cm));
}

int rnic_cm_dispatch(struct rnic_cm *cm)
{
	struct rnic_ucm_event event;
	int r = rnic_ucm_next_event(cm->fd, event_room(cm), &event);

	if (r > 0)
		run_callback(cm, &event);
	return r < 0 ? r : 0;
}

/* ---- what daemons before this one had ---- */

void rnic_cm_inherit(struct rnic_cm *cm, const int *old, unsigned n)
{
	const struct ledger_head *head = ledger_head(cm->ledger);

	for (unsigned i = 0; i < n && cm->nold < MAX_OLD; i++)
		cm->old[cm->nold++] = old[i];
	for (uint32_t i = 0; i < head->nlisteners && cm->ninherited < MAX_LISTENERS; i++) {
		struct cm_listener *l = &cm->inherited[cm->ninherited];

		*l = (struct cm_listener){.id = head->listeners[i], .inherited = true};
		if (l->id == LEDGER_NO_ID)
			continue;
		if (move_here(cm, l->id) < 0) {
			ledger_remove_listener(cm->ledger, l->id);
			continue;
		}
		cm->unread += BACKLOG;
		if (describe_listener(cm, l) == 0)
			cm->ninherited++;
		else
			destroy_listener(cm, l->id);
	}
}

bool rnic_cm_keep(struct rnic_cm *cm, const char *address, uint16_t port)
{
	CLEANUP(freeaddrinfop) struct addrinfo *ai = NULL;
	struct cm_listener *l = cm->inherited;

	if (resolve(address, port, &ai) < 0)
		return false;
	for (unsigned i = 0; i < cm->ninherited; i++, l++)
		if (is_at(l, ai))
			return l->kept = true;
	return false;
}

void rnic_cm_end_others(struct rnic_cm *cm)
{
	unsigned n = cm->ninherited;

	cm->ninherited = 0;
	for (unsigned i = 0; i < n; i++) {
		struct cm_listener *l = &cm->inherited[i];

		if (l->kept) {
			cm->inherited[cm->ninherited++] = *l;
			continue;
		}
		log_info("no longer listening on %s", l->text);
		destroy_listener(cm, l->id);
	}
}

int rnic_cm_inherit_conn(struct rnic_cm *cm, uint32_t id, uint64_t number, struct rnic_conn **out)
{
	CLEANUP(cleanup_free) struct rnic_conn *conn = new_conn(cm, id);

	if (!conn)
		return -ENOMEM;
	assert(number && !(number & CM_LISTENER));
	if (move_here(cm, id) < 0)
		return -ENOENT;
	cm->unread += EVENTS_OF_A_CONN;
	conn->accepted = true;
	conn->recorded = ledger_has_request(cm->ledger, id);
	snprintf(conn->peer, sizeof(conn->peer), "an unknown address");
	if (rnic_ucm_query_route(cm->fd, id, &conn->route) == 0)
		describe(&conn->route.peer, conn->peer, sizeof(conn->peer));
	*out = steal_ptr(&conn);
	return 0;
}

/* A connection that is here goes on, whatever is in the list: it cannot be moved once more */
static unsigned refuse_old(struct rnic_cm *cm, uint32_t id, const void *data, size_t size)
{
	if (move_here(cm, id) < 0)
		return 0;
	destroy_request(cm, id, data, size);
	return 1;
}

unsigned rnic_cm_refuse_old(struct rnic_cm *cm, const void *data, size_t size)
{
	struct ledger_head *head = ledger_head(cm->ledger);
	struct rnic_ucm_event last;
	unsigned refused = 0;

	if (rnic_ucm_last_event(event_room(cm), &last) && last.type == RNIC_UCM_CONNECT_REQUEST) {
		refused += refuse_old(cm, last.id, data, size);
		rnic_ucm_forget_event(event_room(cm));
	}
	for (uint32_t i = 0; i < head->nrequests; i++) {
		uint32_t id = head->requests[i];

		if (id == LEDGER_NO_ID)
			continue;
		refused += refuse_old(cm, id, data, size);
		ledger_remove_request(cm->ledger, id);
	}
	return refused;
}

/* Events are in order, so those that are there after so many have all come to this process */
int rnic_cm_leave_old(struct rnic_cm *cm)
{
	struct rnic_ucm_event event;
	int r = 1;

	/* The daemon before this one had read it, and died */
	if (rnic_ucm_last_event(event_room(cm), &event))
		run_callback(cm, &event);
	for (; r > 0 && cm->unread; cm->unread--) {
		r = rnic_ucm_next_event(cm->fd, event_room(cm), &event);
		if (r > 0)
			run_callback(cm, &event);
	}
	close_old(cm);
	return r < 0 ? r : 0;
}
