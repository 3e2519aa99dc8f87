/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/record.h"

#include "util/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAGIC UINT64_C(0x5245444e52454331) /* "REDNREC1" */

int record_new(struct record **out, int *file)
{
	void *mapping;
	int fd = file_new_sealed("reddnd-record", sizeof(struct record), &mapping);

	if (fd < 0)
		return fd;
	*out = mapping;
	(*out)->version = RECORD_VERSION;
	(*out)->bytes = sizeof(struct record);
	__atomic_store_n(&(*out)->magic, MAGIC, __ATOMIC_RELEASE);
	*file = fd;
	return 0;
}

static void make_sound(struct bans *b)
{
	if (b->n > BANS_MAX)
		b->n = 0;
	for (unsigned i = 0; i < BANS_MAX; i++)
		b->bans[i].why[BANS_WHY - 1] = '\0';
}

int record_open(struct record **out, int fd)
{
	struct record *r;
	void *mapping;
	int e = file_map_sealed(fd, sizeof(*r), &mapping);

	if (e < 0)
		return e;
	r = mapping;
	if (r->magic != MAGIC || r->version != RECORD_VERSION || r->bytes != sizeof(struct record)) {
		record_free(r);
		return -EBADMSG;
	}
	make_sound(&r->enforcement.banned);
	make_sound(&r->enforcement.throttled);
	if (r->end_reasons.count >> 63) /* they are numbered from it */
		memset(&r->end_reasons, 0, sizeof(r->end_reasons));
	for (unsigned i = 0; i < END_REASONS_MAX; i++)
		r->end_reasons.kept[i].why[sizeof(r->end_reasons.kept[i].why) - 1] = '\0';
	*out = r;
	return 0;
}

void record_free(struct record *r)
{
	munmap(r, sizeof(*r));
}
