/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables by name. One that takes the name of another retires that one first: readers who have it learn that
 * there is a newer one, whoever dies between the two. A retired table that still has its name when nobody is
 * at it (the lock) is what such a one has left. Its next writer takes it into use again.
 */
#include "libclient/public.h"
#include "libclient/reddn-table.h"
#include "libclient/table/impl.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Names are locked for two system calls */
enum { LOCK_PATIENCE = 500 /* times 10 ms */ };

/* Close the file, and unlock its name, although others may have duplicates of the descriptor. */
static void unlock(int *fd)
{
	if (*fd < 0)
		return;
	reddn_table_lock(*fd, F_UNLCK, REDDN_TABLE_LOCK_NAME);
	reddn_table_lock(*fd, F_UNLCK, REDDN_TABLE_LOCK_WRITER);
	close(*fd);
}

/* Open the file that has the name, and lock its name. The lock is not the one of writers, who may have the
 * table open while it is replaced. -EBUSY: another has locked it @patience times. -errno
 */
static int lock_named(const char *path, int flags, unsigned patience, int *out)
{
	const struct timespec nap = {.tv_nsec = 10000000};

	for (;;) {
		CLEANUP(unlock) int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | flags);
		struct stat mine, named;
		int r = fd < 0 ? -errno : reddn_table_lock(fd, F_WRLCK, REDDN_TABLE_LOCK_NAME);

		if (r == -EAGAIN && patience-- > 0) {
			nanosleep(&nap, NULL);
			continue;
		}
		if (r < 0)
			return r == -EAGAIN ? -EBUSY : r;
		if (fstat(fd, &mine) < 0)
			return -errno;
		/* Else it was replaced before it was locked */
		if (stat(path, &named) == 0 && named.st_dev == mine.st_dev && named.st_ino == mine.st_ino) {
			*out = steal_fd(&fd);
			return 0;
		}
	}
}

/* The words for an error of lock_named() */
static const char *lock_words(int r)
{
	return r == -EBUSY ? "another process holds the lock of its name, for longer than replacing it takes"
			   : strerror(-r);
}

/* Set the epoch of the table in the file, and return the one before. A file without a live line has none. */
static int set_epoch(int fd, uint64_t epoch, uint64_t *before)
{
	struct reddn_table_header *h;
	struct stat st;
	size_t len;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(*h))
		return 0;
	/* The page size of hugetlbfs, where others cannot be unmapped */
	len = st.st_blksize > REDDN_TABLE_PAGE ? (size_t)st.st_blksize : REDDN_TABLE_PAGE;
	h = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return -errno;
	*before = atomic_exchange(reddn_live_word(&h->live.epoch), epoch);
	munmap(h, len);
	return 0;
}

/* ---- replacement ---- */

/* A table, damaged or not, may be replaced, and an empty file: nothing is lost with it */
static int check_replaced(int fd, const char *path, char *err, size_t errlen)
{
	uint64_t magic = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return reddn_fail(-errno, err, errlen, "%s: %m", path);
	if (S_ISREG(st.st_mode) &&
		(st.st_size == 0 || (pread(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
					    magic == REDDN_TABLE_MAGIC)))
		return 0;
	return reddn_fail(-EEXIST, err, errlen,
		"%s: exists, and is not replaced because it is not a reddn table", path);
}

/* Clients put in a store until its daemon ends: what they put after it was replaced would be lost. The lock
 * of its writer stays until it is replaced. */
static int lock_store(int fd, const char *path, char *err, size_t errlen)
{
	int r = reddn_table_is_store(fd) ? reddn_table_lock(fd, F_WRLCK, REDDN_TABLE_LOCK_WRITER) : 0;

	if (r == -EAGAIN)
		return reddn_fail(-EBUSY, err, errlen,
			"%s: reddnd serves it and is its writer: stop reddnd, or take another name and "
			"reload",
			path);
	return r < 0 ? reddn_fail(r, err, errlen, "%s: cannot lock: %s", path, strerror(-r)) : 0;
}

/* Open the table that is to be replaced, and lock its name. *@fd stays -1 if there is none. */
static int lock_replaced(const char *path, int *fd, char *err, size_t errlen)
{
	int r = lock_named(path, O_NOFOLLOW, LOCK_PATIENCE, fd);

	if (r == -ENOENT)
		return 0;
	/* The new file would take the name of the link, and the old one, marked, keep its own */
	if (r == -ELOOP)
		return reddn_fail(r, err, errlen, "%s: is a symbolic link: replace the file itself", path);
	if (r < 0)
		return reddn_fail(r, err, errlen, "%s: %s", path, lock_words(r));
	r = check_replaced(*fd, path, err, errlen);
	return r < 0 ? r : lock_store(*fd, path, err, errlen);
}

/* Look if take_name() would succeed now. */
static int try_name(const char *path, bool replace, char *err, size_t errlen)
{
	CLEANUP(unlock) int old = -1;

	if (replace)
		return lock_replaced(path, &old, err, errlen);
	return access(path, F_OK) < 0 ? 0 : reddn_fail(-EEXIST, err, errlen, "%s: exists already", path);
}

static int retire_and_rename(int old, const char *from, const char *path, char *err, size_t errlen)
{
	uint64_t epoch = 0;
	int r = set_epoch(old, 0, &epoch);

	if (r < 0)
		return reddn_fail(r, err, errlen, "%s: cannot be marked as replaced: %s", path, strerror(-r));
	if (rename(from, path) == 0)
		return 0;
	r = -errno;
	set_epoch(old, epoch, &epoch);
	return reddn_fail(r, err, errlen, "%s: %s", path, strerror(-r));
}

int reddn_table_succeed(const char *from, const char *path, const struct reddn_table *old)
{
	CLEANUP(unlock) int named = -1;
	struct stat a, b;
	int r = lock_named(path, O_NOFOLLOW, 0, &named);

	if (r < 0)
		return r;
	if (fstat(named, &a) < 0 || fstat(old->fd, &b) < 0)
		return -errno;
	if (a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return -ESTALE;
	return retire_and_rename(named, from, path, NULL, 0);
}

/* Give the file @from the name @path as well, or instead. */
static int take_name(const char *from, const char *path, bool replace, char *err, size_t errlen)
{
	for (;;) {
		CLEANUP(unlock) int old = -1;
		int r = replace ? lock_replaced(path, &old, err, errlen) : 0;

		if (r < 0)
			return r;
		if (old >= 0)
			return retire_and_rename(old, from, path, err, errlen);
		/* link, not rename: it must not replace a file that appeared meanwhile. */
		if (link(from, path) == 0)
			return 0;
		if (errno != EEXIST || !replace)
			return reddn_fail(-errno, err, errlen, "%s: %m", path);
	}
}

/* ---- what others call ---- */

/* TABLE.N.new, N of 16 hexadecimal digits that nobody knows before: another could have made the file */
enum { TMP_DIGITS = 16 };

static const char TMP_END[] = ".new";

static bool is_tmp(const char *name, const char *table)
{
	size_t n = strlen(table);

	return strncmp(name, table, n) == 0 && name[n] == '.' &&
	       strspn(name + n + 1, "0123456789abcdef") == TMP_DIGITS &&
	       strcmp(name + n + 1 + TMP_DIGITS, TMP_END) == 0;
}

DEFINE_CLEANUP(DIR *, closedir)

/* Remove the files of new tables that nobody has locked: their makers were killed. */
static void remove_left(const char *path)
{
	const char *slash = strrchr(path, '/'), *table = slash ? slash + 1 : path;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char dir[PATH_MAX];
	struct dirent *e;

	if (snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".") >=
		PATH_MAX)
		return;
	CLEANUP(closedirp) DIR *d = opendir(dir);
	while (d && (e = readdir(d))) {
		CLEANUP(cleanup_close) int fd = -1;

		if (!is_tmp(e->d_name, table))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0)
			unlinkat(dirfd(d), e->d_name, 0);
	}
}

static int open_new(const char *path, mode_t mode, char tmp[PATH_MAX])
{
	uint64_t n;
	int fd;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -errno;
	if (snprintf(tmp, PATH_MAX, "%s.%0*" PRIx64 "%s", path, TMP_DIGITS, n, TMP_END) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

static const char ACL[] = "system.posix_acl_access";

/* The ACL has the mode in it. A new file may have one of its directory's. */
static int copy_acl(int fd, const struct reddn_table *like)
{
	/* The caller's stack may be small */
	CLEANUP(cleanup_free) char *acl = malloc(XATTR_SIZE_MAX);
	ssize_t n = acl ? fgetxattr(like->fd, ACL, acl, XATTR_SIZE_MAX) : -1;

	if (n >= 0)
		return fsetxattr(fd, ACL, acl, (size_t)n, 0) < 0 ? -errno : 0;
	if (errno != ENODATA && errno != EOPNOTSUPP)
		return -errno;
	return fremovexattr(fd, ACL) == 0 || errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
}

/* Who may read and write the file @fd: as with @like. The owner comes first, since the rest is for him; the
 * mode last, since its group bits are the mask of an ACL */
static int copy_rights(int fd, const struct reddn_table *like)
{
	struct stat st, mine;
	int r;

	if (fstat(like->fd, &st) < 0 || fstat(fd, &mine) < 0)
		return -errno;
	if ((st.st_uid != mine.st_uid || st.st_gid != mine.st_gid) && fchown(fd, st.st_uid, st.st_gid) < 0)
		return -errno;
	r = copy_acl(fd, like);
	if (r < 0)
		return r;
	return fchmod(fd, st.st_mode & 0777) < 0 ? -errno : 0;
}

/* -EAGAIN: another took it for one that was left, before it was locked */
static int create_beside(struct reddn_table **out, const char *path, const struct reddn_table *like,
	const struct reddn_table_options *opt, char tmp[PATH_MAX], char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	/* Who opened it before it has its rights could read it for ever */
	CLEANUP(cleanup_close) int fd = open_new(path, like ? 0600 : 0666, tmp);
	char why[200] = "";
	struct stat st;
	int r;

	if (fd < 0)
		return reddn_fail(
			fd, err, errlen, "%s: no file can be made in its directory: %s", path, strerror(-fd));
	r = like ? copy_rights(fd, like) : 0;
	if (r < 0)
		reddn_fail(r, why, sizeof(why),
			"cannot give the new file the owner and rights of the old one: %s", strerror(-r));
	else
		r = reddn_table_make_begin(&t, fd, opt, why, sizeof(why));
	if (r == -EBUSY || (r == 0 && (fstat(fd, &st) < 0 || st.st_nlink == 0)))
		r = -EAGAIN;
	if (r < 0) {
		unlink(tmp);
		return reddn_fail(r, err, errlen, "%s: %s", path, why);
	}
	assert(t);
	*out = steal_ptr(&t);
	return 0;
}

int reddn_table_create_beside(struct reddn_table **out, const char *path, const struct reddn_table *like,
	const struct reddn_table_options *opt, char tmp[PATH_MAX], char *err, size_t errlen)
{
	int r = -EAGAIN;

	remove_left(path);
	for (unsigned n = 0; n < 10 && r == -EAGAIN; n++)
		r = create_beside(out, path, like, opt, tmp, err, errlen);
	return r;
}

/* The name of the table, by which its writer finds it again when it grows. -ENOMEM */
static int keep_name(struct reddn_table *t, const char *path)
{
	if (t->writer)
		t->path = realpath(path, NULL);
	return t->writer && !t->path && errno == ENOMEM ? -ENOMEM : 0;
}

PUBLIC int reddn_table_create(struct reddn_table **out, const char *path,
	const struct reddn_table_options *opt, char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	char tmp[PATH_MAX], why[200] = "";
	int r;

	/* Before a large file is made for nothing */
	r = try_name(path, opt->replace, err, errlen);
	if (r < 0)
		return r;
	r = reddn_table_create_beside(&t, path, NULL, opt, tmp, err, errlen);
	if (r < 0)
		return r;
	r = reddn_table_make_rest(t, opt, why, sizeof(why));
	r = r < 0 ? reddn_fail(r, err, errlen, "%s: %s", path, why)
		  : take_name(tmp, path, opt->replace, err, errlen);
	/* Unless it was renamed */
	unlink(tmp);
	if (r < 0)
		return r;
	if (keep_name(t, path) < 0)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	/* Its writer is another. Before, who replaces a table would have taken it for one that was left */
	if (!t->writer)
		reddn_table_lock(t->fd, F_UNLCK, REDDN_TABLE_LOCK_WRITER);
	*out = steal_ptr(&t);
	return 0;
}

/* Open a table that was retired when it was opened. If that has its name when the name is locked, nobody is
 * replacing it. */
static int open_retired(struct reddn_table **out, const char *path, char *err, size_t errlen)
{
	CLEANUP(unlock) int fd = -1;
	uint64_t none;
	int r = lock_named(path, 0, LOCK_PATIENCE, &fd);

	if (r < 0)
		return reddn_fail(r, err, errlen, "%s", lock_words(r));
	r = reddn_table_open_fd(out, fd, REDDN_TABLE_WRITE, err, errlen);
	if (r != -ESTALE)
		return r;
	r = set_epoch(fd, clock_read_ns(CLOCK_REALTIME), &none);
	if (r < 0)
		return reddn_fail(r, err, errlen, "cannot be taken into use again: %s", strerror(-r));
	r = reddn_table_open_fd(out, fd, REDDN_TABLE_WRITE, err, errlen);
	if (r == 0)
		(*out)->repaired.replacements = 1;
	return r;
}

PUBLIC int reddn_table_open(struct reddn_table **out, const char *path, int flags, char *err, size_t errlen)
{
	CLEANUP(cleanup_close)
	int fd = open(path, (flags & REDDN_TABLE_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	char why[200] = "";
	int r;

	if (fd < 0)
		return reddn_fail(-errno, err, errlen, "%s: %m", path);
	r = reddn_table_open_fd(&t, fd, flags, why, sizeof(why));
	/* With it goes the lock of a writer that it has */
	close(steal_fd(&fd));
	if (r == -ESTALE)
		r = open_retired(&t, path, why, sizeof(why));
	if (r < 0)
		return reddn_fail(r, err, errlen, "%s: %s", path, why);
	if (keep_name(t, path) < 0)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	*out = steal_ptr(&t);
	return 0;
}
