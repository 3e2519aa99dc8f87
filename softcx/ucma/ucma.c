/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of <rdma/rdma_user_cm.h>. Behaviour and error codes follow
 * drivers/infiniband/core/ucma.c of Linux 6.1.
 */
#include "softcx/ucma/ucma-net.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define MAX_BACKLOG 1024 /* sysctl net.rdma_ucm.max_backlog */
#define REJ_CONSUMER_DEFINED 28
#define REJ_VENDOR_OPTION_NOT_SUPPORTED 35
#define TIMERS_MAX 4096 /* timers per pass */

/* ---- events ------------------------------------------------------------------------------ */

static void event_add(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_INSERT_TAIL(&file->events, event, link);
	file->nevents++;
	file->wake(file->arg);
}

void ucma_event_take(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_REMOVE(&file->events, event, link);
	file->nevents--;
}

void ucma_event_resp(struct ucma_id *id, const struct rdma_ucm_event_resp *resp)
{
	struct ucma_event *event;

	/* a passive id whose application has not accepted yet: the accept will fail instead */
	if (!id->uid)
		return;
	event = calloc(1, sizeof(*event));
	if (!event)
		return;
	event->id = id;
	event->resp = *resp;
	event->resp.uid = id->uid;
	event->resp.id = id->handle;
	event_add(id->file, event);
}

void ucma_event(struct ucma_id *id, uint32_t event, int status)
{
	struct rdma_ucm_event_resp resp = {.event = event, .status = (uint32_t)status};

	ucma_event_resp(id, &resp);
}

int ucma_event_request(struct ucma_id *listener, struct ucma_id *conn, const struct rdma_ucm_event_resp *resp)
{
	struct ucma_event *event;

	if (!listener->backlog)
		return -ENOMEM;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	listener->backlog--;
	event->id = listener;
	event->conn = conn;
	event->resp = *resp;
	event->resp.uid = listener->uid;
	event->resp.id = conn->handle;
	event_add(listener->file, event);
	return 0;
}

/* ---- commands ---------------------------------------------------------------------------- */

struct cmd { /* a command whose size has been checked */
	struct ucma_file *file;
	struct nic_call *call;
	const void *in;
	size_t in_len, out_len;
};

static int find_id(struct ucma_file *file, uint32_t handle, struct ucma_id **id)
{
	HASH_FIND(hh, file->net->ids, &handle, sizeof(handle), *id);
	if (!*id)
		return -ENOENT;
	return (*id)->file == file ? 0 : -EINVAL;
}

/* The id has to be tied to a device. */
static int find_id_dev(struct ucma_file *file, uint32_t handle, struct ucma_id **id)
{
	int err = find_id(file, handle, id);

	return err ? err : (*id)->has_dev ? 0 : -EINVAL;
}

static int do_create_id(struct cmd *c)
{
	struct rdma_ucm_create_id cmd;
	struct rdma_ucm_create_id_resp resp;
	struct ucma_id *id;
	uint8_t qp_type;
	int err;

	if (c->out_len < sizeof(resp))
		return -ENOSPC;
	memcpy(&cmd, c->in, sizeof(cmd));
	switch (cmd.ps) {
	case RDMA_PS_TCP:
		qp_type = IBV_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		qp_type = IBV_QPT_UD;
		break;
	case RDMA_PS_IB:
		qp_type = cmd.qp_type;
		break;
	default:
		return -EINVAL;
	}
	id = ucma_id_new(c->file, cmd.ps, qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = cmd.uid;
	resp.id = id->handle;
	err = nic_call_store(c->call, cmd.response, &resp, sizeof(resp));
	if (err)
		ucma_id_destroy(id);
	return err;
}

static int do_destroy_id(struct cmd *c)
{
	struct rdma_ucm_destroy_id cmd;
	struct rdma_ucm_destroy_id_resp resp;
	struct ucma_id *id;
	int err;

	if (c->out_len < sizeof(resp))
		return -ENOSPC;
	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id(c->file, cmd.id, &id);
	if (err)
		return err;
	resp.events_reported = ucma_id_destroy(id);
	return nic_call_store(c->call, cmd.response, &resp, sizeof(resp));
}

/* Addresses in the old commands are a sockaddr_in6 of which a sockaddr_in uses the beginning. */
static bool addr_in6(struct sockaddr_storage *addr, const struct sockaddr_in6 *in)
{
	struct sockaddr_storage any = {.ss_family = in->sin6_family};

	if (in->sin6_family != AF_INET && in->sin6_family != AF_INET6)
		return false;
	return ucma_addr_set(addr, in, ucma_addr_size(&any));
}

static int do_bind_ip(struct cmd *c)
{
	struct rdma_ucm_bind_ip cmd;
	struct sockaddr_storage addr;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if (!addr_in6(&addr, &cmd.addr))
		return -EINVAL;
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_id_bind(id, &addr);
}

static int do_bind(struct cmd *c)
{
	struct rdma_ucm_bind cmd;
	struct sockaddr_storage addr;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if (cmd.reserved || !ucma_addr_set(&addr, &cmd.addr, cmd.addr_size))
		return -EINVAL;
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_id_bind(id, &addr);
}

static int do_resolve_ip(struct cmd *c)
{
	struct rdma_ucm_resolve_ip cmd;
	struct sockaddr_storage src = {0}, dst;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if ((cmd.src_addr.sin6_family && !addr_in6(&src, &cmd.src_addr)) || !addr_in6(&dst, &cmd.dst_addr))
		return -EINVAL;
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_id_resolve_addr(id, &src, &dst, cmd.timeout_ms);
}

static int do_resolve_addr(struct cmd *c)
{
	struct rdma_ucm_resolve_addr cmd;
	struct sockaddr_storage src = {0}, dst;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if (cmd.reserved || (cmd.src_size && !ucma_addr_set(&src, &cmd.src_addr, cmd.src_size)) ||
		!ucma_addr_set(&dst, &cmd.dst_addr, cmd.dst_size))
		return -EINVAL;
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_id_resolve_addr(id, &src, &dst, cmd.timeout_ms);
}

static int do_resolve_route(struct cmd *c)
{
	struct rdma_ucm_resolve_route cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_id_resolve_route(id);
}

static int do_query_route(struct cmd *c)
{
	struct rdma_ucm_query cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_query_route(id, c->call, cmd.response, c->out_len);
}

static int do_query(struct cmd *c)
{
	struct rdma_ucm_query cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id(c->file, cmd.id, &id);
	return err ? err : ucma_query(id, c->call, cmd.response, cmd.option, c->out_len);
}

/* CONNECT and ACCEPT came without ECE before Linux 5.10. */
#define WITHOUT_ECE(type) offsetof(type, ece)

static int do_connect(struct cmd *c)
{
	struct rdma_ucm_connect cmd = {0};
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, c->in_len < sizeof(cmd) ? WITHOUT_ECE(struct rdma_ucm_connect) : sizeof(cmd));
	if (!cmd.conn_param.valid)
		return -EINVAL;
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_cm_connect(id, &cmd.conn_param, &cmd.ece);
}

static int do_listen(struct cmd *c)
{
	struct rdma_ucm_listen cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id(c->file, cmd.id, &id);
	if (err)
		return err;
	return ucma_id_listen(id, cmd.backlog && cmd.backlog <= MAX_BACKLOG ? cmd.backlog : MAX_BACKLOG);
}

static int do_accept(struct cmd *c)
{
	struct rdma_ucm_accept cmd = {0};
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, c->in_len < sizeof(cmd) ? WITHOUT_ECE(struct rdma_ucm_accept) : sizeof(cmd));
	err = find_id_dev(c->file, cmd.id, &id);
	if (err)
		return err;
	if (!cmd.conn_param.valid)
		return ucma_cm_accept(id, NULL, &cmd.ece);
	err = ucma_cm_accept(id, &cmd.conn_param, &cmd.ece);
	if (!err)
		id->uid = cmd.uid;
	return err;
}

static int do_reject(struct cmd *c)
{
	struct rdma_ucm_reject cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if (!cmd.reason)
		cmd.reason = REJ_CONSUMER_DEFINED;
	if (cmd.reason != REJ_CONSUMER_DEFINED && cmd.reason != REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return -EINVAL;
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_cm_reject(id, cmd.private_data, cmd.private_data_len, cmd.reason);
}

static int do_disconnect(struct cmd *c)
{
	struct rdma_ucm_disconnect cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_cm_disconnect(id);
}

static int do_init_qp_attr(struct cmd *c)
{
	struct rdma_ucm_init_qp_attr cmd;
	struct ucma_id *id;
	int err;

	if (c->out_len < sizeof(struct ib_uverbs_qp_attr))
		return -ENOSPC;
	memcpy(&cmd, c->in, sizeof(cmd));
	if (cmd.qp_state > IBV_QPS_ERR)
		return -EINVAL;
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_init_qp_attr(id, c->call, cmd.response, cmd.qp_state);
}

static int do_get_event(struct cmd *c)
{
	struct rdma_ucm_get_event cmd;
	struct ucma_event *event;
	size_t len = sizeof(event->resp);
	int err;

	if (c->out_len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	memcpy(&cmd, c->in, sizeof(cmd));
	event = TAILQ_FIRST(&c->file->events);
	if (!event)
		return -EAGAIN;
	err = nic_call_store(c->call, cmd.response, &event->resp, c->out_len < len ? c->out_len : len);
	if (err)
		return err;
	ucma_event_take(c->file, event);
	event->id->events_reported++;
	if (event->conn)
		event->id->backlog++;
	free(event);
	return 0;
}

static int set_option_id(struct ucma_id *id, uint32_t name, const void *value, size_t len)
{
	uint8_t byte;
	int number;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(byte))
			return -EINVAL;
		memcpy(&byte, value, sizeof(byte));
		if (name == RDMA_OPTION_ID_TOS) {
			id->tos = byte;
			return 0;
		}
		if (id->qp_type != IBV_QPT_RC) /* cma.c: rdma_set_ack_timeout() */
			return -EINVAL;
		id->timeout = byte & 0x1f;
		id->timeout_set = true;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		return name == RDMA_OPTION_ID_REUSEADDR ? ucma_id_set_reuseaddr(id, number)
							: ucma_id_set_afonly(id, number);
	default:
		return -ENOSYS;
	}
}

/* There is one path; an application that names one gets it, as after RESOLVE_ROUTE. */
static int set_option_path(struct ucma_id *id, const struct ib_path_rec_data *paths, size_t len)
{
	size_t i;

	if (!len || len % sizeof(*paths))
		return -EINVAL;
	for (i = 0; i < len / sizeof(*paths); i++)
		if (paths[i].flags == (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL))
			break;
	if (i == len / sizeof(*paths) || !id->has_dev || id->state != UCMA_ADDR_RESOLVED)
		return -EINVAL;
	id->state = UCMA_ROUTE_RESOLVED;
	ucma_event(id, UCMA_EV_ROUTE_RESOLVED, 0);
	return 0;
}

static int do_set_option(struct cmd *c)
{
	struct rdma_ucm_set_option cmd;
	struct ib_path_rec_data value[6]; /* as many as librdmacm ever has */
	struct iovec local, remote;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id(c->file, cmd.id, &id);
	if (err)
		return err;
	if (cmd.optlen > sizeof(value))
		return -EINVAL;
	local = (struct iovec){.iov_base = value, .iov_len = cmd.optlen};
	remote = (struct iovec){.iov_base = (void *)(uintptr_t)cmd.optval, .iov_len = cmd.optlen};
	if (cmd.optlen &&
		process_vm_readv(nic_call_pid(c->call), &local, 1, &remote, 1, 0) != (ssize_t)cmd.optlen)
		return -EFAULT;
	if (cmd.level == RDMA_OPTION_ID)
		return set_option_id(id, cmd.optname, value, cmd.optlen);
	if (cmd.level == RDMA_OPTION_IB && cmd.optname == RDMA_OPTION_IB_PATH)
		return set_option_path(id, value, cmd.optlen);
	return -ENOSYS;
}

static int do_notify(struct cmd *c)
{
	struct rdma_ucm_notify cmd;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	err = find_id_dev(c->file, cmd.id, &id);
	return err ? err : ucma_cm_notify(id, cmd.event);
}

/* The emulated port knows no multicast groups. Linux says EINVAL for ids that could never join. */
static int join(struct ucma_file *file, uint32_t handle)
{
	struct ucma_id *id;
	int err = find_id_dev(file, handle, &id);

	if (err)
		return err;
	return id->qp_type == IBV_QPT_UD ? -EOPNOTSUPP : -EINVAL;
}

static int do_join_ip_mcast(struct cmd *c)
{
	struct rdma_ucm_join_ip_mcast cmd;

	memcpy(&cmd, c->in, sizeof(cmd));
	return join(c->file, cmd.id);
}

static int do_join_mcast(struct cmd *c)
{
	struct rdma_ucm_join_mcast cmd;

	memcpy(&cmd, c->in, sizeof(cmd));
	return join(c->file, cmd.id);
}

static int do_leave_mcast(struct cmd *c)
{
	(void)c;
	return -ENOENT;
}

static int do_migrate_id(struct cmd *c)
{
	struct rdma_ucm_migrate_id cmd;
	struct rdma_ucm_migrate_resp resp;
	struct ucma_event *event, *next;
	struct ucma_file *from;
	struct ucma_id *id;
	int err;

	memcpy(&cmd, c->in, sizeof(cmd));
	if (c->out_len < sizeof(resp))
		return -ENOSPC;
	err = nic_call_ucma_file(c->call, (int)cmd.fd, &from);
	if (err)
		return err == -EBADF ? -ENOENT : err;
	err = find_id(from, cmd.id, &id);
	if (err)
		return err;
	resp.events_reported = id->events_reported;
	err = nic_call_store(c->call, cmd.response, &resp, sizeof(resp));
	if (err || from == c->file)
		return err;

	TAILQ_REMOVE(&from->ids, id, in_file);
	TAILQ_INSERT_TAIL(&c->file->ids, id, in_file);
	id->file = c->file;
	for (event = TAILQ_FIRST(&from->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->id != id)
			continue;
		if (event->conn) {
			TAILQ_REMOVE(&from->ids, event->conn, in_file);
			TAILQ_INSERT_TAIL(&c->file->ids, event->conn, in_file);
			event->conn->file = c->file;
		}
		ucma_event_take(from, event);
		event_add(c->file, event);
	}
	return 0;
}

static const struct {
	int (*handler)(struct cmd *c);
	size_t in; /* bytes at least */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {do_create_id, sizeof(struct rdma_ucm_create_id)},
	[RDMA_USER_CM_CMD_DESTROY_ID] = {do_destroy_id, sizeof(struct rdma_ucm_destroy_id)},
	[RDMA_USER_CM_CMD_BIND_IP] = {do_bind_ip, sizeof(struct rdma_ucm_bind_ip)},
	[RDMA_USER_CM_CMD_RESOLVE_IP] = {do_resolve_ip, sizeof(struct rdma_ucm_resolve_ip)},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {do_resolve_route, sizeof(struct rdma_ucm_resolve_route)},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {do_query_route, sizeof(struct rdma_ucm_query)},
	[RDMA_USER_CM_CMD_CONNECT] = {do_connect, WITHOUT_ECE(struct rdma_ucm_connect)},
	[RDMA_USER_CM_CMD_LISTEN] = {do_listen, sizeof(struct rdma_ucm_listen)},
	[RDMA_USER_CM_CMD_ACCEPT] = {do_accept, WITHOUT_ECE(struct rdma_ucm_accept)},
	[RDMA_USER_CM_CMD_REJECT] = {do_reject, sizeof(struct rdma_ucm_reject)},
	[RDMA_USER_CM_CMD_DISCONNECT] = {do_disconnect, sizeof(struct rdma_ucm_disconnect)},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {do_init_qp_attr, sizeof(struct rdma_ucm_init_qp_attr)},
	[RDMA_USER_CM_CMD_GET_EVENT] = {do_get_event, sizeof(struct rdma_ucm_get_event)},
	[RDMA_USER_CM_CMD_SET_OPTION] = {do_set_option, sizeof(struct rdma_ucm_set_option)},
	[RDMA_USER_CM_CMD_NOTIFY] = {do_notify, sizeof(struct rdma_ucm_notify)},
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {do_join_ip_mcast, sizeof(struct rdma_ucm_join_ip_mcast)},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {do_leave_mcast, sizeof(struct rdma_ucm_destroy_id)},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {do_migrate_id, sizeof(struct rdma_ucm_migrate_id)},
	[RDMA_USER_CM_CMD_QUERY] = {do_query, sizeof(struct rdma_ucm_query)},
	[RDMA_USER_CM_CMD_BIND] = {do_bind, sizeof(struct rdma_ucm_bind)},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {do_resolve_addr, sizeof(struct rdma_ucm_resolve_addr)},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {do_join_mcast, sizeof(struct rdma_ucm_join_mcast)},
};

ssize_t ucma_write(struct ucma_file *file, struct nic_call *call)
{
	struct cmd c = {.file = file, .call = call};
	struct rdma_ucm_cmd_hdr hdr;
	const uint8_t *bytes;
	size_t len;
	int err;

	bytes = nic_call_bytes(call, &len);
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, bytes, sizeof(hdr));
	if (hdr.cmd >= sizeof(commands) / sizeof(commands[0]) || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	if (!commands[hdr.cmd].handler) /* GET_OPTION: not in Linux either */
		return -ENOSYS;
	if (hdr.in < commands[hdr.cmd].in)
		return -EINVAL;
	c.in = bytes + sizeof(hdr);
	c.in_len = hdr.in;
	c.out_len = hdr.out;
	err = commands[hdr.cmd].handler(&c);
	return err ? err : (ssize_t)len;
}

/* ---- files and the network ---------------------------------------------------------------- */

int ucma_open(struct ucma_net *net, void (*wake)(void *arg), void *arg, struct ucma_file **file)
{
	struct ucma_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->net = net;
	f->wake = wake;
	f->arg = arg;
	TAILQ_INIT(&f->events);
	TAILQ_INIT(&f->ids);
	*file = f;
	return 0;
}

void ucma_close(struct ucma_file *file)
{
	while (!TAILQ_EMPTY(&file->ids))
		ucma_id_destroy(TAILQ_FIRST(&file->ids));
	free(file);
}

unsigned ucma_pending(const struct ucma_file *file)
{
	return file->nevents;
}

void ucma_counts(const struct ucma_net *net, struct ucma_counts *out)
{
	const struct ucma_id *id;

	*out = (struct ucma_counts){.ids = HASH_COUNT(net->ids)};
	for (id = net->ids; id; id = id->hh.next) {
		out->listeners += id->state == UCMA_LISTEN;
		out->connections += id->cm == UCMA_CM_ESTABLISHED;
	}
}

int ucma_net_new(struct ucma_net **net, struct hw_dev *const *devs, unsigned ndevs)
{
	struct ucma_net *n = calloc(1, sizeof(*n));

	(void)devs; /* connections are made without the hardware: the application moves its QP */
	if (!n)
		return -ENOMEM;
	n->ndevs = ndevs;
	STAILQ_INIT(&n->wire);
	TAILQ_INIT(&n->timers);
	*net = n;
	return 0;
}

void ucma_net_free(struct ucma_net *net)
{
	ucma_cm_drop_wire(net);
	free(net);
}

uint64_t ucma_net_timers(struct ucma_net *net)
{
	struct ucma_id *id;
	unsigned n;
	uint64_t now;

	ucma_cm_deliver(net);
	if (TAILQ_EMPTY(&net->timers))
		return STAILQ_EMPTY(&net->wire) ? UINT64_MAX : 0;
	now = ucma_now();
	for (n = 0; n < TIMERS_MAX && (id = TAILQ_FIRST(&net->timers)) && id->due <= now; n++) {
		ucma_timer_stop(id);
		if (id->state == UCMA_CONNECT || id->state == UCMA_DISCONNECT)
			ucma_cm_timer(id);
		else
			ucma_id_timer(id);
	}
	if (!STAILQ_EMPTY(&net->wire))
		return 0;
	id = TAILQ_FIRST(&net->timers);
	return !id ? UINT64_MAX : id->due > now ? id->due - now : 0;
}
