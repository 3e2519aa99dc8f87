/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/record.h"

#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x5245444e52454331) /* "REDNREC1" */

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static int map(struct record **out, int fd)
{
	void *p = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

int record_new(struct record **out, int *file)
{
	CLEANUP(cleanup_close) int fd = memfd_create("reddnd-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(struct record)) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	r = map(out, fd);
	if (r < 0)
		return r;
	(*out)->version = RECORD_VERSION;
	(*out)->bytes = sizeof(struct record);
	__atomic_store_n(&(*out)->magic, MAGIC, __ATOMIC_RELEASE);
	*file = steal_fd(&fd);
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
	struct record *r = NULL;
	struct stat st;
	int e;

	if (fstat(fd, &st) < 0 || st.st_size != sizeof(struct record) ||
		(fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return -EBADMSG;
	e = map(&r, fd);
	if (e < 0)
		return e;
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
