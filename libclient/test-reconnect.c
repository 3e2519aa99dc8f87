/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of requests when a handle exchanges its session, against a fake NIC and server. */
#include "libclient/test-rig.h"

#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "util/array.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { KEYS = RIG_STABLE };

/* ---- in place of connect.c: a session is there when rig_next_session() has made it ---- */

static enum reddn_choice begun_choice;
static unsigned begun_host;

void reddn_connector_begin(struct reddn_connector *a, enum reddn_choice choice, unsigned host)
{
	begun_choice = choice;
	begun_host = host;
	if (a->state == REDDN_CONNECT_IDLE)
		a->state = REDDN_CONNECT_ADDRESS;
}

void reddn_connector_step(struct reddn_connector *a)
{
}

struct reddn_session reddn_connector_take(struct reddn_connector *a)
{
	assert_int_equal(a->state, REDDN_CONNECT_DONE);
	a->state = REDDN_CONNECT_IDLE;
	return a->session;
}

void reddn_connector_rest(struct reddn_connector *a)
{
	a->state = REDDN_CONNECT_IDLE;
}

static uint64_t alarm_at;

void reddn_connector_alarm(struct reddn_connector *a, uint64_t ms)
{
	alarm_at = ms;
}

void reddn_connector_alarm_ns(struct reddn_connector *a, uint64_t ns)
{
	reddn_connector_alarm(a, ns == UINT64_MAX ? ns : ns / 1000000);
}

uint64_t reddn_jitter(uint64_t ms)
{
	return ms;
}

void reddn_connector_abandon(struct reddn_connector *a)
{
	a->state = REDDN_CONNECT_IDLE;
}

int reddn_connector_init(struct reddn_connector *a, const struct reddn_options *opt)
{
	(void)a, (void)opt;
	return -ENOSYS;
}

int reddn_connector_copy(struct reddn_connector *a, const struct reddn_connector *of, const char *offload,
	unsigned host, const struct sockaddr *known)
{
	(void)a, (void)of, (void)offload, (void)host, (void)known;
	return -ENOSYS;
}

void reddn_connector_wait(struct reddn_connector *a)
{
}

void reddn_connector_deinit(struct reddn_connector *a)
{
}

/* ---- */

static int submit_get(uint32_t k)
{
	uint8_t key[RIG_KEY_MAX];
	size_t len = rig_key_of(k, key);

	return reddn_get_submit(&rig.c, key, len, k);
}

static void submit(uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k < to; k++)
		assert_int_equal(submit_get(k), 0);
}

static struct reddn_info info_now(void)
{
	struct reddn_info info;

	reddn_get_info(&rig.c, &info);
	return info;
}

static void start(unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of)
{
	rig_start_several(keys, connections, depth, of, 100000);
	rig.c.connector.opt.flags = 0;
}

/* No result comes before there is a session. */
static void nothing_yet(void)
{
	struct reddn_result res;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(reddn_arm(&rig.c), 0);
}

/* The values of these keys come, each once. */
static void expect_values(uint32_t n)
{
	bool seen[KEYS] = {0};
	struct reddn_result res[3];

	for (uint32_t got = 0; got < n;) {
		int r;

		while (rig_pending())
			rig_serve();
		r = reddn_poll(&rig.c, res, COUNT(res));
		assert_true(r >= 0);
		for (int i = 0; i < r; i++, got++) {
			uint32_t want[64];
			size_t len;

			assert_int_equal(res[i].status, 0);
			assert_true(res[i].cookie < n && !seen[res[i].cookie]);
			seen[res[i].cookie] = true;
			rig_value_of((uint32_t)res[i].cookie, 0, want, &len);
			assert_int_equal(res[i].length, len);
			assert_memory_equal(res[i].value, want, len);
		}
	}
	assert_int_equal(rig.c.busy, 0);
	reddn_release(&rig.c);
}

/* Gets that were outstanding, and those that were submitted meanwhile, are answered by the next session, of
 * any depth and number of connections and of keys in a request, and of any program. */
static void test_gets(void **state)
{
	static const struct {
		unsigned keys, depth;
		uint16_t connections;
	} of[] = {{1, 8, 1}, {1, 3, 1}, {1, 16, 3}, {4, 4, 1}, {2, 2, 2}};

	for (unsigned i = 0; i < COUNT(of) * COUNT(of); i++) {
		unsigned a = i / COUNT(of), b = i % COUNT(of), most = of[a].depth * of[a].connections;
		uint32_t first = most - most / 3;
		uint64_t sent;

		start(of[a].keys, of[a].connections, of[a].depth, false);
		submit(0, first);
		sent = info_now().sent;
		assert_int_equal(sent, first);
		rig_lose(-ECONNRESET);
		nothing_yet();
		submit(first, most);
		nothing_yet();
		assert_string_equal(reddn_errmsg(&rig.c), "lost by the test");
		assert_int_equal(info_now().sent, sent);
		rig_next_session(of[b].keys, of[b].connections, of[b].depth, false);
		rig.c.connector.session.program = i;
		expect_values(most);
		assert_int_equal(info_now().reconnects, 1);
		assert_true(info_now().sent > sent);
		assert_int_equal(info_now().depth, of[b].depth * of[b].connections);
		/* and it goes on as any other */
		submit(0, of[b].depth);
		expect_values(of[b].depth);
		rig_stop();
	}
}

/* A value stays where it is until the caller releases it, and what has arrived counts. */
static void test_values_stay(void **state)
{
	struct reddn_result res[2];
	uint32_t want[64];
	size_t len;

	start(1, 1, 8, false);
	submit(0, 4);
	rig_serve();
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, res, 1), 1);
	rig_lose(-ECONNRESET);
	assert_int_equal(reddn_arm(&rig.c), 0);
	rig_value_of(0, 0, want, &len);
	assert_memory_equal(res[0].value, want, len);
	assert_int_equal(reddn_poll(&rig.c, res, 2), 1);
	assert_int_equal(res[0].cookie, 1);
	rig_value_of(1, 0, want, &len);
	assert_memory_equal(res[0].value, want, len);
	assert_int_equal(rig.c.state, REDDN_LOST);
	nothing_yet();
	assert_int_equal(rig.c.state, REDDN_AWAY);
	assert_int_equal(rig.c.busy, 2);
	rig_next_session(1, 1, 8, false);
	assert_int_equal(reddn_poll(&rig.c, res, 1), 0);
	/* a caller who armed before sleeps now */
	assert_true(rig_is_armed());
	rig_serve();
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, res, 2), 2);
	assert_int_equal(res[0].cookie, 2);
	assert_int_equal(res[1].cookie, 3);
	rig_stop();
}

/* A table is replaced: gets are asked again of the one that has its place. */
static void test_replaced(void **state)
{
	struct reddn_table_live *live;
	struct reddn_result res;

	start(1, 1, 8, false);
	submit(0, 8);
	live = rig_live();
	live->epoch = 0;
	for (unsigned i = 0; i < 3; i++)
		rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(rig.c.state, REDDN_LOST);
	rig_lose(0);
	nothing_yet();
	assert_non_null(strstr(reddn_errmsg(&rig.c), "another table"));
	live->epoch = 77;
	rig_next_session(1, 1, 8, false);
	nothing_yet();
	/* Nobody waits for the end of the session before */
	assert_int_equal(rig.disconnected, 0);
	expect_values(8);
	nothing_yet();
	assert_int_equal(rig.disconnected, 1);
	rig_stop();
}

/* Late replies would be written to memory of the caller (REDDN_INTO): the session of the replaced table ends
 * before its gets have results, also those of a timeout, and before there is another one. */
static void test_replaced_into(void **state)
{
	struct reddn_result res[8];

	for (unsigned times_out = 0; times_out < 2; times_out++) {
		start(1, 1, 8, false);
		submit(0, 8);
		rig.c.session.into = true;
		rig_lose(-ESTALE);
		nothing_yet();
		assert_int_equal(rig.disconnected, 1);
		if (times_out) {
			rig.c.give_up = -ETIMEDOUT;
			assert_int_equal(reddn_poll(&rig.c, res, COUNT(res)), 8);
			assert_int_equal(res[7].status, -ETIMEDOUT);
		} else {
			rig_next_session(1, 1, 8, false);
			expect_values(8);
		}
		rig_stop();
	}
}

/* A server that has no room for two sessions of the client gets another request after the end of the first.
 */
static void test_no_room(void **state)
{
	start(1, 1, 8, false);
	submit(0, 3);
	expect_values(3);
	submit(0, 3);
	rig_lose(-ESTALE);
	nothing_yet();
	assert_int_equal(rig.disconnected, 0);
	rig.c.connector.error = -EDQUOT;
	rig.c.connector.state = REDDN_CONNECT_FAILED;
	begun_choice = REDDN_OTHER_HOST;
	nothing_yet();
	assert_int_equal(rig.disconnected, 1);
	assert_int_equal(begun_choice, REDDN_THIS_HOST);
	rig_next_session(1, 1, 8, false);
	expect_values(3);
	rig_stop();
}

/* A caller who has read how many keys a request has need not read it again. */
static void test_fewer_keys(void **state)
{
	enum { N = 4 };
	uint8_t bytes[N + 1][RIG_KEY_MAX];
	struct reddn_key keys[N + 1];

	start(N, 1, 2, false);
	for (uint32_t k = 0; k <= N; k++)
		keys[k] = (struct reddn_key){bytes[k], rig_key_of(k, bytes[k])};
	assert_int_equal(reddn_mget_submit(&rig.c, keys, N, 0), 0);
	rig_lose(-ECONNRESET);
	nothing_yet();
	rig_next_session(1, 1, 2, false);
	expect_values(N);
	assert_int_equal(info_now().keys, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(reddn_mget_submit(&rig.c, keys, N, 0), 0);
		expect_values(N);
	}
	assert_int_equal(reddn_mget_submit(&rig.c, keys, N + 1, 0), -EINVAL);
	rig_stop();
}

/* What the next table cannot hold has an error; the others have values. */
static void test_shorter_keys(void **state)
{
	struct reddn_result res;

	start(1, 1, 8, false);
	/* keys of 4 and 16 bytes */
	submit(0, 2);
	rig_lose(-EIO);
	rig_next_session(1, 1, 8, false);
	rig.c.connector.session.geo.max_key = 8;
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 1);
	assert_int_equal(res.status, -EMSGSIZE);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 0);
	assert_int_equal(res.status, 0);
	rig_stop();
}

static int call(uint64_t cookie)
{
	uint8_t bytes[100] = {0};

	return reddn_submit(&rig.c, bytes, sizeof(bytes), cookie);
}

static void answer(void)
{
	struct rig_end *e = rig.end;

	e->receives--;
	rig_push((struct ibv_wc){.wr_id = (uintptr_t)e->k,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm_data = htonl((uint32_t)e->served++)});
}

/* A session that has ended while nobody used it takes no call, of which nobody could tell what became. */
static void test_call_after_the_end(void **state)
{
	struct reddn_result res;

	start(1, 1, 4, true);
	rig.c.session.hangup = true;
	assert_int_equal(call(7), 0);
	nothing_yet();
	rig_next_session(1, 1, 4, true);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(rig.end[0].arrived, 1);
	rig_stop();
}

/* A call that was sent may have been executed. One that was not, was not. */
static void test_calls(void **state)
{
	for (unsigned how = 0; how < 3; how++) {
		struct reddn_result res[8];
		unsigned again = 4;

		start(1, 1, 4, true);
		rig.c.session.repeatable = how == 1;
		rig.c.connector.opt.flags = how == 2 ? REDDN_REPEATABLE : 0;
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(call(i), 0);
		rig_lose(-ECONNRESET);
		assert_int_equal(call(3), 0);
		if (how == 0) {
			assert_int_equal(reddn_poll(&rig.c, res, 2), 2);
			assert_int_equal(reddn_poll(&rig.c, res + 2, 2), 1);
			for (unsigned i = 0; i < 3; i++) {
				assert_int_equal(res[i].cookie, i);
				assert_int_equal(res[i].status, -EINPROGRESS);
			}
			again = 1;
		}
		nothing_yet();
		rig_next_session(1, 1, 4, true);
		assert_int_equal(reddn_poll(&rig.c, res, 8), 0);
		assert_int_equal(rig.end[0].arrived, again);
		for (unsigned i = 0; i < again; i++)
			answer();
		assert_int_equal(reddn_poll(&rig.c, res, 8), again);
		for (unsigned i = 0; i < again; i++) {
			assert_int_equal(res[i].cookie, 4 - again + i);
			assert_int_equal(res[i].status, 0);
		}
		rig_stop();
	}
}

/* Another program, or none of this kind: who waits must know, and so must who asks later, until it fits
 * again. */
static void test_another_offload(void **state)
{
	struct reddn_result res;

	for (unsigned i = 0; i < 3; i++) {
		start(1, 1, 4, true);
		rig_lose(-ECONNRESET);
		assert_int_equal(call(1), 0);
		rig_next_session(1, 1, 4, i < 2);
		if (i == 0)
			rig.c.connector.session.info.request_len = 90;
		/* which takes and answers the same under other names */
		if (i == 1)
			rig.c.connector.session.program = 1;
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, 1);
		assert_int_equal(res.status, -ESTALE);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), -ESTALE);
		assert_int_equal(call(2), -ESTALE);
		assert_non_null(strstr(reddn_errmsg(&rig.c), "another one now"));
		rig_next_session(1, 1, 4, true);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
		assert_int_equal(call(2), 0);
		answer();
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		rig_stop();
	}
}

/* Of several hosts one has another program already: the others are asked, and only after the last one those
 * who wait must know. */
static void test_another_offload_of_two(void **state)
{
	struct reddn_result res;

	for (unsigned left = 1; left <= 2; left++) {
		start(1, 1, 4, true);
		rig_lose(-ECONNRESET);
		assert_int_equal(call(1), 0);
		rig_next_session_at(1, 1, 1, 4, true);
		rig.c.connector.session.program = 1;
		rig.c.connector.hosts.left = left;
		assert_int_equal(reddn_poll(&rig.c, &res, 1), left == 1);
		assert_true(rig.c.connector.hosts.host[1].out_until > 0);
		if (left == 1) {
			assert_int_equal(res.status, -ESTALE);
		} else {
			assert_true(alarm_at <= clock_ms());
			nothing_yet();
			rig_next_session(1, 1, 4, true);
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
			answer();
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
			assert_int_equal(res.status, 0);
		}
		rig_stop();
	}
}

/* A request that each session dies of is not sent for ever; one that waits for a table is. */
static void test_many_losses(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		const int error = i ? -ESTALE : -EIO;
		struct reddn_result res;
		unsigned losses = 0;
		int n = 0;

		start(1, 1, 4, false);
		assert_int_equal(submit_get(1), 0);
		while (n == 0 && losses++ < 40) {
			rig_lose(error);
			n = reddn_poll(&rig.c, &res, 1);
			if (n == 0) {
				rig_next_session(1, 1, 4, false);
				assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
			}
		}
		if (error == -ESTALE) {
			assert_int_equal(losses, 41);
		} else {
			assert_int_equal(losses, 4);
			assert_int_equal(n, 1);
			assert_int_equal(res.status, -EIO);
		}
		rig_stop();
	}
}

/* A handle that ends has nothing to wake its program for. */
static void test_over(void **state)
{
	struct reddn_result res;

	start(1, 1, 4, false);
	rig.c.connector.opt.flags = REDDN_NO_RECONNECT;
	assert_int_equal(submit_get(1), 0);
	rig_lose(-EIO);
	assert_int_equal(alarm_at, 0);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, -EIO);
	assert_true(alarm_at == UINT64_MAX);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), -EIO);
	assert_null(rig.c.session.connection);
	rig_stop();
}

/* Of a session that is lost while requests are sent again, the next one waits for another session. */
static void test_lost_by_posting(void **state)
{
	struct reddn_result res[2];

	start(1, 1, 2, false);
	assert_int_equal(submit_get(0), 0);
	assert_int_equal(submit_get(RIG_STABLE), 0);
	rig_serve();
	rig_serve();
	/* The first miss of a session is not certain, and there is no room to ask again before the release */
	assert_int_equal(reddn_poll(&rig.c, res, 2), 1);
	assert_non_null(rig.c.retry.first);
	reddn_release(&rig.c);
	rig.posts_fail = true;
	assert_int_equal(submit_get(1), 0);
	assert_int_equal(rig.c.state, REDDN_LOST);
	assert_int_equal(rig.failed_posts, 1);
	rig_stop();
}

/* ---- several hosts ---- */

static void step(void)
{
	struct reddn_result res;

	rig.c.standby.stepped_at = 0;
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
}

static void start_with_standby(unsigned keys, uint16_t connections, unsigned depth, bool raw)
{
	start(keys, connections, depth, raw);
	rig.c.standby.wanted = true;
	rig.c.standby.credit = rig.c.session.info.depth;
	step();
	assert_int_equal(begun_choice, REDDN_OTHER_HOST);
	assert_int_equal(begun_host, 0);
	rig_next_session_at(1, keys, connections, depth, raw);
	step();
	assert_int_equal(rig.c.standby.state, REDDN_STANDBY_WARM);
}

static void stop(void)
{
	reddn_standby_drop(&rig.c);
	rig_stop();
}

/* What is outstanding has been so for a while. */
static void wait_for_us(uint64_t us)
{
	step();
	rig.c.standby.marked_at -= us * 1000;
	step();
}

static struct reddn_host_info host_now(unsigned i)
{
	struct reddn_host_info info;

	assert_int_equal(reddn_get_host(&rig.c, i, &info), 0);
	return info;
}

/* A host that stops: gets go to the other one, whose values count, and back when that stops. */
static void test_late(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		const unsigned keys = i == 1 ? 4 : 1, depth = 8, n = 6;
		const uint16_t connections = i == 2 ? 3 : 1;

		start_with_standby(keys, connections, depth, false);
		rig.stopped[0] = true;
		submit(0, n);
		wait_for_us(1000);
		assert_int_equal(rig.c.session.host, 0);
		wait_for_us(6000);
		assert_int_equal(rig.c.session.host, 1);
		assert_int_equal(rig.c.state, REDDN_UP);
		assert_int_equal(rig.c.standby.state, REDDN_STANDBY_LATE);
		assert_int_equal(host_now(0).state, REDDN_HOST_STANDBY);
		assert_int_equal(host_now(0).late, n);
		assert_int_equal(host_now(1).state, REDDN_HOST_IN_USE);
		assert_int_equal(reddn_get_host(&rig.c, 2, &(struct reddn_host_info){0}), -EINVAL);
		expect_values(n);
		/* It owes replies: the other one is waited for, however late it is */
		rig.stopped[1] = true;
		rig.c.standby.credit = n;
		submit(0, n);
		wait_for_us(6000);
		assert_int_equal(rig.c.session.host, 1);
		rig.stopped[0] = false;
		while (rig_pending())
			rig_serve();
		step();
		assert_int_equal(rig.c.standby.state, REDDN_STANDBY_WARM);
		wait_for_us(6000);
		assert_int_equal(rig.c.session.host, 0);
		expect_values(n);
		assert_int_equal(info_now().reconnects, 2);
		stop();
	}
}

/* Sending again has a budget, but not when a host seems to be dead. What may not be repeated is waited for.
 */
static void test_budget(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		start_with_standby(1, 1, 8, i == 2);
		rig.c.standby.credit = i == 0 ? 3 : 2;
		rig.stopped[0] = true;
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(i == 2 ? call(k) : submit_get(k), 0);
		wait_for_us(6000);
		assert_int_equal(rig.c.session.host, i == 0);
		wait_for_us(201000);
		assert_int_equal(rig.c.session.host, i < 2);
		stop();
	}
}

/* Of 20 requests one may be sent again. */
static void test_credit(void **state)
{
	start_with_standby(1, 1, 8, false);
	rig.c.standby.credit = 0;
	for (unsigned i = 0; i < 10; i++) {
		submit(0, 2);
		expect_values(2);
	}
	rig.stopped[0] = true;
	submit(0, 2);
	wait_for_us(6000);
	assert_int_equal(rig.c.session.host, 0);
	rig.stopped[0] = false;
	expect_values(2);
	for (unsigned i = 0; i < 9; i++) {
		submit(0, 2);
		expect_values(2);
	}
	rig.stopped[0] = true;
	submit(0, 2);
	wait_for_us(6000);
	assert_int_equal(rig.c.session.host, 1);
	expect_values(2);
	stop();
}

/* A host that answers slowly all the time is not late. */
static void test_slow(void **state)
{
	start_with_standby(1, 1, 8, false);
	for (unsigned i = 0; i < 200; i++) {
		submit(0, 1);
		step();
		rig.c.standby.marked_at -= 4000000;
		expect_values(1);
		step();
	}
	assert_true(rig.c.standby.usual > 3000000 && rig.c.standby.usual < 5000000);
	rig.stopped[0] = true;
	submit(0, 1);
	wait_for_us(20000);
	assert_int_equal(rig.c.session.host, 0);
	wait_for_us(41000);
	assert_int_equal(rig.c.session.host, 1);
	stop();
}

/* A session that is lost: the other one is there. */
static void test_standby(void **state)
{
	struct reddn_result res;

	start_with_standby(1, 1, 8, false);
	submit(0, 5);
	rig_lose(-ECONNRESET);
	submit(5, 8);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(rig.c.state, REDDN_UP);
	assert_int_equal(rig.c.session.host, 1);
	assert_string_equal(reddn_errmsg(&rig.c), "");
	rig.stopped[0] = true;
	expect_values(8);
	assert_int_equal(host_now(0).sent, 5);
	assert_int_equal(host_now(1).sent, 8);
	assert_int_equal(info_now().sent, 13);
	/* the one that is gone is left after that, and another one is made */
	assert_int_equal(rig.c.standby.state, REDDN_STANDBY_GONE);
	assert_int_equal(host_now(0).state, REDDN_HOST_NONE);
	step();
	assert_int_equal(rig.c.standby.state, REDDN_STANDBY_NONE);
	assert_int_equal(host_now(0).sent, 5);
	rig.c.standby.connect_at = 0; /* the pause is over */
	step();
	assert_int_equal(begun_choice, REDDN_OTHER_HOST);
	assert_int_equal(begun_host, 1);
	stop();
}

/* Calls that may have been executed are not sent to another host; those that were not sent are. */
static void test_calls_of_two(void **state)
{
	struct reddn_result res[3];

	start_with_standby(1, 1, 4, true);
	assert_int_equal(call(1), 0);
	rig_lose(-ECONNRESET);
	assert_int_equal(call(2), 0);
	assert_int_equal(reddn_poll(&rig.c, res, 3), 1);
	assert_int_equal(res[0].cookie, 1);
	assert_int_equal(res[0].status, -EINPROGRESS);
	assert_int_equal(rig.end[RIG_CONNECTIONS].arrived, 1);
	stop();
}

/* The successor of a table is at the same host; the other one may have the old table. */
static void test_replaced_of_two(void **state)
{
	start_with_standby(1, 1, 8, false);
	submit(0, 3);
	rig_lose(-ESTALE);
	nothing_yet();
	rig.c.connect_at = 0; /* the pause is over */
	nothing_yet();
	assert_int_equal(begun_choice, REDDN_THIS_HOST);
	assert_int_equal(begun_host, 0);
	assert_int_equal(rig.c.standby.state, REDDN_STANDBY_WARM);
	/* but if it has nothing any more */
	rig.c.connector.error = -ECONNREFUSED;
	rig.c.connector.state = REDDN_CONNECT_FAILED;
	nothing_yet();
	assert_int_equal(rig.c.session.host, 1);
	rig.stopped[0] = true;
	expect_values(3);
	stop();
}

/* A table that was replaced and has no successor: its host is asked once more, and then the other one. */
static void test_no_successor(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		const bool answers = i == 1;

		start(1, 1, 8, false);
		submit(0, 3);
		expect_values(3);
		submit(0, 3);
		rig_lose(-ESTALE);
		nothing_yet();
		rig.c.connect_at = 0; /* the pause is over */
		nothing_yet();
		assert_int_equal(begun_choice, REDDN_THIS_HOST);
		rig_next_session(1, 1, 8, false);
		if (answers) {
			expect_values(3);
			submit(0, 3);
		} else {
			nothing_yet();
		}
		rig_lose(-ESTALE);
		nothing_yet();
		rig.c.connect_at = 0;
		nothing_yet();
		assert_int_equal(begun_choice, answers ? REDDN_THIS_HOST : REDDN_ANY_HOST);
		assert_int_equal(rig.c.connector.hosts.host[0].out_until > 0, !answers);
		rig_next_session_at(1, 1, 1, 8, false);
		expect_values(3);
		rig_stop();
	}
}

static void state_age(uint64_t ms)
{
	const struct reddn_as_of as_of = {
		.source = 1000, .host = clock_read_ns(CLOCK_REALTIME) - ms * 1000000, .flags = REDDN_FOLLOWS};

	assert_int_equal(reddn_table_set_as_of(rig.t, &as_of), 0);
}

enum { YOUNG_MS = 0, OLD_MS = 200000 };

static int status_now(void)
{
	struct reddn_result res;

	while (rig_pending())
		rig_serve();
	return reddn_poll(&rig.c, &res, 1) ? res.status : REDDN_MISS;
}

static void start_old(void)
{
	start_with_standby(1, 1, 8, false);
	rig.c.connector.opt.max_age_ms = 100000;
	state_age(OLD_MS);
	submit(0, 1);
}

/* The host's table is too old: the get goes to the other one, and what that has counts. */
static void test_old(void **state)
{
	start_old();
	rig_serve();
	step();
	assert_int_equal(rig.c.session.host, 0);
	step();
	assert_int_equal(rig.c.session.host, 1);
	assert_int_equal(host_now(0).late, 0);
	rig.stopped[0] = true;
	state_age(YOUNG_MS);
	expect_values(1);
	assert_int_equal(rig.c.retries_old, 2);
	/* it stays there */
	submit(0, 1);
	expect_values(1);
	assert_int_equal(rig.c.session.host, 1);
	stop();
}

/* If all are too old, each is asked once in a second. */
static void test_all_old(void **state)
{
	start_old();
	rig_serve();
	step();
	step();
	assert_int_equal(rig.c.session.host, 1);
	assert_int_equal(status_now(), -ESTALE);
	for (unsigned i = 0; i < 3; i++) {
		submit(0, 1);
		assert_int_equal(status_now(), -ESTALE);
		step();
		assert_int_equal(rig.c.session.host, 1);
	}
	assert_int_equal(rig.c.standby.state, REDDN_STANDBY_WARM);
	rig.c.connector.hosts.host[0].out_until = 0; /* the second is over */
	submit(0, 1);
	rig_serve();
	step();
	step();
	assert_int_equal(rig.c.session.host, 0);
	assert_int_equal(status_now(), -ESTALE);
	stop();
}

/* A second host that is not there yet is waited for, as long as gets are repeated; one that cannot be
 * connected is not. */
static void test_old_alone(void **state)
{
	start_old();
	reddn_standby_drop(&rig.c);
	rig.c.standby.connect_at = UINT64_MAX;
	assert_int_equal(status_now(), -ESTALE);
	rig.c.standby.connect_at = 0;
	rig.c.connector.opt.retry_ms = 1000000;
	submit(0, 1);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(status_now(), REDDN_MISS);
	rig.c.connector.opt.retry_ms = 1;
	while (rig.c.busy)
		assert_true(status_now() == REDDN_MISS || !rig.c.busy);
	/* another one has refused */
	rig.c.connector.hosts.host[1].out_until = UINT64_MAX;
	submit(0, 1);
	assert_int_equal(status_now(), -ESTALE);
	stop();
}

/* ---- puts --------------------------------------------------------------------------------------- */

static int put(unsigned i)
{
	const char key = (char)('a' + i);

	return i % 2 ? reddn_delete_submit(&rig.c, &key, 1, i)
		     : reddn_put_submit(&rig.c, &key, 1, "value", 5, i);
}

/* Of the oldest one: the bucket had a record; or @absent: another key has it */
static void answer_put(bool absent)
{
	const uint64_t loc = reddn_locator(64, 40);
	struct reddn_wire_put *answer =
		(struct reddn_wire_put *)(rig.end[0].slots + rig.end[0].served % rig.end[0].depth * RIG_SLOT);

	*answer = (struct reddn_wire_put){.expected = htobe64(loc),
		.was = absent ? REDDN_PUT_ABSENT : htole64(loc),
		.moves = htole64(1)};
	rig.end[0].receives--;
	rig_push((struct ibv_wc){.wr_id = (uintptr_t)rig.end[0].k,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm_data = htonl((uint32_t)rig.end[0].served++)});
}

/* Answer what is on the wire until so many puts pause, and do not go on by themselves. On a busy machine a
 * pause may be over in the poll that begins it. */
static void pause_puts(unsigned n)
{
	struct reddn_result res;

	for (unsigned paused = 0; paused < n;) {
		answer_put(true);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
		paused = 0;
		for (struct reddn_request *q = rig.c.paused.first; q; q = q->next, paused++)
			q->due = rig.c.pause_until = UINT64_MAX - 1;
	}
}

/* The server has executed a put or not, or has answered that it did nothing, or has not seen it: only those
 * of the first kind are never sent again. A put that is repeated begins with its first bucket. */
static void test_puts(void **state)
{
	struct reddn_result res[8];
	struct rig_end *e = rig.end;

	for (unsigned longest = 0; longest < 2; longest++) {
		start(1, 1, 6, RIG_PUTS);
		/* 0 and 1 pause, 2 is to ask the other bucket, 3 and 4 are outstanding */
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(put(i), 0);
			pause_puts(i + 1);
		}
		assert_null(rig.c.retry.first);
		assert_int_equal(put(2), 0);
		answer_put(true);
		assert_int_equal(reddn_poll(&rig.c, res, 8), 0);
		assert_int_equal(put(3), 0);
		assert_int_equal(put(4), 0);
		assert_int_equal(e->arrived - e->served, 3);
		/* what it is to ask next was sent before */
		rig_lose(-ECONNRESET);
		assert_int_equal(reddn_poll(&rig.c, res, 8), 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(res[i].cookie, 2 + i);
			assert_int_equal(res[i].status, -EINPROGRESS);
		}
		assert_null(rig.c.paused.first);
		assert_int_equal(put(5), 0);
		nothing_yet();
		rig_next_session(1, 1, 6, RIG_PUTS);
		/* the value is too long for it, but no delete is */
		if (longest)
			rig.c.connector.session.geo.room = 21;
		assert_int_equal(reddn_poll(&rig.c, res, 8), longest);
		if (longest) {
			assert_int_equal(res[0].cookie, 0);
			assert_int_equal(res[0].status, -EMSGSIZE);
		}
		assert_int_equal(e->arrived, 3 - longest - 0);
		rig_stop();
	}
}

/* What waits is sent with the padding of the store that it is sent to, and no longer than its requests. */
static void test_puts_padded(void **state)
{
	for (uint8_t header = 15; header <= 20; header++) {
		struct reddn_geometry *next;

		start(1, 1, 2, RIG_PUTS);
		assert_int_equal(put(0), 0);
		pause_puts(1);
		rig_lose(-ECONNRESET);
		nothing_yet();
		rig_next_session(1, 1, 2, RIG_PUTS);
		next = &rig.c.connector.session.geo;
		next->header = header;
		nothing_yet();
		assert_int_equal(rig.end[0].arrived, 1);
		assert_true(reddn_store_length_ok(header, rig.end[0].len[0]));
		rig_stop();
	}
}

/* A value in registered memory is sent from there, also with the next session, and to a store with another
 * padding. Who changes it meanwhile has put what no get takes for a value. */
static void test_puts_registered(void **state)
{
	_Alignas(struct reddn_record) uint8_t sent[RIG_WIRE];
	const struct reddn_record *r = (struct reddn_record *)sent;
	struct reddn_result res;
	uint8_t memory[64];

	for (unsigned changed = 0; changed < 2; changed++) {
		memset(memory, 'v', sizeof(memory));
		start(1, 1, 2, RIG_PUTS);
		assert_int_equal(reddn_register(&rig.c, memory, sizeof(memory)), 0);
		assert_int_equal(reddn_put_submit(&rig.c, "a", 1, memory + 3, 50, 0), 0);
		pause_puts(1);
		rig_lose(-ECONNRESET);
		nothing_yet();
		assert_int_equal(reddn_unregister(&rig.c, memory), -EBUSY);
		memory[20] += changed;
		rig_next_session(1, 1, 2, RIG_PUTS);
		rig.c.connector.session.geo.header = 20;
		nothing_yet();
		assert_int_equal(rig.end[0].arrived, 1);
		assert_true(reddn_store_length_ok(20, rig.end[0].len[0]));
		memcpy(sent, rig.end[0].wire[0] + 20, sizeof(sent) - 20);
		assert_memory_equal(r->bytes + 1, memory + 3, 50);
		assert_int_equal(r->sum == reddn_record_sum(r), !changed);
		answer_put(false);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.status, 0);
		assert_int_equal(reddn_unregister(&rig.c, memory), 0);
		rig_stop();
	}
}

/* The time is that of the submission, also where the put is sent later, and to another store */
static void test_puts_ttl(void **state)
{
	uint64_t before, after;

	start(1, 1, 2, RIG_PUTS);
	assert_int_equal(reddn_put_ttl_submit(&rig.c, "a", 1, "v", 1, 0, 0), -EINVAL);
	assert_int_equal(reddn_put_ttl_submit(&rig.c, "a", 1, "v", 1, 1ull << 56, 0), -EINVAL);
	before = clock_read_ns(CLOCK_REALTIME) / 1000000;
	assert_int_equal(reddn_put_ttl_submit(&rig.c, "a", 1, "v", 1, 5000, 0), 0);
	after = clock_read_ns(CLOCK_REALTIME) / 1000000;
	for (uint8_t header = RIG_HEADER;; header = 20) {
		uint64_t expiry = reddn_store_expiry(rig.end[0].wire[0] + header);

		assert_true(expiry >= before + 5000 && expiry <= after + 5000);
		if (header == 20)
			break;
		pause_puts(1);
		rig_lose(-ECONNRESET);
		nothing_yet();
		rig_next_session(1, 1, 2, RIG_PUTS);
		rig.c.connector.session.geo.header = 20;
		rig.c.connector.session.geo.offset_len = 7;
		nothing_yet();
	}
	rig_stop();
}

/* A version is that of one store. Another program, as that of a part's first session, does not matter. */
static void test_puts_if(void **state)
{
	struct reddn_result res[4];

	for (unsigned other = 0; other < 2; other++) {
		struct reddn_session *next = &rig.c.connector.session;

		start(1, 1, 4, RIG_PUTS);
		rig.c.session.info.shape = REDDN_PUT_IF;
		rig_lose(-ECONNRESET);
		assert_int_equal(reddn_put_if_submit(&rig.c, "a", 1, "value", 5, 7, 0), 0);
		assert_int_equal(reddn_put_if_submit(&rig.c, "b", 1, "value", 5, 0, 1), 0);
		nothing_yet();
		rig_next_session(1, 1, 4, RIG_PUTS);
		next->info.shape = REDDN_PUT_IF;
		next->program++;
		next->geo.seed += other;
		assert_int_equal(reddn_poll(&rig.c, res, 4), other);
		if (other) {
			assert_int_equal(res[0].cookie, 0);
			assert_int_equal(res[0].status, -ESTALE);
		}
		assert_int_equal(rig.end[0].arrived, 2 - other);
		/* nobody knows what became of those that were sent */
		rig_lose(-ECONNRESET);
		assert_int_equal(reddn_poll(&rig.c, res, 4), 2 - other);
		assert_int_equal(res[0].status, -EINPROGRESS);
		rig.c.connector.hosts.n = 2;
		assert_int_equal(reddn_put_if_submit(&rig.c, "a", 1, "value", 5, 7, 0), -EINVAL);
		assert_int_equal(reddn_delete_if_submit(&rig.c, "a", 1, 7, 0), -EINVAL);
		rig.c.connector.hosts.n = 1;
		rig_stop();
	}
}

/* Without another session, all of them end with the reason. */
static void test_puts_over(void **state)
{
	struct reddn_result res[4];

	rig_start(4, RIG_PUTS, 100000);
	assert_int_equal(put(0), 0);
	for (unsigned i = 0; i < 2; i++) {
		answer_put(true);
		assert_int_equal(reddn_poll(&rig.c, res, 4), 0);
	}
	assert_non_null(rig.c.paused.first);
	assert_int_equal(put(1), 0);
	rig_lose(-ECONNRESET);
	assert_int_equal(reddn_poll(&rig.c, res, 4), 2);
	assert_int_equal(res[0].status, -ECONNRESET);
	assert_int_equal(res[1].status, -ECONNRESET);
	assert_int_equal(put(2), -ECONNRESET);
	rig_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gets),
		cmocka_unit_test(test_values_stay),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_replaced_into),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_fewer_keys),
		cmocka_unit_test(test_shorter_keys),
		cmocka_unit_test(test_call_after_the_end),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_another_offload),
		cmocka_unit_test(test_another_offload_of_two),
		cmocka_unit_test(test_many_losses),
		cmocka_unit_test(test_puts),
		cmocka_unit_test(test_puts_padded),
		cmocka_unit_test(test_puts_registered),
		cmocka_unit_test(test_puts_ttl),
		cmocka_unit_test(test_puts_if),
		cmocka_unit_test(test_puts_over),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_lost_by_posting),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_credit),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_standby),
		cmocka_unit_test(test_calls_of_two),
		cmocka_unit_test(test_replaced_of_two),
		cmocka_unit_test(test_no_successor),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_all_old),
		cmocka_unit_test(test_old_alone),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	rig_extended = true;
	return failed + cmocka_run_group_tests_name("by ibv_cq_ex", tests, NULL, NULL);
}
