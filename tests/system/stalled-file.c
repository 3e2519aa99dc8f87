/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stalled-file.c - preloaded into a daemon: while the file $STALL exists questions about the path that it
 * contains wait, as on a file system of FUSE, or of NFS, whose server does not answer. Makes $STALL.waits
 * meanwhile. So does the first thread of the process that reads the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static bool stalls(const char *path)
{
	const char *name = getenv("STALL");
	char line[PATH_MAX] = "", waits[PATH_MAX];
	FILE *f = name ? fopen(name, "re") : NULL;
	bool same;

	if (!f)
		return false;
	same = fgets(line, sizeof(line), f) && strcmp(line, path) == 0;
	fclose(f);
	if (!same)
		return false;
	snprintf(waits, sizeof(waits), "%s.waits", name);
	close(creat(waits, 0600));
	return true;
}

int lstat(const char *path, struct stat *st)
{
	int (*real)(const char *, struct stat *) =
		(int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "lstat");

	while (stalls(path))
		usleep(10000);
	return real(path, st);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t off)
{
	ssize_t (*real)(int, void *, size_t, off64_t) =
		(ssize_t(*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = gettid() == getpid() ? readlink(link, path, sizeof(path) - 1) : 0;
	path[n > 0 ? n : 0] = '\0';
	while (n > 0 && stalls(path))
		usleep(10000);
	return real(fd, bytes, size, off);
}

/* Such a file system does not tell what would wait (RWF_NOWAIT) */
ssize_t preadv64v2(int fd, const struct iovec *to, int n, off64_t off, int flags)
{
	(void)fd;
	(void)to;
	(void)n;
	(void)off;
	(void)flags;
	errno = EOPNOTSUPP;
	return -1;
}
