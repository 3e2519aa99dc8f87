/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ucm.h - the kernel's connection manager: /dev/infiniband/rdma_cm and the commands of <rdma/rdma_user_cm.h>
 * that a server needs. Not by librdmacm: it keeps the kernel's id of a connection and the uid that events
 * carry to itself, and a successor process needs both to go on with a connection.
 *
 * The kernel takes commands only with the credentials, and from the process image, that opened the file
 * (include/rdma/ib.h, ib_safe_file_access).
 *
 * Thread rules: any; commands of one file wait for each other. Errors: negative errno, not logged.
 */
#ifndef RNIC_UCM_H
#define RNIC_UCM_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/** enum rdma_cm_event_type of <rdma/rdma_cma.h>, which cannot be included with <rdma/rdma_user_cm.h> */
enum rnic_ucm_event_type {
	RNIC_UCM_CONNECT_REQUEST = 4,
	RNIC_UCM_CONNECT_ERROR = 6,
	RNIC_UCM_UNREACHABLE = 7,
	RNIC_UCM_REJECTED = 8,
	RNIC_UCM_ESTABLISHED = 9,
	RNIC_UCM_DISCONNECTED = 10,
	RNIC_UCM_DEVICE_REMOVAL = 11,
	RNIC_UCM_TIMEWAIT_EXIT = 15,
};

/** A non-blocking descriptor, readable while events are queued. -ENODEV: there is no connection manager.
 * -EPROTONOSUPPORT: another version of the commands. */
int rnic_ucm_open(int *fd);

/** An id for listening; @uid: what its events carry. */
int rnic_ucm_create_id(int fd, uint64_t uid, uint32_t *id);
/** Before it is bound to an IPv6 address: it is for IPv6 alone, so that IPv4 can have the same port (Linux
 * drivers/infiniband/core/cma.c, cma_check_port). */
int rnic_ucm_set_afonly(int fd, uint32_t id);
int rnic_ucm_bind(int fd, uint32_t id, const struct sockaddr *address, size_t size);
int rnic_ucm_listen(int fd, uint32_t id, unsigned backlog);
/** Ends what @id has: the peer of a connection gets an event. */
int rnic_ucm_destroy_id(int fd, uint32_t id);

/**
 * Moves @id with its unread events from the file @from to @fd. The credentials of @from do not matter. The id
 * that an unread CONNECT_REQUEST announces stays in @from, and is moved by itself once the request has been
 * read; close @from before that, and the kernel has a dangling pointer. -ENOENT or -EINVAL: @from has no such
 * id.
 */
int rnic_ucm_migrate_id(int fd, int from, uint32_t id);

struct rnic_ucm_event {
	unsigned type; /* enum rnic_ucm_event_type, or others */
	/* Of the id, as rnic_ucm_create_id() and rnic_ucm_accept() set it. Before, an id has no events. Of a
	 * CONNECT_REQUEST: the listener's */
	uint64_t uid;
	uint32_t id; /* of a CONNECT_REQUEST: the new one */
	uint8_t data[256];
	size_t size; /* of the private data */
};

enum { RNIC_UCM_ROOM = 384 };

/**
 * 1, or 0 when there is no event. @room: RNIC_UCM_ROOM bytes, aligned to 8, where the kernel stores the event
 * before it forgets it (ucma.c, ucma_get_event): in a file, it is not lost when this process dies. NULL:
 * none.
 */
int rnic_ucm_next_event(int fd, void *room, struct rnic_ucm_event *event);
/** True: @event is the last one in @room, and nobody has called rnic_ucm_forget_event() since. */
bool rnic_ucm_last_event(const void *room, struct rnic_ucm_event *event);
void rnic_ucm_forget_event(void *room);

struct rnic_ucm_route {
	uint64_t node_guid;              /* big-endian; 0: the id belongs to no device */
	int device_index;                /* of the kernel; -1: unknown (Linux before 5.7) */
	struct sockaddr_in6 local, peer; /* or IPv4 */
	unsigned paths;
	uint8_t dgid[16]; /* of the first path */
};

int rnic_ucm_query_route(int fd, uint32_t id, struct rnic_ucm_route *route);
/** The attributes for a transition of the connection's queue pair to @state: path, PSNs, peer, timeout and
 * retries. */
int rnic_ucm_qp_attr(int fd, uint32_t id, enum ibv_qp_state state, struct ibv_qp_attr *attr);

/** At most 196 bytes of private data. Never twice for an id: the kernel answers the second with a reject
 * (cma.c, rdma_accept_ece). */
int rnic_ucm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const void *data, size_t size);
/** At most 148 bytes of private data. */
int rnic_ucm_reject(int fd, uint32_t id, const void *data, size_t size);

#endif
