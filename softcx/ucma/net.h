/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.h - the emulated rdma_cm: its network, files and connection ids, which all files of this room share.
 *
 *   ucma.c  files, their events, the network, and which id has something to do next
 *   cmd.c   the commands of <rdma/rdma_user_cm.h> (ucma.c of Linux)
 *   id.c    an id from creation to a resolved route: addresses, ports (first half of cma.c)
 *   cm.c    connections: the messages between two ids and their states (cma.c, cm.c)
 *   addr.c  addresses and GIDs
 *
 * One struct ucma_id stands for three structures of Linux: ucma_context, rdma_cm_id and ib_cm_id.
 * All applications are served by one thread, and every id lives in this process, so the wire between two ids
 * is a queue of messages in the network; ucma_net_timers() delivers them, unless a port on their way is down.
 * No function here runs a peer's code before it returns.
 */
#ifndef SOFTCX_UCMA_NET_H
#define SOFTCX_UCMA_NET_H

#include "softcx/proto/call.h"
#include "softcx/ucma/addr.h"

#include <rdma/rdma_user_cm.h>
#include <sys/queue.h>
#include <uthash.h>

#define UCMA_UDP_QKEY 0x01234567 /* include/rdma/rdma_cm.h: RDMA_UDP_QKEY */

/* QPNs are given one after the other: thousands of connections have a bucket each */
enum { UCMA_REMOTE_BUCKETS = 1 << 16 };

enum ucma_state { /* enum rdma_cm_state */
	UCMA_IDLE,
	UCMA_ADDR_BOUND,
	UCMA_ADDR_QUERY,
	UCMA_ADDR_RESOLVED,
	UCMA_ROUTE_QUERY,
	UCMA_ROUTE_RESOLVED,
	UCMA_CONNECT,
	UCMA_DISCONNECT,
	UCMA_LISTEN,
};

enum ucma_cm_state { /* enum ib_cm_state; states that only await an MRA are left out */
	UCMA_CM_IDLE,
	UCMA_CM_REQ_SENT,
	UCMA_CM_REQ_RCVD,
	UCMA_CM_REP_SENT,
	UCMA_CM_REP_RCVD,
	UCMA_CM_ESTABLISHED,
	UCMA_CM_DREQ_SENT,
	UCMA_CM_DREQ_RCVD,
	UCMA_CM_TIMEWAIT,
	UCMA_CM_SIDR_SENT,
	UCMA_CM_SIDR_RCVD,
};

enum ucma_ev { /* enum rdma_cm_event_type; <rdma/rdma_cma.h> cannot be included with <rdma/rdma_user_cm.h> */
	UCMA_EV_ADDR_RESOLVED = 0,
	UCMA_EV_ADDR_ERROR = 1,
	UCMA_EV_ROUTE_RESOLVED = 2,
	UCMA_EV_CONNECT_REQUEST = 4,
	UCMA_EV_CONNECT_RESPONSE = 5,
	UCMA_EV_UNREACHABLE = 7,
	UCMA_EV_REJECTED = 8,
	UCMA_EV_ESTABLISHED = 9,
	UCMA_EV_DISCONNECTED = 10,
	UCMA_EV_DEVICE_REMOVAL = 11,
	UCMA_EV_TIMEWAIT_EXIT = 15,
	UCMA_EV_USER = 18, /* these two only come from WRITE_CM_EVENT */
	UCMA_EV_INTERNAL = 19,
};

struct ucma_id;
struct ucma_msg;

struct ucma_event {
	TAILQ_ENTRY(ucma_event) link; /* in the file */
	struct ucma_id *id;           /* whose events_reported counts it; for CONNECT_REQUEST the listener */
	/* CONNECT_REQUEST: the new id, not yet known to the application. NULL: it went with the file that it
	 * stayed behind in */
	struct ucma_id *conn;
	struct rdma_ucm_event_resp resp;
};
TAILQ_HEAD(ucma_events, ucma_event);

struct ucma_file {
	struct ucma_net *net;
	unsigned host;
	void (*wake)(void *arg);
	void *arg;
	struct ucma_events events;
	unsigned nevents;
	TAILQ_HEAD(, ucma_id) ids;
};

struct ucma_port {    /* a port of a port space in use */
	uint64_t key; /* host << 32 | port space << 16 | port */
	TAILQ_HEAD(, ucma_id) ids;
	UT_hash_handle hh;
};

struct ucma_id {
	uint32_t handle; /* never reused; also what messages are addressed with */
	UT_hash_handle hh;
	struct ucma_net *net;
	struct ucma_file *file;
	TAILQ_ENTRY(ucma_id) in_file;
	struct ucma_event *request; /* unread, whose conn it is; or NULL */
	unsigned host;
	uint64_t uid;
	uint32_t events_reported;
	uint32_t backlog; /* connection requests that may still be queued */

	uint16_t ps;
	uint8_t qp_type; /* enum ibv_qp_type */
	enum ucma_state state;
	struct sockaddr_storage src, dst;
	struct ucma_port *port; /* or NULL */
	TAILQ_ENTRY(ucma_id) in_port;
	bool has_dev; /* an address tied it to @local.dev */
	bool removed; /* that device has gone: the id can only be destroyed */
	struct ucma_where local;
	struct ucma_where remote; /* valid from ADDR_RESOLVED on */
	uint64_t resolve_until;   /* ns: end of the address resolution under way */
	bool reuseaddr, afonly, afonly_set, timeout_set;
	uint8_t tos, timeout;

	enum ucma_cm_state cm;
	bool has_cm;            /* a connection was begun: the id has an ib_cm_id */
	bool heard;             /* REQ_SENT: the peer has it and needs time (MRA) */
	uint64_t first_asked;   /* ns: when @asked was sent first */
	uint32_t peer;          /* handle, 0 when not known */
	struct ucma_msg *asked; /* a message that is sent again until it is answered, or NULL */
	uint32_t qpn, qkey;
	uint32_t remote_qpn; /* see ucma_id_set_remote() */
	bool has_remote;
	LIST_ENTRY(ucma_id) in_remote;
	uint32_t rq_psn, sq_psn;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;

	unsigned timer; /* its place in net->timer; 0: none runs. The states give its meaning */
	uint64_t due;   /* ns, CLOCK_MONOTONIC */
};

struct ucma_dev {
	struct ucma_net *net;
	struct hw_dev *hw;
	struct hw_dev_watch watch;
};

struct ucma_net {
	struct ucma_dev *devs;
	unsigned ndevs;
	uint32_t last_handle;
	uint16_t last_port;
	struct ucma_id *ids;
	struct ucma_port *ports;
	LIST_HEAD(ucma_remote, ucma_id)
	by_remote[UCMA_REMOTE_BUCKETS]; /* by remote_qpn modulo their number */
	STAILQ_HEAD(, ucma_msg) wire;
	struct ucma_id **timer; /* a heap: [1] to [timers], none is due before [half its place] */
	unsigned timers, timer_room;
};

/* ---- ucma.c: events ---------------------------------------------------------------------- */

/** Queues an event on the file of @id, unless the application has not set its uid yet. */
void ucma_event(struct ucma_id *id, uint32_t event, int status);
/** The same with parameters; @resp has event, status, param and ece filled in. */
void ucma_event_resp(struct ucma_id *id, const struct rdma_ucm_event_resp *resp);
/** CONNECT_REQUEST for @conn on its listener. -ENOMEM when the backlog is full or memory is short. */
int ucma_event_request(
	struct ucma_id *listener, struct ucma_id *conn, const struct rdma_ucm_event_resp *resp);

/** Takes a queued event off its file; the caller frees it. */
void ucma_event_take(struct ucma_file *file, struct ucma_event *event);

/** Moves the events of @id to another file. The ids of the requests among them stay where they are. */
void ucma_events_move(struct ucma_id *id, struct ucma_file *to);

/** There is room for the timer of one more id. False: out of memory. */
bool ucma_timers_room(struct ucma_net *net);
void ucma_timer_start(struct ucma_id *id, uint64_t delay_ns); /* replaces a running one */
void ucma_timer_stop(struct ucma_id *id);

/* ---- cmd.c -------------------------------------------------------------------------- */

/** How packets of @id reach its peer. */
void ucma_ah_attr(const struct ucma_id *id, struct ib_uverbs_ah_attr *ah);

/* ---- id.c --------------------------------------------------------------------------- */

/** Random 24-bit PSN included; NULL when out of memory. */
struct ucma_id *ucma_id_new(struct ucma_file *file, uint16_t ps, uint8_t qp_type);
/** Ends its connection as rdma_destroy_id() does, drops its unread events, frees it. Returns events_reported.
 */
uint32_t ucma_id_destroy(struct ucma_id *id);
/** Sets the queue pair at the other end; the id can be found by it (by_remote). */
void ucma_id_set_remote(struct ucma_id *id, uint32_t qpn);
/** Hands @id and its events over to another file. */
void ucma_id_migrate(struct ucma_id *id, struct ucma_file *to);
/** Its device has gone: queues DEVICE_REMOVAL; the peer gets no message. */
void ucma_id_remove(struct ucma_id *id);
int ucma_id_bind(struct ucma_id *id, const struct sockaddr_storage *addr);
/** @src may be NULL. The outcome comes as ADDR_RESOLVED or ADDR_ERROR. */
int ucma_id_resolve_addr(struct ucma_id *id, const struct sockaddr_storage *src,
	const struct sockaddr_storage *dst, uint32_t timeout_ms);
int ucma_id_resolve_route(struct ucma_id *id);
int ucma_id_listen(struct ucma_id *id, uint32_t backlog);
int ucma_id_set_reuseaddr(struct ucma_id *id, bool on);
int ucma_id_set_afonly(struct ucma_id *id, bool on);
/** Local ACK timeout as the QP gets it (4.096 us * 2^x). */
uint8_t ucma_id_timeout(const struct ucma_id *id);
/** The ACK timeout that its REQ asks of the other side. */
uint8_t ucma_id_asked_timeout(const struct ucma_id *id);
/** The listener of @host that a request to @dst in port space @ps reaches, or NULL. */
struct ucma_id *ucma_id_listener(
	struct ucma_net *net, unsigned host, uint16_t ps, const struct sockaddr_storage *dst);
/** A timer of an id in a state before UCMA_CONNECT is due. */
void ucma_id_timer(struct ucma_id *id);

/* ---- cm.c --------------------------------------------------------------------------- */

int ucma_cm_connect(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece);
/** @p NULL: the active side's "ready to use" (rdma_establish). A failure rejects the connection. */
int ucma_cm_accept(struct ucma_id *id, const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece);
int ucma_cm_reject(struct ucma_id *id, const uint8_t *data, size_t len, uint8_t reason);
int ucma_cm_disconnect(struct ucma_id *id);
int ucma_cm_notify(struct ucma_id *id, uint32_t ib_event);
/** Sends the peer the message that ends the connection, and forgets it. */
void ucma_cm_end(struct ucma_id *id);
/** Forgets the connection without a message. */
void ucma_cm_forget(struct ucma_id *id);
/** A timer of an id in UCMA_CONNECT or UCMA_DISCONNECT is due. */
void ucma_cm_timer(struct ucma_id *id);
/** Delivers messages; false when there was none. */
bool ucma_cm_deliver(struct ucma_net *net);
void ucma_msg_drop_all(struct ucma_net *net);
/** True if a message can pass between the devices now: both ports are up. */
bool ucma_msg_path(const struct ucma_net *net, unsigned from, unsigned to);

#endif
