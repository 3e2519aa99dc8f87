/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/datafile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int datafile_dir(const char *const *in_tree, const char *installed, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int len;

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
	}
	for (; n > 0 && *in_tree; in_tree++) {
		len = snprintf(path, size, "%s/%s", self, *in_tree);
		if (len < (int)size && access(path, R_OK | X_OK) == 0)
			return 0;
	}
	len = snprintf(path, size, "%s", installed);
	return len < (int)size ? 0 : -ENAMETOOLONG;
}

int datafile_find(
	const char *name, const char *const *in_tree, const char *installed, char *path, size_t size)
{
	static const char suffix[] = ".conf";
	size_t n = strlen(name), end = sizeof(suffix) - 1;
	char dir[PATH_MAX];
	int len, r;

	if (strchr(name, '/') || (n > end && strcmp(name + n - end, suffix) == 0)) {
		len = snprintf(path, size, "%s", name);
	} else {
		r = datafile_dir(in_tree, installed, dir, sizeof(dir));
		if (r < 0)
			return r;
		len = snprintf(path, size, "%s/%s.conf", dir, name);
	}
	return len < (int)size ? 0 : -ENAMETOOLONG;
}

int datafile_read(config_t *cfg, const char *path, unsigned *line, char *why, size_t size)
{
	FILE *f = fopen(path, "re");
	int r = 0;

	*line = 0;
	if (!f) {
		r = -errno;
		snprintf(why, size, "%s", strerror(errno));
		return r;
	}
	config_init(cfg);
	if (config_read(cfg, f) != CONFIG_TRUE) {
		*line = (unsigned)config_error_line(cfg);
		snprintf(why, size, "%s", config_error_text(cfg));
		config_destroy(cfg);
		r = -EINVAL;
	}
	fclose(f);
	return r;
}
