/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys.h - system calls made directly: those that the driver interposes, and those on whole pages of the
 * application, which an address sanitizer in it would report. And the functions
 * of the C library behind those of the driver.
 */
#ifndef SOFTCX_DRIVER_SYS_H
#define SOFTCX_DRIVER_SYS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The driver's own descriptors begin here, if there is room: applications may rely on getting the lowest free
 * ones */
enum { SYS_OUT_OF_THE_WAY = 512 };

static inline int sys_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static inline int sys_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

/** @fd, or the descriptor that it is from now on, out of the application's way if there is room there. */
static inline int sys_moved_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, SYS_OUT_OF_THE_WAY);

	if (high < 0)
		return fd;
	sys_close(fd);
	return high;
}

static inline ssize_t sys_read(int fd, void *buf, size_t len)
{
	return syscall(SYS_read, fd, buf, len);
}

static inline ssize_t sys_pread(int fd, void *buf, size_t len, off_t offset)
{
	return syscall(SYS_pread64, fd, buf, len, offset);
}

static inline ssize_t sys_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	return syscall(SYS_pwrite64, fd, buf, len, offset);
}

static inline int sys_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static inline int sys_stat(const char *path, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline void *sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

/** A number that no other socket has had; 0: it is none. */
static inline uint64_t sys_socket_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

#define EXPORT __attribute__((visibility("default")))

/* Defines next(), the definition of @name behind ours. Two threads may both look it up: the same result. */
#define NEXT(name)                                                                                           \
	static __typeof__(&name) next;                                                                       \
	if (!next)                                                                                           \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#endif
