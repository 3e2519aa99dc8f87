/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/handover.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

struct handover {
	char region[CATALOG_NAME_MAX + 1];
	int fd;
	SLIST_ENTRY(handover) link;
};

struct handovers {
	SLIST_HEAD(, handover) all;
	unsigned n;
};

struct handovers *handovers_new(void)
{
	return calloc(1, sizeof(struct handovers));
}

static void drop(struct handovers *h, struct handover *e)
{
	SLIST_REMOVE(&h->all, e, handover, link);
	h->n--;
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

void handovers_free(struct handovers *h)
{
	while (h && !SLIST_EMPTY(&h->all))
		drop(h, SLIST_FIRST(&h->all));
	free(h);
}

static struct handover *find(const struct handovers *h, const char *region)
{
	struct handover *e;

	SLIST_FOREACH (e, &h->all, link)
		if (strcmp(e->region, region) == 0)
			return e;
	return NULL;
}

/* For writing if that is allowed: its owner wants that when it takes it back */
static int copy(int fd)
{
	int own = file_reopen(fd, O_RDWR);

	return own == -EACCES || own == -EPERM ? file_reopen(fd, O_RDONLY) : own;
}

int handovers_put(struct handovers *h, const char *name, int fd)
{
	struct handover *e = find(h, name);
	CLEANUP(cleanup_close) int own = copy(fd);

	if (own < 0)
		return own;
	if (!e && h->n == HANDOVERS_MAX)
		return -ENOSPC;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		snprintf(e->region, sizeof(e->region), "%s", name);
		e->fd = -1;
		h->n++;
		SLIST_INSERT_HEAD(&h->all, e, link);
	}
	if (e->fd >= 0)
		close(e->fd);
	e->fd = steal_fd(&own);
	return 0;
}

int handovers_copy(const struct handovers *h, const char *name)
{
	const struct handover *e = find(h, name);

	return e ? copy(e->fd) : -ENOENT;
}

static bool has(const struct catalog *catalog, const char *region)
{
	for (unsigned i = 0; i < catalog->nregions; i++)
		if (catalog->regions[i].handover && strcmp(catalog->regions[i].name, region) == 0)
			return true;
	return false;
}

const char *handovers_useless(const struct handovers *h, const struct catalog *catalog)
{
	struct handover *e;

	SLIST_FOREACH (e, &h->all, link)
		if (!has(catalog, e->region))
			return e->region;
	return NULL;
}

void handovers_drop(struct handovers *h, const char *name)
{
	struct handover *e = find(h, name);

	if (e)
		drop(h, e);
}
