/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

const char *sysfs_path(const char *path, char buf[static SYSFS_PATH_MAX])
{
	static const char *const prefixes[] = {"/sys/class/infiniband", "/sys/class/misc/rdma_cm",
		"/sys/devices/" SOFTCX_PCI_ROOT, "/sys/devices/virtual/misc/rdma_cm",
		"/sys/bus/pci/devices/" SOFTCX_PCI_DOMAIN ":", "/sys/bus/pci/drivers/mlx5_core"};
	char dir[SOFTCX_MAX_DIR + 1];

	if (!path || strncmp(path, "/sys/", 5) != 0)
		return path;
	for (unsigned i = 0; i < COUNT(prefixes); i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0 &&
			softcx_dir(dir, sizeof(dir)) == 0 &&
			snprintf(buf, SYSFS_PATH_MAX, "%s/" SOFTCX_SYSFS "%s", dir, path + strlen("/sys")) <
				SYSFS_PATH_MAX)
			return buf;
	return path;
}

int sysfs_opened(const char *path, int fd)
{
	struct stat st;
	int unreadable, flags, saved = errno;

	if (fd < 0 || !path || !strstr(path, "gid_attrs/"))
		return fd;
	flags = fcntl(fd, F_GETFD);
	if (sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 1) {
		unreadable = epoll_create1(EPOLL_CLOEXEC);
		if (unreadable >= 0) {
			dup3(unreadable, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
			close(unreadable);
		}
	}
	errno = saved;
	return fd;
}

/* The other way: replaces @path, an absolute name without links, by the one in /sys. */
static void sysfs_name(char path[static PATH_MAX])
{
	NEXT(realpath);
	char dir[SOFTCX_MAX_DIR + 16], tree[PATH_MAX];
	int saved = errno;
	size_t len;

	if (strstr(path, "/" SOFTCX_SYSFS "/") && softcx_dir(dir, SOFTCX_MAX_DIR + 1) == 0) {
		strcat(dir, "/" SOFTCX_SYSFS);
		len = next(dir, tree) ? strlen(tree) : 0;
		if (len && strncmp(path, tree, len) == 0 && path[len] == '/') {
			memmove(path + strlen("/sys"), path + len, strlen(path + len) + 1);
			memcpy(path, "/sys", strlen("/sys"));
		}
	}
	errno = saved;
}

/* ---- names without links ---------------------------------------------------------------- */

char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len, size_t size);

/* The old version of realpath(), which dlsym() may find, takes no NULL. */
EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
	NEXT(realpath);
	char buf[SYSFS_PATH_MAX], out[PATH_MAX];

	if (!next(sysfs_path(path, buf), out))
		return NULL;
	sysfs_name(out);
	return resolved ? strcpy(resolved, out) : strdup(out);
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	(void)size; /* the C library asks for PATH_MAX */
	return realpath(path, resolved);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

EXPORT char *getcwd(char *buf, size_t size)
{
	NEXT(getcwd);
	char *cwd = next(buf, size), out[PATH_MAX];

	if (cwd && strlen(cwd) < sizeof(out)) {
		strcpy(out, cwd);
		sysfs_name(out);
		if (strlen(out) < strlen(cwd))
			strcpy(cwd, out);
	}
	return cwd;
}

EXPORT char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	(void)room;
	return getcwd(buf, size);
}

/* ---- links ------------------------------------------------------------------------------ */

EXPORT ssize_t readlink(const char *restrict path, char *restrict out, size_t len)
{
	NEXT(readlink);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), out, len);
}

EXPORT ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict out, size_t len)
{
	NEXT(readlinkat);
	char buf[SYSFS_PATH_MAX];

	return next(dirfd, sysfs_path(path, buf), out, len);
}

EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t size)
{
	(void)size;
	return readlink(path, out, len);
}

EXPORT ssize_t __readlinkat_chk(int dirfd, const char *path, char *out, size_t len, size_t size)
{
	(void)size;
	return readlinkat(dirfd, path, out, len);
}

/* ---- folders ---------------------------------------------------------------------------- */

typedef int filter_fn(const struct dirent *entry);
typedef int compare_fn(const struct dirent **a, const struct dirent **b);

EXPORT int scandir(
	const char *restrict path, struct dirent ***restrict list, filter_fn *filter, compare_fn *compare)
{
	NEXT(scandir);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), list, filter, compare);
}

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one struct dirent on 64-bit machines");

EXPORT int scandir64(const char *restrict path, struct dirent64 ***restrict list,
	int (*filter)(const struct dirent64 *entry),
	int (*compare)(const struct dirent64 **a, const struct dirent64 **b))
{
	NEXT(scandir64);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), list, filter, compare);
}

EXPORT int scandirat(int dirfd, const char *restrict path, struct dirent ***restrict list, filter_fn *filter,
	compare_fn *compare)
{
	NEXT(scandirat);
	char buf[SYSFS_PATH_MAX];

	return next(dirfd, sysfs_path(path, buf), list, filter, compare);
}

EXPORT int chdir(const char *path)
{
	NEXT(chdir);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf));
}

/* ---- rights and attributes -------------------------------------------------------------- */

EXPORT int euidaccess(const char *path, int mode)
{
	NEXT(euidaccess);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), mode);
}

EXPORT int eaccess(const char *path, int mode)
{
	return euidaccess(path, mode);
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	NEXT(getxattr);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	NEXT(lgetxattr);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), name, value, size);
}

EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	NEXT(listxattr);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), list, size);
}

EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	NEXT(llistxattr);
	char buf[SYSFS_PATH_MAX];

	return next(sysfs_path(path, buf), list, size);
}
