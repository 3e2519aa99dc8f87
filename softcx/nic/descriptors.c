/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/descriptors.h"

#include "softcx/proto/proto.h"
#include "softcx/uverbs/event.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHANNELS_PART = 5, FOR_EVENTS = 16 /* descriptors that nothing else may have */ };

static char folder[SOFTCX_MAX_DIR + 16]; /* "": there is none */

static rlim_t most(void)
{
	FILE *f = fopen("/proc/sys/fs/nr_open", "re");
	unsigned long n = 0;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

void descriptors_allow(void)
{
	struct rlimit limit;

	limit.rlim_cur = limit.rlim_max = most();
	if (limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void empty_folder(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

int descriptors_save(const char *dir)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (snprintf(folder, sizeof(folder), "%s/channels", dir) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	empty_folder();
	if (limit.rlim_cur > FOR_EVENTS && limit.rlim_cur + FOR_EVENTS > limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max - FOR_EVENTS;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	uverbs_channels_name(folder, (unsigned)(limit.rlim_cur / CHANNELS_PART));
	return 0;
}

void descriptors_done(void)
{
	if (folder[0])
		rmdir(folder);
}
