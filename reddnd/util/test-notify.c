/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/notify.h"

#include "reddnd/util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

/* A service manager with an abstract address */
static int manager(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	char name[40];

	snprintf(name, sizeof(name), "@test-notify-%d", (int)getpid());
	memcpy(sun.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

/* Returns the descriptor that came with the next message, @text; -1: none */
static int take(int sock, const char *text)
{
	char bytes[100], space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
	struct cmsghdr *c;
	int fd = -1;

	assert_int_equal(recvmsg(sock, &msg, 0), strlen(text));
	assert_memory_equal(bytes, text, strlen(text));
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void test_messages(void **state)
{
	int sock = manager(), fd;
	struct stat a, b;

	notify_status("STATUS=%d sessions", 3);
	assert_int_equal(take(sock, "STATUS=3 sessions"), -1);
	assert_int_equal(notify_send("FDSTORE=1", STDERR_FILENO), 0);
	fd = take(sock, "FDSTORE=1");
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(STDERR_FILENO, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	close(sock);
}

/* With sd_notify() this test would not end */
static void test_nobody_reads(void **state)
{
	int sock = manager(), n = 0;
	char byte;

	for (int i = 0; i < 5000; i++)
		notify_status("STATUS=%d", i);
	assert_int_equal(notify_send("FDSTOREREMOVE=1", -1), -EAGAIN);
	while (recv(sock, &byte, 1, 0) == 1)
		n++;
	assert_true(n > 0 && n < 5000);
	assert_int_equal(notify_send("FDSTOREREMOVE=1", -1), 0);
	close(sock);
}

static void test_no_manager(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("FDSTOREREMOVE=1", -1), 0);
	setenv("NOTIFY_SOCKET", "@nobody-has-this-address", 1);
	assert_int_equal(notify_send("FDSTOREREMOVE=1", -1), -ECONNREFUSED);
	notify_status("READY=1");
}

/* One line, and not one for each descriptor */
static void test_refused(void **state)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/test-notify-XXXXXX", *words = NULL;
	int sock = socket(AF_UNIX, SOCK_DGRAM, 0);
	uid_t user = geteuid();
	size_t size;
	FILE *log = open_memstream(&words, &size);

	assert_non_null(mkdtemp(dir));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/s", dir);
	assert_int_equal(bind(sock, (struct sockaddr *)&sun, sizeof(sun)), 0);
	setenv("NOTIFY_SOCKET", sun.sun_path, 1);
	/* root may send through any directory */
	assert_int_equal(chmod(dir, 0), 0);
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	log_tee(log);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(notify_send("FDSTORE=1", STDERR_FILENO), -EACCES);
	log_tee(NULL);
	if (user == 0)
		assert_int_equal(seteuid(0), 0);
	fclose(log);
	assert_non_null(strstr(words, "may not send to the service manager at /tmp/test-notify-"));
	assert_ptr_equal(strchr(words, '\n'), words + size - 1);
	free(words);
	chmod(dir, 0700);
	unlink(sun.sun_path);
	rmdir(dir);
	close(sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_nobody_reads),
		cmocka_unit_test(test_no_manager),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
