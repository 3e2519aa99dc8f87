/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/handover.h"

#include "reddnd/policy/rate.h"
#include "reddnd/util/closer.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a region: an owner that is started again needs one */
enum { PER_SECOND = 1, BURST = 8 };

struct handover {
	char region[CATALOG_NAME_MAX + 1];
	int fd;           /* -1: nobody has handed a file over that can be served */
	struct rate rate; /* of hand-overs, refused ones included */
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

/* Of the file, now: whoever handed it over. (uid_t)-1: nobody has */
static uid_t owner_of(const struct handover *e)
{
	struct stat st;

	return fstat(e->fd, &st) == 0 ? st.st_uid : (uid_t)-1;
}

static void drop(struct handovers *h, struct handover *e)
{
	SLIST_REMOVE(&h->all, e, handover, link);
	h->n--;
	closer_close(owner_of(e), e->fd);
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

static int find_or_add(struct handovers *h, const char *region, uint64_t now_us, struct handover **out)
{
	struct handover *e = find(h, region);

	*out = e;
	if (e)
		return 0;
	if (h->n == HANDOVERS_MAX)
		return -ENOSPC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	snprintf(e->region, sizeof(e->region), "%s", region);
	e->fd = -1;
	rate_init(&e->rate, PER_SECOND, BURST, now_us);
	h->n++;
	SLIST_INSERT_HEAD(&h->all, e, link);
	*out = e;
	return 0;
}

int handovers_admit(struct handovers *h, const char *name, uint64_t now_us)
{
	struct handover *e;
	int r = find_or_add(h, name, now_us, &e);

	if (r < 0)
		return r;
	if (rate_available(&e->rate, now_us) == 0)
		return -EBUSY;
	rate_take(&e->rate, 1);
	return 0;
}

int handovers_put(struct handovers *h, const char *name, int fd, uint64_t now_us)
{
	CLEANUP(cleanup_close) int own = copy(fd);
	struct handover *e;
	int r = own < 0 ? own : find_or_add(h, name, now_us, &e);

	if (r < 0)
		return r;
	closer_close(owner_of(e), e->fd);
	e->fd = steal_fd(&own);
	return e->fd;
}

int handovers_copy(const struct handovers *h, const struct catalog_region *region)
{
	const struct handover *e = find(h, region->name);

	/* a reload changes the owner of a region */
	return e && owner_of(e) == region->owner ? copy(e->fd) : -ENOENT;
}

static bool is_wanted(const struct handover *e, const struct catalog *catalog)
{
	for (unsigned i = 0; i < catalog->nregions; i++) {
		const struct catalog_region *r = &catalog->regions[i];

		if (r->handover && strcmp(r->name, e->region) == 0)
			return e->fd < 0 || owner_of(e) == r->owner;
	}
	return false;
}

const char *handovers_useless(const struct handovers *h, const struct catalog *catalog)
{
	struct handover *e;

	SLIST_FOREACH (e, &h->all, link)
		if (!is_wanted(e, catalog))
			return e->region;
	return NULL;
}

void handovers_drop(struct handovers *h, const char *name)
{
	struct handover *e = find(h, name);

	if (e)
		drop(h, e);
}
