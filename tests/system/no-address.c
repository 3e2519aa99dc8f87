/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-address.c - preloaded into a daemon: while the file $NO_ADDRESS exists 127.1.0.2 is no address of the
 * machine, and the connection manager does not bind it (Linux drivers/infiniband/core/cma.c, rdma_bind_addr).
 * Listeners that are bound to it stay.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = sizeof(struct rdma_ucm_cmd_hdr) + sizeof(struct rdma_ucm_bind) };

static bool binds(const void *command, size_t size)
{
	const struct in_addr address = {.s_addr = htonl(0x7f010002)};
	struct rdma_ucm_cmd_hdr header;

	if (size < sizeof(header) || size > COMMAND_MAX)
		return false;
	memcpy(&header, command, sizeof(header));
	return header.cmd == RDMA_USER_CM_CMD_BIND && memmem(command, size, &address, sizeof(address));
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	ssize_t (*real)(int, const void *, size_t) =
		(ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	const char *file = getenv("NO_ADDRESS");

	if (file && binds(bytes, size) && access(file, F_OK) == 0) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	return real(fd, bytes, size);
}
