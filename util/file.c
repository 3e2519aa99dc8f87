/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/file.h"

#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A part of a path that cannot be opened, or is no directory where one is needed: a link? */
static int refused(int dir, const char *part)
{
	int error = errno;
	struct stat st;

	return fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? -ELOOP : -error;
}

/* openat2(2) could do this, but not in a service with RestrictSUIDSGID= */
int file_open_no_links(const char *path, int flags)
{
	CLEANUP(cleanup_free) char *copy = strdup(path);
	CLEANUP(cleanup_close) int dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *rest, *part = copy ? strtok_r(copy, "/", &rest) : NULL, *next;
	int fd;

	if (!copy)
		return -ENOMEM;
	if (dir < 0)
		return -errno;
	if (!part)
		return -EINVAL;
	while ((next = strtok_r(NULL, "/", &rest))) {
		fd = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return refused(dir, part);
		close(dir);
		dir = fd;
		part = next;
	}
	fd = openat(dir, part, flags | ALWAYS | O_NOFOLLOW);
	return fd < 0 ? refused(dir, part) : regular(fd);
}

int file_reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return file_open(path, flags);
}

void file_fill_standard(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			abort();
}

void file_unblock_stderr(void)
{
	CLEANUP(cleanup_close) int fd = -1;
	struct stat st;

	/* Of a regular file the offset has to stay shared */
	if (fstat(STDERR_FILENO, &st) < 0 || S_ISREG(st.st_mode))
		return;
	fd = open("/proc/self/fd/2", O_WRONLY | ALWAYS);
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
	else if (!S_ISCHR(st.st_mode))
		fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
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

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int file_map_sealed(int fd, size_t size, void **mapping)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || (size_t)st.st_size != size ||
		(fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return -EBADMSG;
	*mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	return *mapping == MAP_FAILED ? -errno : 0;
}

int file_new_sealed(const char *name, size_t size, void **mapping)
{
	CLEANUP(cleanup_close) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	r = file_map_sealed(fd, size, mapping);
	return r < 0 ? r : steal_fd(&fd);
}

/* @off: NULL for where the descriptor is */
static long read_on(int fd, const uint64_t *off, void *bytes, size_t size)
{
	size_t len = 0;

	while (len < size) {
		uint8_t *to = (uint8_t *)bytes + len;
		ssize_t n = off ? pread(fd, to, size - len, (off_t)(*off + len)) : read(fd, to, size - len);

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

long file_read(int fd, void *bytes, size_t size)
{
	return read_on(fd, NULL, bytes, size);
}

long file_read_at(int fd, uint64_t off, void *bytes, size_t size)
{
	return read_on(fd, &off, bytes, size);
}
