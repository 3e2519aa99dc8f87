/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/test-listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static void cm_command(int fd, uint32_t number, const void *body, uint16_t len, uint16_t out)
{
	uint8_t bytes[512];
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = number, .in = len, .out = out};

	memcpy(bytes, &hdr, sizeof(hdr));
	memcpy(bytes + sizeof(hdr), body, len);
	assert_int_equal(write(fd, bytes, sizeof(hdr) + len), sizeof(hdr) + len);
}

int listen_by_hand(uint16_t port)
{
	struct rdma_ucm_create_id_resp made;
	struct rdma_ucm_create_id create = {.response = (uintptr_t)&made, .ps = RDMA_PS_TCP};
	struct rdma_ucm_bind bind = {.addr_size = sizeof(struct sockaddr_in)};
	struct rdma_ucm_listen listen = {.backlog = 1};
	const struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	cm_command(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(made));
	bind.id = listen.id = made.id;
	memcpy(&bind.addr, &sin, sizeof(sin));
	cm_command(fd, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
	cm_command(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0);
	return fd;
}
