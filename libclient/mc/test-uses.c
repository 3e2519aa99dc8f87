/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { PER_S = 1000 };
static const uint64_t MS = 1000000;

/* A memcached that takes what it is sent */
static struct {
	int fd;
	struct mc_uses uses;
	char got[8192];
} t;

/* Connects it anew */
static void connect_it(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	t.uses.fd = fds[0];
	t.fd = fds[1];
}

static int setup(void **state)
{
	mc_uses_init(&t.uses, PER_S);
	connect_it();
	return 0;
}

static int teardown(void **state)
{
	close(t.uses.fd);
	close(t.fd);
	return 0;
}

/* What was sent since the last call */
static const char *sent(void)
{
	ssize_t n;

	n = recv(t.fd, t.got, sizeof(t.got) - 1, MSG_DONTWAIT);
	t.got[n < 0 ? 0 : n] = '\0';
	return t.got;
}

static bool report(const char *key, uint64_t now_ns)
{
	bool taken = mc_uses_report(&t.uses, key, strlen(key), now_ns);

	mc_uses_send_due(&t.uses, now_ns);
	return taken;
}

static void gathers(void **state)
{
	assert_true(report("a", 1000 * MS));
	assert_string_equal(sent(), "mg a\r\n");
	assert_true(report("b", 1001 * MS));
	assert_true(report("c", 1002 * MS));
	assert_false(report("b", 1003 * MS)); /* waits already */
	mc_uses_send_due(&t.uses, 1099 * MS);
	assert_string_equal(sent(), "");
	mc_uses_send_due(&t.uses, 1100 * MS);
	assert_string_equal(sent(), "mg b\r\nmg c\r\n");
	assert_true(report("b", 1101 * MS));
	assert_string_equal(sent(), "");
	mc_uses_send_last(&t.uses);
	assert_string_equal(sent(), "mg b\r\n");
}

static void limited(void **state)
{
	unsigned taken = 0;
	char key[16];

	for (unsigned i = 0; i < 10 * PER_S; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		taken += report(key, 1000 * MS + i * MS / 10);
		sent();
	}
	assert_int_equal(taken, PER_S);
	assert_false(report("two words", 5000 * MS));
	assert_false(report("", 5000 * MS));
	assert_false(report("a\r\nflush_all", 5000 * MS));
}

static void full(void **state)
{
	char key[251];
	size_t bytes = 0;

	memset(key, 'k', 250);
	key[250] = '\0';
	for (unsigned i = 0; i < 30; i++) {
		snprintf(key, 3, "%02u", i);
		key[2] = 'k';
		assert_true(report(key, (1000 + i) * MS));
		bytes += strlen(sent());
	}
	/* the first one, and 16 when there was no room for the next */
	assert_int_equal(bytes, 17 * 255);
}

static void away(void **state)
{
	int fd = t.uses.fd;

	report("a", 1000 * MS);
	assert_string_equal(sent(), "mg a\r\n");
	/* it has closed the connection: nothing is taken for a second */
	close(t.fd);
	report("b", 2000 * MS);
	assert_int_equal(t.uses.fd, -1);
	assert_int_equal(t.uses.sent, 1);
	assert_false(report("c", 2999 * MS));
	close(fd);
	/* there is none; nor are keys kept for one */
	assert_true(report("d", 3000 * MS));
	connect_it();
	assert_true(report("e", 4000 * MS));
	assert_string_equal(sent(), "mg e\r\n");
}

/* It does not read: what it has no room for waits, and a get does not */
static void has_no_room(void **state)
{
	char block[4096] = {0};

	while (send(t.uses.fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	assert_true(report("a", 1000 * MS));
	assert_int_equal(t.uses.sent, 0);
	while (recv(t.fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	mc_uses_send_due(&t.uses, 2000 * MS);
	assert_string_equal(sent(), "mg a\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gathers, setup, teardown),
		cmocka_unit_test_setup_teardown(limited, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test_setup_teardown(away, setup, teardown),
		cmocka_unit_test_setup_teardown(has_no_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
