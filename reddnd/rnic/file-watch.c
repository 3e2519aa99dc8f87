/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/file-watch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

int file_watch_new(void)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

uint32_t file_watch_add(int watches, int fd)
{
	char path[64];
	struct stat st;
	int n;

	if (fstat(fd, &st) < 0 || st.st_nlink == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = inotify_add_watch(watches, path, IN_MODIFY | IN_ONESHOT);
	return n < 0 ? 0 : (uint32_t)n;
}

bool file_watch_holds(int watches, uint32_t number)
{
	char path[64], line[512];
	uint32_t n;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", watches);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = number && sscanf(line, "inotify wd:%x ", &n) == 1 && n == number;
	if (f)
		fclose(f);
	return found;
}
