/* SPDX-License-Identifier: BSD-2-Clause */
/* Many clients that connect at once: events are dispatched one at a time, so that the caller can do other
 * things in between. And the limits of the parameters that a client asks for. */
#include "reddnd/ledger/ledger.h"
#include "reddnd/rnic/conn.h"
#include "reddnd/rnic/internal.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { CLIENTS = 5, PORT = 7471, PATIENCE_MS = 20000, NO_QPN = 0x800000 };

static unsigned requests;

static void request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	requests++;
	assert_int_equal(rnic_conn_reject(conn, NULL, 0), 0);
	rnic_conn_free(conn);
}

static void established(void *arg, uint64_t number)
{
	fail();
}

static void gone(void *arg, uint64_t number, const char *why)
{
	fail_msg("%s", why);
}

static void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal(event->event, type);
	rdma_ack_cm_event(event);
}

static struct rdma_cm_id *ask_at(
	struct rdma_event_channel *channel, uint32_t qpn, const char *source, const char *server)
{
	struct sockaddr_in src = {.sin_family = AF_INET};
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai;
	struct rdma_conn_param param = {.qp_num = qpn};
	struct rdma_cm_id *id;

	if (source)
		assert_int_equal(inet_pton(AF_INET, source, &src.sin_addr), 1);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_getaddrinfo(server, "7471", &hints, &ai), 0);
	assert_int_equal(
		rdma_resolve_addr(id, source ? (struct sockaddr *)&src : NULL, ai->ai_dst_addr, PATIENCE_MS),
		0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, PATIENCE_MS), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_freeaddrinfo(ai);
	assert_int_equal(rdma_connect(id, &param), 0);
	return id;
}

static struct rdma_cm_id *ask_from(struct rdma_event_channel *channel, uint32_t qpn, const char *source)
{
	return ask_at(channel, qpn, source, "127.0.0.1");
}

static struct rdma_cm_id *ask(struct rdma_event_channel *channel, uint32_t qpn)
{
	return ask_from(channel, qpn, NULL);
}

/* On @address, for requests that go to @handler */
static struct rnic_cm *listen_on(
	const char *address, void (*handler)(void *, struct rnic_conn *, const void *, size_t))
{
	static struct rnic_cm_ops ops = {.established = established, .gone = gone};
	struct rnic_cm *cm;

	ops.request = handler;
	assert_int_equal(rnic_cm_new(&cm, &ops, NULL, NULL), 0);
	assert_int_equal(rnic_cm_bind(cm, address, PORT), 0);
	assert_int_equal(rnic_cm_listen(cm), 0);
	return cm;
}

static void dispatch_next(struct rnic_cm *cm)
{
	struct pollfd ready = {.fd = rnic_cm_fd(cm), .events = POLLIN};

	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(rnic_cm_dispatch(cm), 0);
}

static void one_at_a_time(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rnic_cm *cm = listen_on("127.0.0.1", request);
	struct rdma_cm_id *id[CLIENTS];

	assert_non_null(channel);
	for (unsigned i = 0; i < CLIENTS; i++)
		id[i] = ask(channel, NO_QPN + i);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(requests, i);
		dispatch_next(cm);
	}
	assert_int_equal(requests, CLIENTS);
	assert_int_equal(rnic_cm_dispatch(cm), 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		expect_event(channel, RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(id[i]);
	}
	rdma_destroy_event_channel(channel);
	rnic_cm_free(cm);
}

/* At one port, the wildcard of IPv6 leaves IPv4 to others */
static void both_families(void **state)
{
	static const char *const server[] = {"127.0.0.1", "::1"};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rnic_cm *v6 = listen_on("::", request), *v4;

	assert_non_null(channel);
	v4 = listen_on("0.0.0.0", request);
	for (unsigned i = 0; i < 2; i++) {
		struct rdma_cm_id *id = ask_at(channel, NO_QPN + 50 + i, NULL, server[i]);

		requests = 0;
		dispatch_next(i ? v6 : v4);
		assert_int_equal(requests, 1);
		expect_event(channel, RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(channel);
	rnic_cm_free(v4);
	rnic_cm_free(v6);
}

static uint8_t seen_address[16], seen_gid[16], seen_server[16];
static uint16_t seen_port;
static uint32_t seen_qpn;
static struct rnic_device *dev;
static uint64_t at;
static const uint8_t *named; /* the address that the client is to have come to */
static bool came;

static void note_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	rnic_conn_address(conn, seen_address);
	rnic_conn_gid(conn, seen_gid);
	rnic_conn_server(conn, seen_server, &seen_port);
	if (!rnic_device_caps(dev)->infiniband)
		came = rnic_conn_came_to(conn, dev, named ? named : seen_server, at);
	seen_qpn = rnic_conn_client_qpn(conn);
	request(arg, conn, data, size);
}

/* A client whose address is not that of its GID, to which answers go: the GID differs */
static void gid_of_a_client(void **state)
{
	static const uint8_t own[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	const char *const from[] = {"127.0.0.1", "127.0.0.5"};
	struct rnic_cm *cm;

	if (rnic_device_caps(dev)->infiniband) {
		printf("left out: addresses that differ from the GID: those of InfiniBand have none\n");
		rdma_destroy_event_channel(channel);
		return;
	}
	cm = listen_on("127.0.0.1", note_request);
	assert_non_null(channel);
	for (unsigned i = 0; i < 2; i++) {
		struct rdma_cm_id *id = ask_from(channel, NO_QPN + i, from[i]);

		dispatch_next(cm);
		assert_memory_equal(seen_gid, own, sizeof(own));
		assert_int_equal(memcmp(seen_address, own, sizeof(own)) == 0, i == 0);
		expect_event(channel, RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(channel);
	rnic_cm_free(cm);
}

/* The queue pair of the client, and the address that it meant, if the server listens on that or on any */
static void ends_of_a_connection(void **state)
{
	static const uint8_t meant[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	const char *const address[] = {"127.0.0.1", "0.0.0.0"};

	assert_non_null(channel);
	for (unsigned i = 0; i < 2; i++) {
		struct rnic_cm *cm = listen_on(address[i], note_request);
		struct rdma_cm_id *id = ask(channel, NO_QPN + 77 + i);

		dispatch_next(cm);
		assert_memory_equal(seen_server, meant, sizeof(meant));
		if (!rnic_device_caps(dev)->infiniband)
			assert_true(came);
		assert_int_equal(seen_port, PORT);
		assert_int_equal(seen_qpn, NO_QPN + 77 + i);
		assert_memory_equal(seen_gid, id->route.path_rec[0].sgid.raw, sizeof(seen_gid));
		expect_event(channel, RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(id);
		rnic_cm_free(cm);
	}
	rdma_destroy_event_channel(channel);
}

static struct rnic_conn_memory memory;
static bool recalled;

static void resolve_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	recalled = rnic_conn_recall(conn, &memory, at);
	if (!recalled) {
		assert_int_equal(rnic_conn_resolve(conn, dev), 0);
		rnic_conn_remember(conn, &memory, at);
	}
	request(arg, conn, data, size);
}

/* Whether a client that comes at @now need not be asked for its address */
static bool is_recalled(struct rdma_event_channel *channel, struct rnic_cm *cm, uint64_t now)
{
	struct rdma_cm_id *id = ask(channel, NO_QPN);

	at = now;
	dispatch_next(cm);
	expect_event(channel, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
	return recalled;
}

/* For a second, and not for another GID */
static void recent_addresses(void **state)
{
	const uint64_t second = 1000000, begin = 7 * second;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rnic_cm *cm = listen_on("127.0.0.1", resolve_request);

	assert_non_null(channel);
	assert_false(is_recalled(channel, cm, begin));
	assert_true(is_recalled(channel, cm, begin));
	assert_true(is_recalled(channel, cm, begin + second - 1));
	assert_false(is_recalled(channel, cm, begin + second));
	assert_true(is_recalled(channel, cm, begin + second));
	for (unsigned i = 0; i < RNIC_CONN_KNOWN; i++)
		memory.known[i].gid[15] ^= 1;
	assert_false(is_recalled(channel, cm, begin + second));
	rdma_destroy_event_channel(channel);
	rnic_cm_free(cm);
}

static bool came_to(
	struct rdma_event_channel *channel, struct rnic_cm *cm, const uint8_t *address, uint64_t now)
{
	struct rdma_cm_id *id = ask(channel, NO_QPN);

	named = address;
	at = now;
	dispatch_next(cm);
	expect_event(channel, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
	named = NULL;
	at = 0;
	return came;
}

/* The device is not asked for its GID once more in the same second, but before a client is refused */
static void recent_gid(void **state)
{
	static const uint8_t own[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
			     other[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};
	const uint64_t second = 1000000, begin = 11 * second;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rnic_cm *cm;

	assert_non_null(channel);
	if (rnic_device_caps(dev)->infiniband) {
		printf("left out: GIDs of a server: on InfiniBand nobody asks for them\n");
		rdma_destroy_event_channel(channel);
		return;
	}
	cm = listen_on("127.0.0.1", note_request);
	assert_true(came_to(channel, cm, own, begin));
	memcpy(dev->asked.gid, other, sizeof(other)); /* who finds this has not asked */
	assert_true(came_to(channel, cm, other, begin + second - 1));
	assert_false(came_to(channel, cm, other, begin + second));
	memcpy(dev->asked.gid, other, sizeof(other));
	assert_true(came_to(channel, cm, own, begin + second + 1));
	rdma_destroy_event_channel(channel);
	rnic_cm_free(cm);
}

/* No client can make the NIC wait for hours */
static void ack_timeout(void **state)
{
	assert_int_equal(rnic_ack_timeout(14), 14);
	assert_int_equal(rnic_ack_timeout(19), 19);
	assert_int_equal(rnic_ack_timeout(0), 20);
	assert_int_equal(rnic_ack_timeout(31), 20);
}

static int open_device(void **state)
{
	return rnic_device_open_for_chains(&dev, "", NULL);
}

static int close_device(void **state)
{
	rnic_device_close(dev);
	return 0;
}

/* Of two listeners that were left one is kept, and the address of the other can be bound by another device's
 * connection manager before this one listens */
static void addresses_change_hands(void **state)
{
	static const char kept[] = "127.0.0.1", given[] = "127.0.0.2";
	struct ledger *before, *after;
	struct ledger_view *view;
	struct rnic_cm *first, *cm, *other;
	const char *why;
	int old;

	assert_int_equal(ledger_new(&before, 16, 1 << 20), 0);
	ledger_set_device(before, "mlx5_0");
	assert_int_equal(rnic_cm_new(&first, NULL, NULL, before), 0);
	assert_int_equal(rnic_cm_bind(first, kept, PORT), 0);
	assert_int_equal(rnic_cm_bind(first, given, PORT), 0);
	assert_int_equal(rnic_cm_listen(first), 0);
	old = dup(rnic_cm_fd(first));
	assert_int_equal(ledger_load(ledger_fd(before), &view, &why), 0);
	assert_int_equal(ledger_open(&after, dup(ledger_fd(before)), view), 0);

	assert_int_equal(rnic_cm_new(&cm, NULL, NULL, after), 0);
	rnic_cm_inherit(cm, &old, 1);
	assert_int_equal(rnic_cm_new(&other, NULL, NULL, NULL), 0);
	assert_true(rnic_cm_bind(other, given, PORT) < 0);
	assert_true(rnic_cm_keep(cm, kept, PORT));
	assert_false(rnic_cm_keep(cm, "127.0.0.3", PORT));
	rnic_cm_end_others(cm);
	assert_int_equal(rnic_cm_bind(other, given, PORT), 0);
	assert_true(rnic_cm_bind(other, kept, PORT) < 0);
	assert_int_equal(rnic_cm_bind(cm, kept, PORT), 0);
	assert_int_equal(rnic_cm_listen(cm), 0);
	rnic_cm_free(cm);
	rnic_cm_free(other);
	rnic_cm_free(first);
	ledger_view_free(view);
	ledger_free(after);
	ledger_free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time), cmocka_unit_test(both_families),
		cmocka_unit_test(gid_of_a_client), cmocka_unit_test(ends_of_a_connection),
		cmocka_unit_test(recent_addresses), cmocka_unit_test(recent_gid),
		cmocka_unit_test(ack_timeout), cmocka_unit_test(addresses_change_hands)};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
