/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/cache-file.h"

#include "memcached/cache-layout.h"
#include "util/cleanup.h"
#include "util/file-limit.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The group is that of the directory, and reddnd is in it (units/reddnd.tmpfiles) */
enum { MODE = 0660, FLAGS = O_RDWR | O_CLOEXEC };

static int refuse(char *why, size_t size, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int refuse(char *why, size_t size, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, size, format, ap);
	va_end(ap);
	return error;
}

/* Readers see by F_OFD_GETLK whether a memcached has the file, and disturb none that begins: they take no
 * lock */
static int lock(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &all);
}

/* The descriptor of the locked file that @path leads to: it may be replaced before the lock is taken */
static int open_locked(const char *path, char *why, size_t size)
{
	for (;;) {
		CLEANUP(cleanup_close) int fd = open(path, FLAGS | O_CREAT | O_NOFOLLOW | O_NONBLOCK, MODE);
		struct stat mine, now;

		if (fd < 0 || fstat(fd, &mine) < 0)
			return refuse(why, size, -errno, "%s cannot be opened: %s", path, file_error(-errno));
		if (!S_ISREG(mine.st_mode))
			return refuse(why, size, -EINVAL, "%s: %s", path, file_error(-EINVAL));
		if (lock(fd) < 0)
			return refuse(why, size, -EBUSY,
				"%s is locked: by another memcached, which runs, or by somebody else who may "
				"write it",
				path);
		if (stat(path, &now) < 0 || now.st_ino != mine.st_ino || now.st_dev != mine.st_dev)
			continue;
		if (mine.st_uid != geteuid())
			return refuse(why, size, -EPERM,
				"%s belongs to user %u, not to user %u, who runs memcached", path,
				mine.st_uid, geteuid());
		return steal_fd(&fd);
	}
}

/* Without memory for all of the file, memcached would die of SIGBUS later; by a limit for files it would die
 * of SIGXFSZ here */
static int allocate(int fd, const char *path, uint64_t bytes, char *why, size_t size)
{
	uint64_t most = file_limit();
	int e;

	if (bytes > most)
		return refuse(why, size, -EFBIG,
			"%s: the cache file has %" PRIu64 " bytes, and memcached may make files of %" PRIu64
			" (ulimit -f, LimitFSIZE=)",
			path, bytes, most);
	do
		e = posix_fallocate(fd, 0, (off_t)bytes);
	while (e == EINTR);
	return e ? refuse(why, size, -e, "%s: no memory for the %" PRIu64 " bytes of the cache file: %s",
			   path, bytes, strerror(e))
		 : 0;
}

/* The file @fresh is @fd, and gets into the place of @path when it is complete */
static int complete(int fd, const char *fresh, const char *path, const struct reddn_cache_header *want,
	char *why, size_t size)
{
	int e = allocate(fd, path, want->file_size, why, size);

	if (e < 0)
		return e;
	/* fchmod: whatever the umask is */
	if (fchmod(fd, MODE) < 0 || pwrite(fd, want, sizeof(*want), REDDN_CACHE_NULL) != sizeof(*want) ||
		lock(fd) < 0 || rename(fresh, path) < 0)
		return refuse(why, size, -errno, "%s cannot be made: %s", path, strerror(errno));
	return 0;
}

static int replace(const char *path, const struct reddn_cache_header *want, char *why, size_t size)
{
	CLEANUP(cleanup_close) int fd = -1;
	char fresh[PATH_MAX];
	int e;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return refuse(why, size, -ENAMETOOLONG, "%s: its name is too long", path);
	/* of one who died: nobody else makes it while we hold the lock of @path */
	unlink(fresh);
	fd = open(fresh, FLAGS | O_CREAT | O_EXCL, MODE);
	if (fd < 0)
		return refuse(why, size, -errno, "%s cannot be made: %s", fresh, strerror(errno));
	e = complete(fd, fresh, path, want, why, size);
	if (e < 0) {
		unlink(fresh);
		return e;
	}
	return steal_fd(&fd);
}

int cache_file_open(const char *path, const struct reddn_cache_header *want, char *why, size_t size)
{
	CLEANUP(cleanup_close) int fd = open_locked(path, why, size);
	struct reddn_cache_header h;
	struct stat st;
	int e;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return refuse(why, size, -errno, "%s: %s", path, strerror(errno));
	if (st.st_size == 0)
		return replace(path, want, why, size);
	if (file_read_at(fd, REDDN_CACHE_NULL, &h, sizeof(h)) != sizeof(h) || h.magic != REDDN_CACHE_MAGIC)
		return refuse(why, size, -EINVAL,
			"%s is no cache file of memcached; remove it, or name another file", path);
	if (!cache_layout_same(&h, want) || (uint64_t)st.st_size < want->file_size)
		return replace(path, want, why, size);
	e = allocate(fd, path, want->file_size, why, size);
	return e < 0 ? e : steal_fd(&fd);
}
