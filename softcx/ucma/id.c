/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* net.ipv4.ip_local_port_range, from which Linux takes ephemeral ports of its RDMA port spaces too */
#define PORT_LOW 32768
#define PORT_HIGH 60999

/* How often Linux asks for a neighbour (net.ipv4.neigh.*.retrans_time_ms) */
#define NEIGHBOUR_NS UINT64_C(1000000000)

/* cma.c: CMA_IBOE_PACKET_LIFETIME 16; cm.c: cm_ack_timeout() with mlx5's local_ca_ack_delay of 16 */
#define ACK_TIMEOUT 18
#define ACK_DELAY 16
#define ACK_TIMEOUT_MAX 31

struct ucma_id *ucma_id_new(struct ucma_file *file, uint16_t ps, uint8_t qp_type)
{
	struct ucma_net *net = file->net;
	struct ucma_id *id = ucma_timers_room(net) ? calloc(1, sizeof(*id)) : NULL, *other;

	if (!id)
		return NULL;
	if (getrandom(&id->rq_psn, sizeof(id->rq_psn), 0) != sizeof(id->rq_psn))
		id->rq_psn = (uint32_t)nic_now();
	id->rq_psn &= 0xffffff;
	id->net = net;
	id->file = file;
	id->host = file->host;
	id->ps = ps;
	id->qp_type = qp_type;
	do {
		id->handle = ++net->last_handle;
		HASH_FIND(hh, net->ids, &id->handle, sizeof(id->handle), other);
	} while (!id->handle || other);
	HASH_ADD(hh, net->ids, handle, sizeof(id->handle), id);
	TAILQ_INSERT_TAIL(&file->ids, id, in_file);
	return id;
}

/* ---- ports ------------------------------------------------------------------------------- */

static uint64_t port_key(unsigned host, uint16_t ps, uint16_t number)
{
	return (uint64_t)host << 32 | (uint32_t)ps << 16 | number;
}

static struct ucma_port *port_find(struct ucma_net *net, unsigned host, uint16_t ps, uint16_t number)
{
	uint64_t key = port_key(host, ps, number);
	struct ucma_port *port;

	HASH_FIND(hh, net->ports, &key, sizeof(key), port);
	return port;
}

static void port_put(struct ucma_id *id)
{
	struct ucma_port *port = id->port;

	if (!port)
		return;
	TAILQ_REMOVE(&port->ids, id, in_port);
	id->port = NULL;
	if (TAILQ_EMPTY(&port->ids)) {
		HASH_DEL(id->net->ports, port);
		free(port);
	}
}

/* cma.c: cma_check_port(). A wildcard in the way is EADDRNOTAVAIL there, and so it is here. */
static int port_check(const struct ucma_port *port, const struct ucma_id *id, bool reuseaddr)
{
	const struct ucma_id *cur;

	TAILQ_FOREACH (cur, &port->ids, in_port) {
		if (cur == id || (reuseaddr && cur->reuseaddr))
			continue;
		if (id->afonly && cur->afonly && id->src.ss_family != cur->src.ss_family)
			continue;
		if (ucma_addr_any(&id->src) || ucma_addr_any(&cur->src))
			return -EADDRNOTAVAIL;
		if (ucma_addr_same_ip(&id->src, &cur->src))
			return -EADDRINUSE;
	}
	return 0;
}

static void port_join(struct ucma_id *id, struct ucma_port *port)
{
	TAILQ_INSERT_TAIL(&port->ids, id, in_port);
	id->port = port;
	ucma_addr_set_port(&id->src, (uint16_t)port->key);
}

static int port_take(struct ucma_id *id, uint16_t number)
{
	struct ucma_port *port = port_find(id->net, id->host, id->ps, number);

	if (port) {
		int err = port_check(port, id, id->reuseaddr);

		if (err)
			return err;
	} else {
		port = calloc(1, sizeof(*port));
		if (!port)
			return -ENOMEM;
		port->key = port_key(id->host, id->ps, number);
		TAILQ_INIT(&port->ids);
		HASH_ADD(hh, id->net->ports, key, sizeof(port->key), port);
	}
	port_join(id, port);
	return 0;
}

/* cma.c: cma_port_is_unique(): ids that differ in an address or the destination's port may share an ephemeral
 * one. */
static bool port_is_unique(const struct ucma_port *port, const struct ucma_id *id)
{
	const struct ucma_id *cur;

	TAILQ_FOREACH (cur, &port->ids, in_port) {
		if (ucma_addr_port(&id->dst) != ucma_addr_port(&cur->dst))
			continue;
		if (!ucma_addr_any(&id->src) && !ucma_addr_any(&cur->src) &&
			!ucma_addr_same_ip(&id->src, &cur->src))
			continue;
		if (!ucma_addr_any(&id->dst) && !ucma_addr_any(&cur->dst) &&
			!ucma_addr_same_ip(&id->dst, &cur->dst))
			continue;
		return false;
	}
	return true;
}

static int port_take_any(struct ucma_id *id)
{
	struct ucma_net *net = id->net;
	unsigned tries;

	for (tries = 0; tries <= PORT_HIGH - PORT_LOW; tries++) {
		struct ucma_port *port;

		net->last_port = net->last_port < PORT_LOW || net->last_port >= PORT_HIGH
					 ? PORT_LOW
					 : net->last_port + 1;
		port = port_find(net, id->host, id->ps, net->last_port);
		if (!port)
			return port_take(id, net->last_port);
		if (port_is_unique(port, id)) {
			port_join(id, port);
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

/* ---- addresses --------------------------------------------------------------------------- */

int ucma_id_bind(struct ucma_id *id, const struct sockaddr_storage *addr)
{
	int err;

	if (!ucma_addr_size(addr))
		return -EAFNOSUPPORT;
	if (id->state != UCMA_IDLE || ucma_addr_lacks_scope(addr))
		return -EINVAL;
	if (!ucma_addr_any(addr)) {
		err = ucma_addr_find(id->net->ndevs, id->host, addr, &id->local);
		if (err || id->local.host != id->host) /* nobody's, or of another host */
			return addr->ss_family == AF_IB ? -ENODEV : -EADDRNOTAVAIL;
	}
	id->src = *addr;
	if (!id->afonly_set)
		id->afonly = addr->ss_family == AF_INET;
	err = ucma_addr_port(addr) ? port_take(id, ucma_addr_port(addr)) : port_take_any(id);
	if (err) {
		memset(&id->src, 0, sizeof(id->src));
		return err;
	}
	id->has_dev = !ucma_addr_any(addr);
	id->state = UCMA_ADDR_BOUND;
	return 0;
}

int ucma_id_resolve_addr(struct ucma_id *id, const struct sockaddr_storage *src,
	const struct sockaddr_storage *dst, uint32_t timeout_ms)
{
	struct sockaddr_storage any = {.ss_family = dst->ss_family};
	int err;

	if (!ucma_addr_size(dst))
		return -EAFNOSUPPORT;
	if (id->state == UCMA_IDLE) {
		if (src && src->ss_family && src->ss_family != dst->ss_family)
			return -EINVAL;
		id->dst = *dst; /* what makes an ephemeral port unique */
		err = ucma_id_bind(id, src && src->ss_family ? src : &any);
		if (err) {
			memset(&id->dst, 0, sizeof(id->dst));
			return err;
		}
	}
	if (id->state != UCMA_ADDR_BOUND || id->src.ss_family != dst->ss_family)
		return -EINVAL;
	if (dst->ss_family == AF_IB)
		return -ENODEV;

	id->dst = *dst;
	if (ucma_addr_any(dst)) { /* cma.c: cma_resolve_loopback() */
		struct sockaddr_storage own;

		ucma_addr_of_dev(
			ucma_addr_first_dev(id->net->ndevs, id->host), dst->ss_family, &own, &id->remote);
		ucma_addr_set_ip(&id->dst, &own);
	}
	id->resolve_until = nic_now() + (uint64_t)timeout_ms * 1000000;
	id->state = UCMA_ADDR_QUERY;
	ucma_timer_start(id, 0);
	return 0;
}

int ucma_id_resolve_route(struct ucma_id *id)
{
	if (id->state != UCMA_ADDR_RESOLVED)
		return -EINVAL;
	id->state = UCMA_ROUTE_QUERY;
	ucma_timer_start(id, 0);
	return 0;
}

/*
 * Like routing: to an address of the same host from that address, to others from the first device's. Groups
 * are on the network of the device that asks; no device has to answer for one.
 */
static bool select_path(struct ucma_id *id, struct sockaddr_storage *ip, struct ucma_where *where)
{
	bool group = ucma_addr_multicast(&id->dst);

	if (!group && ucma_addr_find(id->net->ndevs, id->host, &id->dst, &id->remote))
		return false;
	if (id->has_dev) {
		*ip = id->src;
		*where = id->local;
	} else if (!group && id->remote.host == id->host) {
		*ip = id->dst;
		*where = id->remote;
	} else {
		ucma_addr_of_dev(ucma_addr_first_dev(id->net->ndevs, id->host), id->dst.ss_family, ip, where);
	}
	if (group) {
		id->remote = *where;
		ucma_addr_gid(&id->dst, id->remote.gid);
	}
	return true;
}

/*
 * Neighbour discovery: there is no answer for an address without a device, or while a port on the way is
 * down. It asks again for as long as the application has time.
 */
static void resolve(struct ucma_id *id)
{
	struct sockaddr_storage ip;
	struct ucma_where where;
	uint64_t now;

	if (select_path(id, &ip, &where) && ucma_msg_path(id->net, where.dev, id->remote.dev)) {
		ucma_addr_set_ip(&id->src, &ip);
		id->local = where;
		id->has_dev = true;
		id->state = UCMA_ADDR_RESOLVED;
		ucma_event(id, UCMA_EV_ADDR_RESOLVED, 0);
		return;
	}
	now = nic_now();
	if (now >= id->resolve_until) {
		id->state = UCMA_ADDR_BOUND;
		ucma_event(id, UCMA_EV_ADDR_ERROR, -ETIMEDOUT);
		return;
	}
	ucma_timer_start(id, id->resolve_until - now < NEIGHBOUR_NS ? id->resolve_until - now : NEIGHBOUR_NS);
}

void ucma_id_timer(struct ucma_id *id)
{
	if (id->state == UCMA_ADDR_QUERY) {
		resolve(id);
	} else if (id->state == UCMA_ROUTE_QUERY) {
		id->state = UCMA_ROUTE_RESOLVED;
		ucma_event(id, UCMA_EV_ROUTE_RESOLVED, 0);
	}
}

int ucma_id_listen(struct ucma_id *id, uint32_t backlog)
{
	if (id->state == UCMA_IDLE) {
		struct sockaddr_storage any = {.ss_family = AF_INET};
		int err = ucma_id_bind(id, &any);

		if (err)
			return err;
	}
	if (id->state != UCMA_ADDR_BOUND)
		return -EINVAL;
	if (id->reuseaddr) { /* a listener has to be the only one on its port */
		int err = port_check(id->port, id, false);

		if (err)
			return err;
		id->reuseaddr = false;
	}
	id->backlog = backlog;
	id->state = UCMA_LISTEN;
	return 0;
}

struct ucma_id *ucma_id_listener(
	struct ucma_net *net, unsigned host, uint16_t ps, const struct sockaddr_storage *dst)
{
	struct ucma_port *port = port_find(net, host, ps, ucma_addr_port(dst));
	struct ucma_id *id;

	if (!port)
		return NULL;
	TAILQ_FOREACH (id, &port->ids, in_port) {
		if (id->state != UCMA_LISTEN)
			continue;
		if (id->src.ss_family != dst->ss_family && (id->afonly || id->src.ss_family != AF_INET6))
			continue;
		if (ucma_addr_any(&id->src) || ucma_addr_same_ip(&id->src, dst))
			return id;
	}
	return NULL;
}

/* ---- options ----------------------------------------------------------------------------- */

int ucma_id_set_reuseaddr(struct ucma_id *id, bool on)
{
	/* cma.c: rdma_set_reuseaddr() */
	if ((on && id->state != UCMA_LISTEN) || id->state == UCMA_IDLE) {
		id->reuseaddr = on;
		return 0;
	}
	return -EINVAL;
}

int ucma_id_set_afonly(struct ucma_id *id, bool on)
{
	if (id->state != UCMA_IDLE && id->state != UCMA_ADDR_BOUND)
		return -EINVAL;
	id->afonly_set = true;
	id->afonly = on;
	return 0;
}

uint8_t ucma_id_timeout(const struct ucma_id *id)
{
	return id->timeout_set ? id->timeout : ACK_TIMEOUT;
}

/* cm.c: cm_ack_timeout(), the sum of the two rounded up to a power of two */
uint8_t ucma_id_asked_timeout(const struct ucma_id *id)
{
	unsigned path = id->timeout;

	if (!id->timeout_set)
		return ACK_TIMEOUT;
	if (path >= ACK_DELAY)
		path += path - 1 <= ACK_DELAY;
	else
		path = ACK_DELAY + (path == ACK_DELAY - 1);
	return (uint8_t)(path < ACK_TIMEOUT_MAX ? path : ACK_TIMEOUT_MAX);
}

/* ---- end --------------------------------------------------------------------------------- */

/*
 * The request that announces @id, which the application has not read. In another file (ucma_id_migrate) it is
 * out of reach, and will name an id that is not there; Linux keeps a pointer to freed memory in it.
 */
static void drop_request(struct ucma_id *id)
{
	struct ucma_event *event = id->request;

	if (!event)
		return;
	id->request = NULL;
	event->conn = NULL;
	if (event->id->file != id->file)
		return;
	event->id->backlog++;
	ucma_event_take(id->file, event);
	free(event);
}

static void drop_events(struct ucma_id *id)
{
	struct ucma_event *event = TAILQ_FIRST(&id->file->events);

	while (event) {
		struct ucma_event *next = TAILQ_NEXT(event, link);
		struct ucma_id *conn = event->conn;

		if (event->id != id) {
			event = next;
			continue;
		}
		ucma_event_take(id->file, event);
		free(event);
		if (conn) { /* a request that the application will not see */
			conn->request = NULL;
			ucma_id_destroy(conn);
			next = TAILQ_FIRST(&id->file->events); /* it may have had events as well */
		}
		event = next;
	}
}

/* ucma_migrate_id() of Linux moves the id and its unread events. Ids of requests among them are of the old
 * file until they are moved themselves. */
void ucma_id_migrate(struct ucma_id *id, struct ucma_file *to)
{
	TAILQ_REMOVE(&id->file->ids, id, in_file);
	TAILQ_INSERT_TAIL(&to->ids, id, in_file);
	ucma_events_move(id, to);
	id->file = to;
}

void ucma_id_remove(struct ucma_id *id)
{
	ucma_cm_forget(id);
	port_put(id);
	id->has_dev = false;
	id->removed = true;
	id->state = UCMA_IDLE;
	ucma_event(id, UCMA_EV_DEVICE_REMOVAL, 0);
}

static void forget_remote(struct ucma_id *id)
{
	if (id->has_remote)
		LIST_REMOVE(id, in_remote);
	id->has_remote = false;
}

void ucma_id_set_remote(struct ucma_id *id, uint32_t qpn)
{
	forget_remote(id);
	id->remote_qpn = qpn;
	id->has_remote = true;
	LIST_INSERT_HEAD(&id->net->by_remote[qpn % UCMA_REMOTE_BUCKETS], id, in_remote);
}

uint32_t ucma_id_destroy(struct ucma_id *id)
{
	uint32_t reported = id->events_reported;

	drop_request(id);
	drop_events(id);
	ucma_cm_end(id);
	ucma_timer_stop(id);
	port_put(id);
	forget_remote(id);
	TAILQ_REMOVE(&id->file->ids, id, in_file);
	HASH_DEL(id->net->ids, id);
	free(id);
	return reported;
}
