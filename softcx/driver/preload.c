/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preload.c - the library's face: the C library's functions through which rdma-core reaches devices and
 * sysfs. Each looks whether it is about a device file or about /sys/class/infiniband*; everything else goes
 * on unchanged to the definition behind ours.
 */
#include "softcx/driver/internal.h"
#include "util/array.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int fail(int rc)
{
	errno = -rc;
	return -1;
}

/* ---- open ------------------------------------------------------------------------------- */

/* The fortified headers call these in place of open() and openat() without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	NEXT(openat);
	const char *name = dev_name(path);
	char buf[SYSFS_PATH_MAX];
	int fd;

	if (!name)
		return sysfs_opened(path, next(dirfd, sysfs_path(path, buf), flags, mode));
	fd = dev_open(name, flags);
	return fd < 0 ? fail(fd) : fd;
}

#define MODE_OF(flags, mode)                                                                                 \
	mode_t mode = 0;                                                                                     \
	if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                           \
		va_list ap;                                                                                  \
		va_start(ap, flags);                                                                         \
		mode = va_arg(ap, mode_t);                                                                   \
		va_end(ap);                                                                                  \
	}

EXPORT int open(const char *path, int flags, ...)
{
	MODE_OF(flags, mode);
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	MODE_OF(flags, mode);
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	MODE_OF(flags, mode);
	return open_at(dirfd, path, flags, mode);
}

EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
	MODE_OF(flags, mode);
	return open_at(dirfd, path, flags, mode);
}

EXPORT int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

EXPORT int __open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
	return open_at(dirfd, path, flags, 0);
}

EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
	return open_at(dirfd, path, flags, 0);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	NEXT(fopen);
	char buf[SYSFS_PATH_MAX];
	FILE *f = next(sysfs_path(path, buf), mode);

	if (f)
		sysfs_opened(path, fileno(f));
	return f;
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	NEXT(fopen64);
	char buf[SYSFS_PATH_MAX];
	FILE *f = next(sysfs_path(path, buf), mode);

	if (f)
		sysfs_opened(path, fileno(f));
	return f;
}

EXPORT DIR *opendir(const char *path)
{
	NEXT(opendir);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf));
}

/* ---- stat ------------------------------------------------------------------------------- */

/* stat() and fstat() of programs built against glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat on 64-bit machines");

static void say_device(void *buf, dev_t rdev)
{
	struct stat *st = buf;

	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = rdev;
	st->st_size = 0;
}

/** stat of a device file: 1 when @path is not one. */
static int stat_device(const char *path, void *buf)
{
	const char *name = dev_name(path);
	dev_t rdev;
	int rc;

	if (!name)
		return 1;
	rc = dev_stat(name, &rdev);
	if (rc < 0)
		return fail(rc);
	memset(buf, 0, sizeof(struct stat));
	((struct stat *)buf)->st_nlink = 1;
	say_device(buf, rdev);
	return 0;
}

static int stat_fd(int rc, int fd, void *buf)
{
	dev_t rdev;

	if (rc == 0 && S_ISSOCK(((struct stat *)buf)->st_mode) && dev_is(fd, &rdev))
		say_device(buf, rdev);
	return rc;
}

#define STAT(call)                                                                                           \
	char buf[SYSFS_PATH_MAX];                                                                            \
	int rc = stat_device(path, st);                                                                      \
	if (rc <= 0)                                                                                         \
		return rc;                                                                                   \
	path = sysfs_path(path, buf);                                                                        \
	return call

EXPORT int stat(const char *path, struct stat *st)
{
	NEXT(stat);
	STAT(next(path, st));
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
	NEXT(stat64);
	STAT(next(path, st));
}

EXPORT int lstat(const char *path, struct stat *st)
{
	NEXT(lstat);
	STAT(next(path, st));
}

EXPORT int lstat64(const char *path, struct stat64 *st)
{
	NEXT(lstat64);
	STAT(next(path, st));
}

EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	NEXT(__xstat);
	STAT(next(version, path, st));
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	NEXT(__xstat64);
	STAT(next(version, path, st));
}

EXPORT int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	NEXT(fstatat);
	STAT(stat_fd(next(dirfd, path, st, flags), *path ? -1 : dirfd, st));
}

EXPORT int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
	NEXT(fstatat64);
	STAT(stat_fd(next(dirfd, path, st, flags), *path ? -1 : dirfd, st));
}

EXPORT int fstat(int fd, struct stat *st)
{
	NEXT(fstat);
	return stat_fd(next(fd, st), fd, st);
}

EXPORT int fstat64(int fd, struct stat64 *st)
{
	NEXT(fstat64);
	return stat_fd(next(fd, st), fd, st);
}

EXPORT int __fxstat(int version, int fd, struct stat *st)
{
	NEXT(__fxstat);
	return stat_fd(next(version, fd, st), fd, st);
}

EXPORT int __fxstat64(int version, int fd, struct stat64 *st)
{
	NEXT(__fxstat64);
	return stat_fd(next(version, fd, st), fd, st);
}

EXPORT int statx(int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict stx)
{
	NEXT(statx);
	char buf[SYSFS_PATH_MAX];
	dev_t rdev;
	int rc = -ENOENT;

	if (dev_name(path)) {
		rc = dev_stat(dev_name(path), &rdev);
		if (rc < 0)
			return fail(rc);
		memset(stx, 0, sizeof(*stx));
		stx->stx_nlink = 1;
	} else {
		rc = next(dirfd, sysfs_path(path, buf), flags, mask, stx);
		if (rc < 0 || *path || !S_ISSOCK(stx->stx_mode) || !dev_is(dirfd, &rdev))
			return rc;
	}
	stx->stx_mask = STATX_BASIC_STATS;
	stx->stx_mode = S_IFCHR | 0666;
	stx->stx_rdev_major = major(rdev);
	stx->stx_rdev_minor = minor(rdev);
	return 0;
}

EXPORT int access(const char *path, int mode)
{
	NEXT(access);
	char buf[SYSFS_PATH_MAX];
	dev_t rdev;
	int rc;

	if (!dev_name(path))
		return next(sysfs_path(path, buf), mode);
	rc = dev_stat(dev_name(path), &rdev);
	return rc < 0 ? fail(rc) : 0;
}

EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
	NEXT(faccessat);
	char buf[SYSFS_PATH_MAX];

	return dev_name(path) ? access(path, mode) : next(dirfd, sysfs_path(path, buf), mode, flags);
}

/* ---- the device's system calls ---------------------------------------------------------- */

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	NEXT(write);
	uint64_t file;
	ssize_t n;

	/* Every command begins with a header of 8 bytes. */
	file = len < 8 ? 0 : dev_file(fd);
	if (!file)
		return next(fd, buf, len);
	n = dev_write(fd, file, buf, len);
	return n < 0 ? fail((int)n) : n;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	NEXT(ioctl);
	uint64_t file;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	file = request == RDMA_VERBS_IOCTL ? dev_file(fd) : 0;
	if (!file)
		return next(fd, request, arg);
	rc = dev_ioctl(fd, file, arg);
	return rc < 0 ? fail(rc) : rc;
}

static void *map_shared(__typeof__(&mmap) next, void *addr, size_t len, int prot, int flags)
{
	int fd = anon_new(len);
	void *result;

	if (fd < 0)
		return next(addr, len, prot, flags, -1, 0);
	result = next(addr, len, prot, flags & ~MAP_ANONYMOUS, fd, 0);
	anon_mapped(fd, result, len);
	return result;
}

static void *map(__typeof__(&mmap) next, void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	uint64_t file, map_offset;
	int map_fd, rc;
	void *result;

	if ((flags & (MAP_TYPE | MAP_ANONYMOUS | MAP_HUGETLB)) == (MAP_SHARED | MAP_ANONYMOUS) && len)
		return map_shared(next, addr, len, prot, flags);
	file = fd < 0 || flags & MAP_ANONYMOUS ? 0 : dev_file(fd);
	if (!file)
		return next(addr, len, prot, flags, fd, offset);
	rc = dev_mmap(fd, file, (uint64_t)offset, len, &map_fd, &map_offset);
	if (rc < 0) {
		errno = -rc;
		return MAP_FAILED;
	}
	result = next(addr, len, prot, flags, map_fd, (off_t)map_offset);
	if (result != MAP_FAILED)
		dev_mapped(fd, file, (uint64_t)offset, len, result, map_fd);
	close(map_fd);
	return result;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	NEXT(mmap);
	return map(next, addr, len, prot, flags, fd, offset);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
	NEXT(mmap64);
	return map(next, addr, len, prot, flags, fd, offset);
}

EXPORT int munmap(void *addr, size_t len)
{
	NEXT(munmap);
	int rc;

	dev_unmap(addr, len);
	rc = next(addr, len);
	if (rc == 0)
		anon_unmapped(addr, len);
	return rc;
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	NEXT(madvise);
	int rc = next(addr, len, advice);

	if (rc == 0 && advice == MADV_DONTNEED)
		mem_discarded(addr, len);
	return rc;
}

/* ---- syscall ---------------------------------------------------------------------------- */

static long (*kernel)(long number, ...); /* the C library's syscall() */

static void *mmap_by_number(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)kernel(SYS_mmap, addr, len, prot, flags, fd, offset);
}

/**
 * Programs that want to know of every mapping overwrite the code of mmap(), munmap() and madvise(), whichever
 * they find first, and then call the kernel by number: UCX (ucm/bistro), Open MPI (memory/patcher).
 */
EXPORT long syscall(long number, ...)
{
	long a[6], rc;
	va_list ap;

	if (!kernel)
		kernel = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(ap, number);
	for (unsigned i = 0; i < COUNT(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_mmap)
		return (long)map(
			mmap_by_number, (void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5]);
	if (number == SYS_munmap)
		dev_unmap((void *)a[0], (size_t)a[1]);
	rc = kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (rc == 0)
		creds_after_syscall(number, a);
	if (rc == 0 && number == SYS_munmap)
		anon_unmapped((void *)a[0], (size_t)a[1]);
	if (rc == 0 && number == SYS_madvise && a[2] == MADV_DONTNEED)
		mem_discarded((void *)a[0], (size_t)a[1]);
	return rc;
}

/* ---- fork ------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
	dev_fork_prepare();
	mem_fork_prepare();
}

static void fork_parent(void)
{
	mem_fork_parent();
	dev_fork_parent();
}

static void fork_child(void)
{
	mem_fork_child();
	stacks_fork_child();
	dev_fork_child();
}

/**
 * Finds the definitions behind ours by calls that do nothing: a signal handler or a forked child may be the
 * first to need one, and must not meet the dynamic linker's lock.
 */
static void find_all(void)
{
	struct msghdr none = {0};
	struct stat st;
	int saved = errno;

	if (socket(-1, 0, 0) < 0 && bind(-1, NULL, 0) < 0 && getsockname(-1, NULL, NULL) < 0 &&
		setsockopt(-1, 0, 0, NULL, 0) < 0 && sendto(-1, NULL, 0, 0, NULL, 0) < 0 &&
		sendmsg(-1, &none, 0) < 0)
		(void)(recvmsg(-1, &none, 0) < 0);
	if (write(-1, "", 0) < 0 && ioctl(-1, 0, NULL) < 0 && open("", O_RDONLY) < 0)
		(void)(mmap(NULL, 0, 0, 0, -1, 0) == MAP_FAILED && fstat(-1, &st) < 0 && stat("", &st) < 0 &&
			access("", F_OK) < 0 && madvise(NULL, 0, MADV_NORMAL) < 0 && munmap(NULL, 0) < 0 &&
			syscall(SYS_close, -1) < 0);
	errno = saved;
}

__attribute__((constructor)) static void start(void)
{
	find_all();
	stacks_init();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}
