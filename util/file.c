/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/file.h"

#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* O_NONBLOCK: a FIFO is opened at once, and then seen to be one */
enum { ALWAYS = O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int regular(int opened)
{
	CLEANUP(cleanup_close) int fd = opened;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

int file_open(const char *path, int flags)
{
	return regular(open(path, flags | ALWAYS));
}

int file_open_no_links(const char *path, int flags)
{
	const struct open_how how = {.flags = (uint64_t)(flags | ALWAYS), .resolve = RESOLVE_NO_SYMLINKS};

	return regular((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

const char *file_error(int error)
{
	switch (error) {
	case -EINVAL:
		return "it is no regular file";
	case -ELOOP:
		return "a symbolic link is in its path";
	default:
		return strerror(-error);
	}
}

long file_read(int fd, void *bytes, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, (uint8_t *)bytes + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (long)len;
}
