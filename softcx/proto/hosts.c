/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/proto/hosts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* It must not be the name of another entry of the NIC's directory. */
static bool good_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len && len <= SOFTCX_MAX_HOST && !name[len] && name[0] >= 'a' &&
	       strcmp(name, SOFTCX_SYSFS) != 0 && strcmp(name, "lock") != 0;
}

static bool add(struct hosts *hosts, const char *name, unsigned ndevs)
{
	struct host *host = &hosts->host[hosts->n];

	if (hosts->n == HOSTS_MAX || ndevs == 0 || ndevs > HOSTS_MAX_DEVS - hosts->ndevs)
		return false;
	snprintf(host->name, sizeof(host->name), "%s", name);
	host->first = hosts->ndevs;
	host->ndevs = ndevs;
	hosts->ndevs += ndevs;
	hosts->n++;
	return true;
}

static int parse_one(struct hosts *hosts, char *item, unsigned ndevs, char *why, size_t size)
{
	char *colon = strchr(item, ':'), *end = NULL;

	if (colon) {
		*colon = '\0';
		ndevs = (unsigned)strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || colon[1] == '-') {
			snprintf(why, size, "%s:%s: not a number of devices", item, colon + 1);
			return -EINVAL;
		}
	}
	if (!good_name(item)) {
		snprintf(why, size, "%s: not a name of a host: up to %d of a-z, 0-9 and '-', a letter first",
			item, SOFTCX_MAX_HOST);
		return -EINVAL;
	}
	for (unsigned i = 0; i < hosts->n; i++)
		if (strcmp(hosts->host[i].name, item) == 0) {
			snprintf(why, size, "%s: twice", item);
			return -EINVAL;
		}
	if (!add(hosts, item, ndevs)) {
		snprintf(why, size, "%s: at most %d hosts, each with 1 device or more, and %d devices in all",
			item, HOSTS_MAX, HOSTS_MAX_DEVS);
		return -EINVAL;
	}
	return 0;
}

int hosts_parse(struct hosts *hosts, const char *list, unsigned ndevs, char *why, size_t size)
{
	char text[HOSTS_MAX * (SOFTCX_MAX_HOST + 8)], *rest = text, *item;
	int rc = 0;

	memset(hosts, 0, sizeof(*hosts));
	if (!list) {
		if (add(hosts, "host", ndevs))
			return 0;
		snprintf(why, size, "from 1 to %d devices", HOSTS_MAX_DEVS);
		return -EINVAL;
	}
	if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text)) {
		snprintf(why, size, "too long");
		return -EINVAL;
	}
	while (rc == 0 && (item = strsep(&rest, ",")))
		rc = parse_one(hosts, item, ndevs, why, size);
	return rc;
}

void hosts_deal(const struct hosts *hosts, unsigned devs[static HOSTS_MAX_DEVS])
{
	unsigned n = 0;

	for (unsigned place = 0; n < hosts->ndevs; place++)
		for (unsigned i = 0; i < hosts->n; i++)
			if (place < hosts->host[i].ndevs)
				devs[n++] = hosts->host[i].first + place;
}

int hosts_set_dir(struct hosts *hosts, const char *dir)
{
	for (unsigned i = 0; i < hosts->n; i++) {
		struct host *h = &hosts->host[i];
		char name[SOFTCX_MAX_HOST + 2] = "";

		if (i)
			snprintf(name, sizeof(name), "/%.*s", SOFTCX_MAX_HOST, h->name);
		if (strlen(dir) + strlen(name) > SOFTCX_MAX_DIR)
			return -ENAMETOOLONG;
		stpcpy(stpcpy(h->dir, dir), name);
	}
	return 0;
}
