/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/test-nic.h"

#include "softcx/proto/proto.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

struct ibv_context *test_open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

int test_nic_connect(const char *name, int type)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_SOCKET_PREFIX "%s", getenv("SOFTCX_DIR"),
		name);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

long test_nic_count(const char *key)
{
	char text[8192], quoted[32], *found;
	int fd = test_nic_connect("control", SOCK_SEQPACKET);
	ssize_t n;

	assert_int_equal(send(fd, "status", 6, 0), 6);
	n = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	close(fd);
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	found = strstr(text, quoted);
	assert_non_null(found);
	return strtol(found + strlen(quoted), NULL, 10);
}
