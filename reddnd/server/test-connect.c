/* SPDX-License-Identifier: BSD-2-Clause */
/* When a further connection counts, and clients that wait for a table. The connection manager is the test's
 * own.
 */
#include "reddnd/server/connect.c"

#include <errno.h>

#include "tests/lib/cmocka.h"

static struct ledger_slot slot;
static int outcome; /* of the accept */

void __wrap_session_describe(const struct session *s, struct reddn_wire_rep *rep);
int __wrap_rnic_conn_accept(
	struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size);

void __wrap_session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	*rep = (struct reddn_wire_rep){0};
}

/* A daemon that is killed here has not accepted it: the next one refuses it, and the session goes on */
int __wrap_rnic_conn_accept(
	struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size)
{
	assert_int_equal(slot.session.further, 0);
	return outcome;
}

static void a_connection_counts_once_accepted(void **state)
{
	struct session first = {.connections = 2, .slot = &slot};
	struct tenant_domain domain = {0};
	struct session second = {.first = &first, .domain = &domain, .state = SESSION_ARMED};

	first.first = &first;
	first.further = &second;
	outcome = -EIO;
	assert_int_equal(answer(&second), -EIO);
	assert_int_equal(slot.session.further, 0);
	outcome = 0;
	assert_int_equal(answer(&second), 0);
	assert_int_equal(slot.session.further, 1);
}

/* ---- clients that wait for a table ---- */

int __wrap_worker_submit(struct worker *w, struct worker_job *job);
bool __wrap_request_parse(const void *data, size_t size, struct request *request, struct reddn_wire_rej *rej);
bool __wrap_admit_client(const struct generation *generation, const struct admit_from *from,
	struct admit_result *a, struct reddn_wire_rej *rej);
bool __wrap_enforcement_admits(
	struct enforcement *e, const uint8_t *address, uint64_t now_us, struct reddn_wire_rej *rej);
bool __wrap_offload_is_retired(const struct offload *o);
bool __wrap_generation_replaces(const struct generation *generation, const struct offload *o);
void __wrap_generation_use(const struct offload *offload);
void __wrap_generation_leave(const struct offload *offload);
bool __wrap_refusals_allow(struct refusals *r, const struct source *s, uint64_t now_us);
void __wrap_shared_report_unlisted(struct shared *sh);
const char *__wrap_rnic_device_name(const struct rnic_device *dev);
const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev);
bool __wrap_rnic_device_is_lost(const struct rnic_device *dev);
const char *__wrap_rnic_conn_device(const struct rnic_conn *conn);
const char *__wrap_rnic_conn_peer(const struct rnic_conn *conn);
void __wrap_rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16]);
void __wrap_rnic_conn_gid(const struct rnic_conn *conn, uint8_t gid[16]);
void __wrap_rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port);
uint32_t __wrap_rnic_conn_client_qpn(const struct rnic_conn *conn);
bool __wrap_rnic_conn_recall(struct rnic_conn *conn, const struct rnic_conn_memory *m, uint64_t now_us);
int __wrap_rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size);
void __wrap_rnic_conn_free(struct rnic_conn *conn);

static struct {
	struct dispatch d;
	struct shared shared;
	struct generation generation;
	struct offload replaced, healthy;
	const struct offload *asked; /* that the next client gets */
	struct tenant tenant;
	bool retired; /* the table of .replaced */
	bool another; /* store has its place in the generation in force */
	unsigned used, jobs, freed, rejected;
} t;

int __wrap_worker_submit(struct worker *w, struct worker_job *job)
{
	(void)w, (void)job;
	t.jobs++;
	return 0;
}

bool __wrap_request_parse(const void *data, size_t size, struct request *request, struct reddn_wire_rej *rej)
{
	(void)data, (void)rej;
	assert_int_equal(size, sizeof(struct reddn_wire_req));
	*request = (struct request){0};
	return true;
}

bool __wrap_admit_client(const struct generation *generation, const struct admit_from *from,
	struct admit_result *a, struct reddn_wire_rej *rej)
{
	a->tenant = &t.tenant;
	a->charge = (struct tenant_charge){.sessions = 1};
	if (!tenant_charge(a->tenant, &a->charge, from->now_us, rej))
		return false;
	a->offload = t.asked;
	return true;
}

bool __wrap_enforcement_admits(
	struct enforcement *e, const uint8_t *address, uint64_t now_us, struct reddn_wire_rej *rej)
{
	(void)e, (void)address, (void)now_us, (void)rej;
	return true;
}

bool __wrap_offload_is_retired(const struct offload *o)
{
	return o == &t.replaced && t.retired;
}

bool __wrap_generation_replaces(const struct generation *generation, const struct offload *o)
{
	assert_ptr_equal(generation, &t.generation);
	return o == &t.replaced && t.another;
}

void __wrap_generation_use(const struct offload *offload)
{
	assert_non_null(offload);
	t.used++;
}

void __wrap_generation_leave(const struct offload *offload)
{
	assert_non_null(offload);
	t.used--;
}

bool __wrap_refusals_allow(struct refusals *r, const struct source *s, uint64_t now_us)
{
	(void)r, (void)s, (void)now_us;
	return false;
}

void __wrap_shared_report_unlisted(struct shared *sh)
{
}

const char *__wrap_rnic_device_name(const struct rnic_device *dev)
{
	return "device";
}

const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev)
{
	static const struct rnic_caps caps = {.infiniband = true};

	return &caps;
}

bool __wrap_rnic_device_is_lost(const struct rnic_device *dev)
{
	return false;
}

const char *__wrap_rnic_conn_device(const struct rnic_conn *conn)
{
	return "device";
}

const char *__wrap_rnic_conn_peer(const struct rnic_conn *conn)
{
	return "client";
}

void __wrap_rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16])
{
	memset(address, 1, 16);
}

void __wrap_rnic_conn_gid(const struct rnic_conn *conn, uint8_t gid[16])
{
	memset(gid, 1, 16);
}

void __wrap_rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port)
{
	memset(address, 2, 16);
	*port = 1;
}

uint32_t __wrap_rnic_conn_client_qpn(const struct rnic_conn *conn)
{
	return 1;
}

bool __wrap_rnic_conn_recall(struct rnic_conn *conn, const struct rnic_conn_memory *m, uint64_t now_us)
{
	(void)conn, (void)m, (void)now_us;
	return false;
}

int __wrap_rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size)
{
	(void)conn, (void)data, (void)size;
	t.rejected++;
	return 0;
}

void __wrap_rnic_conn_free(struct rnic_conn *conn)
{
	assert_non_null(conn);
	t.freed++;
}

static bool is_opened_again(void *arg)
{
	return true;
}

static int setup(void **state)
{
	static struct record record;

	memset(&t, 0, sizeof(t));
	t.retired = true;
	t.replaced.generation = t.healthy.generation = &t.generation;
	t.d.generation = &t.generation;
	t.shared.record = &record;
	t.d.shared = &t.shared;
	t.d.retired = is_opened_again;
	t.d.connects.timeout_us = 3600 * 1000000ull;
	TAILQ_INIT(&t.d.connects.all);
	assert_true(sd_event_new(&t.d.connects.event) >= 0);
	return 0;
}

static int teardown(void **state)
{
	struct connect *v, *next;

	for (v = TAILQ_FIRST(&t.d.connects.all); v; v = next) {
		next = TAILQ_NEXT(v, link);
		connect_free(v);
	}
	sd_event_unref(t.d.connects.event);
	return t.used ? -1 : 0;
}

static void ask(const struct offload *o)
{
	static const struct reddn_wire_req req;
	static char conn;

	t.asked = o;
	on_request(&t.d, (struct rnic_conn *)&conn, &req, sizeof(req));
}

static uint64_t ends_at(const struct connect *v)
{
	uint64_t us = 0;

	assert_true(sd_event_source_get_time(v->timer, &us) >= 0);
	return us;
}

static void waits_as_one_client(void **state)
{
	struct connect *v;
	uint64_t end;

	rate_init(&t.tenant.connects, 1, 1, clock_us());
	ask(&t.replaced);
	v = TAILQ_FIRST(&t.d.connects.all);
	assert_true(v && v->held && t.jobs == 0);
	end = ends_at(v);
	for (unsigned i = 0; i < 3; i++) {
		connects_go_on(&t.d);
		assert_int_equal(t.rejected, 0);
		assert_ptr_equal(TAILQ_FIRST(&t.d.connects.all), v);
		assert_true(v->held && ends_at(v) == end && t.jobs == 0);
	}
	t.retired = false;
	connects_go_on(&t.d);
	assert_true(!v->held && v->busy && t.jobs == 1 && ends_at(v) == end);
	assert_int_equal(t.tenant.sessions, 1);
	assert_int_equal(t.used, 1);
	/* It waits for its address now */
	connects_go_on(&t.d);
	assert_int_equal(t.jobs, 1);
}

static void is_refused_when_judged_again(void **state)
{
	ask(&t.replaced);
	t.tenant.limits.sessions = 1;
	t.tenant.sessions += 1; /* another client's */
	connects_go_on(&t.d);
	assert_true(TAILQ_EMPTY(&t.d.connects.all));
	assert_int_equal(t.rejected, 1);
	assert_int_equal(t.freed, 1);
	assert_int_equal(t.tenant.sessions, 1);
	assert_int_equal(t.used, 0);
}

/* Those that wait for a table have a limit of their own */
static void others_of_the_tenant_go_on(void **state)
{
	for (unsigned i = 0; i < CONNECTS_MAX; i++)
		ask(&t.replaced);
	assert_int_equal(t.rejected, 0);
	ask(&t.healthy);
	assert_true(t.jobs == 1 && t.rejected == 0);
	ask(&t.replaced);
	assert_int_equal(t.rejected, 1);
	assert_int_equal(t.tenant.sessions, CONNECTS_MAX + 1);
}

/* Its session would begin when those of the store have ended */
static void gets_the_store_that_is_there_when_it_begins(void **state)
{
	struct connect *v;

	t.retired = false;
	ask(&t.replaced);
	v = TAILQ_FIRST(&t.d.connects.all);
	assert_true(v && v->busy && t.jobs == 1);
	v->busy = false;
	t.another = true;
	t.asked = &t.healthy;
	connect_register(v);
	assert_true(v->admitted.offload == &t.healthy && v->busy && t.jobs == 2);
	assert_int_equal(t.tenant.sessions, 1);
	assert_int_equal(t.used, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_counts_once_accepted),
		cmocka_unit_test_setup_teardown(waits_as_one_client, setup, teardown),
		cmocka_unit_test_setup_teardown(is_refused_when_judged_again, setup, teardown),
		cmocka_unit_test_setup_teardown(others_of_the_tenant_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(gets_the_store_that_is_there_when_it_begins, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
