/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/closer.h"

#include "util/cleanup.h"
#include "util/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINGER_S = 600 };

/* A TCP connection that close(2) waits for until the other end, @peer, has read or is gone */
static int lingering(int *peer)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct linger linger = {1, LINGER_S};
	static const char bytes[65536];
	socklen_t len = sizeof(addr);
	CLEANUP(cleanup_close) int l = socket(AF_INET, SOCK_STREAM, 0);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(l, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(s, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	*peer = accept(l, NULL, NULL);
	assert_true(*peer >= 0);
	for (unsigned quiet = 0; quiet < 2;) {
		if (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			continue;
		quiet++;
		usleep(2000);
	}
	assert_int_equal(setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return s;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void until_closed(int fd)
{
	while (is_open(fd))
		usleep(1000);
}

static void until_done(void)
{
	while (closer_is_full())
		usleep(1000);
}

static void closes_others_while_some_linger(void **state)
{
	enum { N = 3 };
	int peer[N], pipes[2];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		closer_close(lingering(&peer[i]));
	assert_int_equal(pipe(pipes), 0);
	closer_close(pipes[1]);
	assert_int_equal(read(pipes[0], &(char){0}, 1), 0);
	closer_close(pipes[0]);
	closer_close(-1);
	for (unsigned i = 0; i < N; i++)
		close(peer[i]);
}

static void is_full_while_too_many_linger(void **state)
{
	int peer[CLOSER_MAX];

	(void)state;
	until_done();
	for (unsigned i = 0; i < CLOSER_MAX; i++)
		closer_close(lingering(&peer[i]));
	assert_true(closer_is_full());
	for (unsigned i = 0; i < CLOSER_MAX; i++)
		close(peer[i]);
	until_done();
}

/* What it has sent comes nevertheless */
static void hangs_up(void **state)
{
	int pair[2], peer, sent;
	char got = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	closer_hang_up(pair[0]);
	assert_int_equal(recv(pair[1], &got, 1, 0), 1);
	assert_int_equal(recv(pair[1], &got, 1, 0), 0);
	until_closed(pair[0]);
	close(pair[1]);

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		sent = lingering(&peer);
		/* MSG_PEEK does not see data out of band */
		assert_int_equal(rights_send(pair[1], "x", 1, i ? MSG_OOB : 0, sent), 1);
		close(sent); /* not the last one */
		closer_hang_up(pair[0]);
		assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), -1);
		assert_int_equal(errno, EPIPE);
		close(peer);
		until_closed(pair[0]);
		close(pair[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_others_while_some_linger),
		cmocka_unit_test(is_full_while_too_many_linger),
		cmocka_unit_test(hangs_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
