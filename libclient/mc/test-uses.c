/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/uses.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { PER_S = 1000, FILL = 8 };
static const uint64_t MS = 1000000;

/* A memcached that takes what it is sent */
static struct {
	char dir[32];
	struct sockaddr_un at;
	int listener, fd;
	struct mc_uses uses;
	char got[8192];
} t;

/* A host with two addresses, of which the first one refuses */
static struct {
	bool used;
	struct sockaddr_in at[2];
	struct addrinfo list[2];
} two;

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
void __real_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *);

int __wrap_getaddrinfo(
	const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	if (!two.used)
		return __real_getaddrinfo(host, service, hints, list);
	*list = two.list;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	if (list != two.list)
		__real_freeaddrinfo(list);
}

static int setup(void **state)
{
	(void)state;
	strcpy(t.dir, "/tmp/test-uses-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	t.at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(t.at.sun_path, sizeof(t.at.sun_path), "%s/socket", t.dir);
	t.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(t.listener, (struct sockaddr *)&t.at, sizeof(t.at)), 0);
	assert_int_equal(listen(t.listener, 4), 0);
	t.fd = -1;
	mc_uses_init(&t.uses, t.at.sun_path, PER_S);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mc_uses_deinit(&t.uses);
	close(t.fd);
	close(t.listener);
	unlink(t.at.sun_path);
	rmdir(t.dir);
	return 0;
}

/* What was sent since the last call */
static const char *sent(void)
{
	ssize_t n;

	if (t.fd < 0)
		t.fd = accept4(t.listener, NULL, NULL, SOCK_NONBLOCK);
	n = t.fd < 0 ? 0 : recv(t.fd, t.got, sizeof(t.got) - 1, MSG_DONTWAIT);
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
	(void)state;
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
	mc_uses_deinit(&t.uses);
	assert_string_equal(sent(), "mg b\r\n");
}

static void limited(void **state)
{
	unsigned taken = 0;
	char key[16];

	(void)state;
	for (unsigned i = 0; i < 10 * PER_S; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		taken += report(key, 1000 * MS + i * MS / 10);
		sent();
	}
	assert_int_equal(taken, PER_S);
	assert_false(report("two words", 5000 * MS));
	assert_false(report("", 5000 * MS));
}

static void full(void **state)
{
	char key[251];
	size_t bytes = 0;

	(void)state;
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
	(void)state;
	report("a", 1000 * MS);
	assert_string_equal(sent(), "mg a\r\n");
	/* it ends this connection: the next one has the reports */
	close(t.fd);
	t.fd = -1;
	report("b", 2000 * MS);
	assert_string_equal(sent(), "mg b\r\n");
	/* it is gone: nothing is tried for a second */
	close(t.fd);
	close(t.listener);
	t.fd = t.listener = -1;
	report("c", 3000 * MS);
	assert_false(report("d", 3999 * MS));
	assert_true(report("d", 4000 * MS));
}

/* A get that waited for a connection would be late */
static void waits_for_nothing(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), waiting[FILL];
	struct pollfd p[FILL + 2] = {{.fd = listener, .events = POLLIN}};
	socklen_t len = sizeof(at), info_len = sizeof(struct tcp_info);
	struct tcp_info info;
	struct mc_uses u;
	char name[32];

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(at.sin_port));
	/* until these are accepted it takes no more */
	for (unsigned i = 0; i < FILL; i++) {
		waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(waiting[i], (struct sockaddr *)&at, len);
	}
	mc_uses_init(&u, name, PER_S);
	assert_true(mc_uses_report(&u, "a", 1, 1000 * MS));
	mc_uses_send_due(&u, 1000 * MS);
	assert_true(u.open);
	assert_int_equal(getsockopt(u.talk.fd, IPPROTO_TCP, TCP_INFO, &info, &info_len), 0);
	assert_int_equal(info.tcpi_state, TCP_SYN_SENT);
	*t.got = '\0';
	for (uint64_t now_ns = 2000 * MS, n = 1; !*t.got; now_ns += 1000 * MS) {
		mc_uses_send_due(&u, now_ns);
		poll(p, n, 10);
		for (uint64_t i = 1; i < n; i++)
			if (p[i].revents)
				assert_true(recv(p[i].fd, t.got, sizeof(t.got) - 1, 0) > 0);
		if (p[0].revents && n < FILL + 2)
			p[n++] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
	}
	assert_memory_equal(t.got, "mg a\r\n", 7);
	mc_uses_deinit(&u);
	for (unsigned i = 0; i < FILL; i++)
		close(waiting[i]);
	close(listener);
}

static int bound(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
	return fd;
}

static void tries_each_address(void **state)
{
	int refuses = bound(&two.at[0]), listener = bound(&two.at[1]), fd = -1;
	struct pollfd p = {.fd = listener, .events = POLLIN};
	struct mc_uses u;
	ssize_t n;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		two.list[i] = (struct addrinfo){.ai_family = AF_INET,
			.ai_addr = (struct sockaddr *)&two.at[i],
			.ai_addrlen = sizeof(two.at[i]),
			.ai_next = i ? NULL : &two.list[1]};
	two.used = true;
	assert_int_equal(listen(listener, 4), 0);
	mc_uses_init(&u, "two:1", PER_S);
	/* also when the connection has ended it begins with the first one */
	for (unsigned turn = 1; turn <= 2; turn++) {
		assert_true(mc_uses_report(&u, "a", 1, turn * 2000 * MS));
		for (uint64_t i = 0; u.sent < turn; i++) {
			/* it gave up */
			assert_true(i == 0 || u.len);
			mc_uses_send_due(&u, turn * 2000 * MS + i * 100 * MS);
			poll(&p, 1, 10);
		}
		fd = accept(listener, NULL, NULL);
		n = recv(fd, t.got, sizeof(t.got), 0);
		assert_int_equal(n, 6);
		assert_memory_equal(t.got, "mg a\r\n", 6);
		close(fd);
	}
	/* none takes it: what was not sent does not count */
	close(listener);
	assert_true(mc_uses_report(&u, "a", 1, 8000 * MS));
	for (uint64_t i = 0; u.len; i++)
		mc_uses_send_due(&u, 8000 * MS + i * 100 * MS);
	assert_int_equal(u.sent, 2);
	assert_false(mc_uses_report(&u, "a", 1, 8000 * MS));
	mc_uses_deinit(&u);
	close(refuses);
	two.used = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gathers, setup, teardown),
		cmocka_unit_test_setup_teardown(limited, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test_setup_teardown(away, setup, teardown),
		cmocka_unit_test(waits_for_nothing),
		cmocka_unit_test(tries_each_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
