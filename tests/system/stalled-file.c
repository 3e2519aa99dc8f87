/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stalled-file.c - preloaded into a daemon: while the file $STALL exists questions about the path that it
 * contains wait, as on a file system of FUSE, or of NFS, whose server does not answer. Makes $STALL.waits
 * meanwhile.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
