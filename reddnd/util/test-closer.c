/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/closer.h"

#include "util/cleanup.h"
#include "util/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { LINGER_S = 600, USER = 100000 };

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

/* close(2) of the first waits for whatever a test likes, as that of a file of FUSE; the second were closed */
static atomic_bool is_held[1024], is_closed[1024];

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
	int rc;

	while (fd >= 0 && is_held[fd])
		usleep(1000);
	rc = __real_close(fd);
	if (fd >= 0)
		is_closed[fd] = true;
	return rc;
}

static int held(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_in_range(fd, 0, 1023);
	is_held[fd] = true;
	return fd;
}

/* Returns @fd, which is about to be closed */
static int marked(int fd)
{
	assert_in_range(fd, 0, 1023);
	is_closed[fd] = false;
	return fd;
}

/* Does not ask the kernel: a call that uses the number of a descriptor, fcntl(2) too, keeps its file for a
 * moment, and if that ends last, this thread lingers in place of the one in close(2) */
static void until_closed(int fd)
{
	while (!is_closed[fd])
		usleep(1000);
}

/* Each of these would take ten minutes */
static void does_not_linger(void **state)
{
	enum { N = 100 };
	int peer[N], fd[N];

	for (unsigned i = 0; i < N; i++)
		fd[i] = lingering(&peer[i]);
	for (unsigned i = 0; i < N; i++)
		closer_close(USER, marked(fd[i]));
	for (unsigned i = 0; i < N; i++)
		until_closed(fd[i]);
	for (unsigned i = 0; i < N; i++)
		close(peer[i]);
	closer_close(USER, -1);
	while (closer_is_full(USER, CLOSER_TAKEN))
		usleep(1000);
}

static void closes(uid_t user)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	closer_close(user, pipes[1]);
	assert_int_equal(read(pipes[0], &(char){0}, 1), 0);
	closer_hang_up(user, marked(pipes[0]));
	until_closed(pipes[0]);
}

static void keeps_users_apart(void **state)
{
	enum { USERS = CLOSER_OTHERS_MAX / CLOSER_USER_MAX };
	int fd[USERS][CLOSER_USER_MAX];

	for (unsigned user = 0; user < USERS; user++) {
		assert_false(closer_is_full(USER + user, CLOSER_TAKEN));
		for (unsigned i = 0; i < CLOSER_USER_MAX; i++) {
			fd[user][i] = held();
			closer_close(USER + user, fd[user][i]);
		}
		assert_true(closer_is_full(USER + user, CLOSER_TAKEN));
		assert_false(closer_is_full(USER + user, CLOSER_PEER));
		closes(USER + USERS);
		assert_int_equal(closer_is_full(USER + USERS, CLOSER_TAKEN), user == USERS - 1);
		assert_false(closer_is_full(0, CLOSER_TAKEN));
		assert_false(closer_is_full(geteuid(), CLOSER_TAKEN));
		closes(0);
	}
	for (unsigned user = 0; user < USERS; user++)
		for (unsigned i = 0; i < CLOSER_USER_MAX; i++)
			is_held[fd[user][i]] = false;
	for (unsigned user = 0; user <= USERS; user++)
		while (closer_is_full(USER + user, CLOSER_TAKEN))
			usleep(1000);
}

/* What it has sent comes nevertheless */
static void hangs_up(void **state)
{
	int pair[2], peer, sent;
	char got = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	closer_hang_up(USER, marked(pair[0]));
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
		closer_hang_up(USER, marked(pair[0]));
		assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), -1);
		assert_int_equal(errno, EPIPE);
		until_closed(pair[0]);
		close(peer);
		close(pair[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_linger),
		cmocka_unit_test(keeps_users_apart),
		cmocka_unit_test(hangs_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
