/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/hostile/known.h"

#include "protocol/table-format.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKET_READ = 15 };

struct known_table known_map(const char *path)
{
	const struct reddn_table_header *h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct known_table t;

	raw_need(fd >= 0 && fstat(fd, &st) == 0, path);
	t.file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	raw_need(t.file != MAP_FAILED, path);
	close(fd);
	h = (const struct reddn_table_header *)t.file;
	t.buckets = t.file + h->buckets_off;
	t.window = h->buckets * sizeof(struct reddn_bucket);
	t.heap = t.file + h->heap_off;
	t.heap_size = h->heap_size;
	return t;
}

struct known_bucket known_look(const struct known_table *t, uint64_t at)
{
	const uint8_t *b = t->buckets + at;
	struct known_bucket s = {.tag = b[14]};

	for (unsigned i = 0; i < 3; i++)
		s.len = s.len << 8 | b[i];
	for (unsigned i = 3; i < 8; i++)
		s.off = s.off << 8 | b[i];
	for (unsigned i = 0; i < KNOWN_FP; i++)
		s.fp[i] = b[13 - i];
	return s;
}

void known_put_probe(struct raw_client *c, unsigned p, const uint8_t *fp, uint64_t at)
{
	unsigned width = c->rep.table.offset_len;
	uint8_t *r = raw_request(c) + p * (KNOWN_FP + width);

	memcpy(r, fp, KNOWN_FP);
	for (unsigned i = 0; i < width; i++)
		r[KNOWN_FP + i] = (uint8_t)(at >> 8 * (width - 1 - i));
}

bool known_model(struct raw_client *c, const struct known_table *t, unsigned slot, uint8_t *want)
{
	unsigned width = c->rep.table.offset_len;
	uint64_t own = (uint64_t)HOSTILE_MEMORY + RAW_REQUEST - (uint64_t)slot * RAW_SLOT - REDDN_SLOT_RECORD;

	for (unsigned p = 0; p < c->rep.table.probes; p++) {
		const uint8_t *r = raw_request(c) + p * (KNOWN_FP + width);
		uint64_t at = 0;
		struct known_bucket s;

		for (unsigned i = 0; i < width; i++)
			at = at << 8 | r[KNOWN_FP + i];
		if (at + BUCKET_READ > t->window)
			return false;
		s = known_look(t, at);
		if (memcmp(s.fp, r, KNOWN_FP) != 0 || s.tag != REDDN_TABLE_TAG)
			continue;
		if (s.len == 0 || s.off + s.len > t->heap_size || s.len > own)
			return false;
		memcpy(want + slot * RAW_SLOT + REDDN_SLOT_RECORD, t->heap + s.off, s.len);
	}
	memcpy(want + slot * RAW_SLOT + REDDN_SLOT_LIVE, t->file + offsetof(struct reddn_table_header, live),
		sizeof(struct reddn_table_live));
	return true;
}
