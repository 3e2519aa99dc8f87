/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/reader.h"

#include "memcached/cache-layout.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int refuse(char *why, size_t size, const char *words)
{
	snprintf(why, size, "%s", words);
	return -EINVAL;
}

int reader_init(struct reader *r, int fd, uint64_t bytes, char *why, size_t size)
{
	struct reddn_cache_header *h = &r->header;

	r->fd = fd;
	if (reader_read(r, REDDN_CACHE_NULL, h, sizeof(*h)) < 0 || h->magic != REDDN_CACHE_MAGIC)
		return refuse(why, size, "it is no cache file of memcached; libreddn-memcached.so makes one");
	if (!cache_layout_is_sound(h, bytes))
		return refuse(why, size, "it is a cache file of another version, or damaged");
	return 0;
}

int reader_read(const struct reader *r, uint64_t off, void *bytes, size_t size)
{
	long n = file_read_at(r->fd, off, bytes, size);

	return n < 0 ? (int)n : (size_t)n == size ? 0 : -EIO;
}

int reader_live(const struct reader *r, struct reddn_cache_live *live)
{
	return reader_read(
		r, REDDN_CACHE_NULL + offsetof(struct reddn_cache_header, live), live, sizeof(*live));
}

bool reader_is_served(const struct reader *r)
{
	struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(r->fd, F_OFD_GETLK, &all) < 0 || all.l_type != F_UNLCK;
}

int64_t reader_item(const struct reader *r, uint64_t p)
{
	const struct reddn_cache_header *h = &r->header;
	uint64_t off = p - h->base;

	if (p % 8 || off < h->pages_off ||
		off - h->pages_off > h->pages_size - sizeof(struct reddn_cache_item))
		return -EFAULT;
	return (int64_t)off;
}

int reader_leads(const struct reader *r, uint64_t p, int64_t off)
{
	struct reddn_cache_item item;

	for (unsigned n = 0; n < READER_CHAIN; n++) {
		int64_t at = reader_item(r, p);
		int e = at < 0 || at == off ? 0 : reader_read(r, (uint64_t)at, &item, sizeof(item));

		if (at < 0 || at == off || e < 0)
			return at < 0 ? -EFAULT : e;
		p = item.h_next;
	}
	return -EFAULT;
}
