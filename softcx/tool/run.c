/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_env(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0)
		tool_die("%s: %s", name, strerror(errno));
}

/** Adds @value to the list in environment variable @name. */
static void add_env(const char *name, const char *value, bool first)
{
	const char *old = getenv(name);
	char *both;

	if (!old || !*old) {
		set_env(name, value);
	} else if (!strstr(old, value)) {
		if (asprintf(&both, "%s:%s", first ? value : old, first ? old : value) < 0)
			tool_die("out of memory");
		set_env(name, both);
		free(both);
	}
}

/* ld.so(8): spaces and colons separate the names in LD_PRELOAD, and nothing quotes them. */
static bool fits_list(const char *path)
{
	return !path[strcspn(path, " :")];
}

static bool leads_to(const char *link, const char *target)
{
	char old[PATH_MAX];
	ssize_t n = readlink(link, old, sizeof(old) - 1);

	old[n < 0 ? 0 : n] = '\0';
	return strcmp(old, target) == 0;
}

/* A name of @driver for LD_PRELOAD: itself, or a link to it in the NIC's directory. */
static void name_for_list(char driver[static PATH_MAX])
{
	char link[PATH_MAX + 16], new[PATH_MAX + 32];

	if (fits_list(driver))
		return;
	snprintf(link, sizeof(link), "%s/driver.so", tool_dir);
	if (!fits_list(link))
		tool_die("LD_PRELOAD takes no spaces and colons, which both %s and %s have: choose another "
			 "directory with --dir",
			driver, tool_dir);
	snprintf(new, sizeof(new), "%s.%d", link, (int)getpid());
	if (!leads_to(link, driver) && (symlink(driver, new) < 0 || rename(new, link) < 0))
		tool_die("%s: %s", link, strerror(errno));
	strcpy(driver, link);
}

int tool_run_find(const char *command, char path[static PATH_MAX])
{
	char why[256];

	if (preload_check_find(command, path, PATH_MAX) < 0) {
		fprintf(stderr, "softcx: %s: %s\n", command, strerror(errno));
		return errno == ENOENT ? 127 : 126;
	}
	if (!preload_check_program(path, why, sizeof(why)))
		tool_die("%s %s", path, why);
	return 0;
}

void tool_run_env(void)
{
	char driver[PATH_MAX];

	tool_find_part(driver, "driver/libsoftcx-driver.so", SOFTCX_LIBDIR "/libsoftcx-driver.so");
	name_for_list(driver);
	set_env("SOFTCX_DIR", tool_dir);
	add_env("LD_PRELOAD", driver, true);
	/* AddressSanitizer insists on being the first library; ours only passes calls on to it. */
	add_env("ASAN_OPTIONS", "verify_asan_link_order=0", false);
}

void tool_run_think(const char *microseconds)
{
	char *end, text[24];
	double us = strtod(microseconds, &end);

	if (end == microseconds || *end || !(us >= 0 && us <= 1e6))
		tool_die("--think %s: not a number of microseconds from 0 to 1000000", microseconds);
	snprintf(text, sizeof(text), "%.0f", us * 1000);
	set_env("SOFTCX_THINK", text);
}

void tool_run_in_turn(void)
{
	set_env("SOFTCX_IN_TURN", "1");
}

int tool_run(char **argv, const struct tool_nic_options *opt, const char *host, bool leak_check)
{
	char path[PATH_MAX];
	int hold, rc = tool_run_find(argv[0], path);

	if (rc)
		return rc;
	hold = tool_nic_hold(opt);
	if (host)
		tool_nic_enter(hold, host);
	tool_run_env();
	if (leak_check) {
		int fd = tool_nic_connect();

		if (fd < 0)
			tool_die("the NIC has ended");
		return tool_run_watched(fd, path, argv);
	}
	execv(path, argv);
	fprintf(stderr, "softcx: %s: %s\n", path, strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
