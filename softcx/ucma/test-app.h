/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-app.h - the calling applications of the ucma tests, and the NIC process around it: commands are built
 * by hand, memory is our own, and the test sets the time. Device 0 and 1 (10.0.0.1, 10.0.0.2) are in
 * host 0, device 2 (10.0.0.3) is in host 1. Commands return what write() would, 0 instead of the bytes
 * consumed.
 */
#ifndef SOFTCX_UCMA_TEST_APP_H
#define SOFTCX_UCMA_TEST_APP_H

#include "tests/lib/cmocka.h"

#include "softcx/proto/call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>

enum { /* enum rdma_cm_event_type */
	ADDR_RESOLVED,
	ADDR_ERROR,
	ROUTE_RESOLVED,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE,
	UNREACHABLE = 7,
	REJECTED,
	ESTABLISHED,
	DISCONNECTED,
	DEVICE_REMOVAL,
	TIMEWAIT_EXIT = 15,
};

enum { APP_DEVS = 3 };

struct nic_call {
	const void *bytes;
	size_t len;
};

extern struct ucma_net *net;
extern struct ucma_file *server, *client,
	*far; /* descriptors 0, 1, 2; far is in host 1, the others in host 0 */
extern struct hw_dev *devs[APP_DEVS];
extern uint64_t app_now; /* ns */
extern unsigned app_wakes;

int app_setup(void **state);
int app_teardown(void **state);

ssize_t app_issue(struct ucma_file *file, uint32_t cmd, const void *body, size_t in, size_t out);
#define ISSUE(file, cmd, body, out) app_issue(file, RDMA_USER_CM_CMD_##cmd, &(body), sizeof(body), out)

struct sockaddr_in v4(const char *ip, uint16_t port);
uint32_t app_create(struct ucma_file *file, uint16_t ps, uint64_t uid);
uint32_t app_destroy(struct ucma_file *file, uint32_t id); /* returns events_reported */
ssize_t app_bind(struct ucma_file *file, uint32_t id, const void *addr, size_t len);
ssize_t app_bind4(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port);
ssize_t app_listen(struct ucma_file *file, uint32_t id, uint32_t backlog);
ssize_t app_resolve(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port, uint32_t ms);
ssize_t app_route(struct ucma_file *file, uint32_t id);
ssize_t app_set_option(struct ucma_file *file, uint32_t id, uint32_t name, const void *value, size_t len);
/** Each has a QPN of its own. */
struct rdma_ucm_connect app_connect_cmd(uint32_t id, const void *data, size_t len);
ssize_t app_connect(struct ucma_file *file, uint32_t id);
ssize_t app_accept(struct ucma_file *file, uint32_t id, uint64_t uid, const void *data, size_t len);
ssize_t app_establish(struct ucma_file *file, uint32_t id);
ssize_t app_disconnect(struct ucma_file *file, uint32_t id);
ssize_t app_qp_attr(
	struct ucma_file *file, uint32_t id, enum ibv_qp_state state, struct ib_uverbs_qp_attr *attr);
struct rdma_ucm_query_addr_resp app_addresses(struct ucma_file *file, uint32_t id);

/** Among the events queued now; no time passes. */
ssize_t app_get_event(struct ucma_file *file, struct rdma_ucm_event_resp *ev);
struct rdma_ucm_event_resp app_expect(struct ucma_file *file, uint32_t event);
void app_expect_none(struct ucma_file *file);
/** Waits for it: time goes on by itself. */
struct rdma_ucm_event_resp app_await(struct ucma_file *file, uint32_t event);

/** An id of @file that could connect now. */
uint32_t app_route_to(struct ucma_file *file, uint16_t ps, const char *ip, uint16_t port);
uint32_t app_routed(const char *ip, uint16_t port); /* of the client, in the TCP port space */
uint32_t app_listener(const char *ip, uint16_t port, uint32_t backlog); /* of the server */

struct pair {
	uint32_t listener, active, passive;
};
struct pair app_connected(void); /* a connected pair of client and server, no event left */

#endif
