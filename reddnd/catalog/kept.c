/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/kept.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* In front of the file; another number when what follows has another meaning */
static const uint8_t magic[8] = "REDNCON1";

enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
#define KEPT_MAX (256u << 20)

/* ---- writing: numbers of 4 bytes, and bytes behind their number ---- */

static void put_number(FILE *f, size_t n)
{
	uint32_t number = (uint32_t)n;

	fwrite(&number, sizeof(number), 1, f);
}

static void put_bytes(FILE *f, const void *bytes, size_t len)
{
	put_number(f, len);
	fwrite(bytes, 1, len, f);
}

static void put_catalog(FILE *f, const struct catalog *c)
{
	fwrite(magic, sizeof(magic), 1, f);
	put_bytes(f, c->text, strlen(c->text));
	put_number(f, c->noffloads);
	for (unsigned i = 0; i < c->noffloads; i++) {
		put_bytes(f, c->offloads[i].path, strlen(c->offloads[i].path));
		put_bytes(f, c->offloads[i].text, c->offloads[i].text_len);
	}
	put_number(f, c->ntenants);
	for (unsigned i = 0; i < c->ntenants; i++)
		put_bytes(f, c->tenants[i].key.bytes, c->tenants[i].has_key ? c->tenants[i].key.len : 0);
}

/* Keys are among the bytes */
static void wipe(char *bytes, size_t size)
{
	if (bytes)
		explicit_bzero(bytes, size);
	free(bytes);
}

static int serialize(const struct catalog *c, char **bytes, size_t *size)
{
	FILE *f = open_memstream(bytes, size);
	bool failed;

	if (!f)
		return -ENOMEM;
	put_catalog(f, c);
	failed = ferror(f);
	failed |= fclose(f) != 0;
	if (!failed && *size <= KEPT_MAX)
		return 0;
	wipe(steal_ptr(bytes), *size);
	return failed ? -ENOMEM : -EFBIG;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int catalog_keep(const struct catalog *c, int *out)
{
	CLEANUP(cleanup_close) int fd = memfd_create("reddnd-configuration", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *bytes = NULL;
	size_t size = 0;
	int r;

	if (fd < 0)
		return -errno;
	r = serialize(c, &bytes, &size);
	if (r < 0)
		return r;
	r = write_all(fd, bytes, size);
	wipe(bytes, size);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	if (r == 0)
		*out = steal_fd(&fd);
	return r;
}

/* ---- reading ---- */

static bool get_number(struct kept_bytes *from, uint32_t *n)
{
	if (from->len < sizeof(*n))
		return false;
	memcpy(n, from->at, sizeof(*n));
	from->at += sizeof(*n);
	from->len -= sizeof(*n);
	return true;
}

static bool get_bytes(struct kept_bytes *from, struct kept_bytes *bytes)
{
	uint32_t n;

	if (!get_number(from, &n) || n > from->len)
		return false;
	*bytes = (struct kept_bytes){from->at, n};
	from->at += n;
	from->len -= n;
	return true;
}

/* Each of them takes a number at least, so no file makes an array that is much longer than itself */
static void *get_array(struct kept_bytes *from, size_t size, uint32_t *n)
{
	return get_number(from, n) && *n <= from->len / sizeof(*n) ? calloc((size_t)*n + 1, size) : NULL;
}

static bool is_text(const struct kept_bytes *b)
{
	return b->len == 0 || !memchr(b->at, 0, b->len);
}

static bool is_key(const struct kept_bytes *b)
{
	return b->len == 0 || (b->len >= TOKEN_KEY_MIN && b->len <= TOKEN_KEY_MAX);
}

static bool parse(struct kept *k)
{
	struct kept_bytes from = k->all, text;

	if (from.len < sizeof(magic) || memcmp(from.at, magic, sizeof(magic)) != 0)
		return false;
	from.at += sizeof(magic);
	from.len -= sizeof(magic);
	if (!get_bytes(&from, &text) || !is_text(&text))
		return false;
	k->text = strndup((const char *)text.at, text.len);
	k->programs = get_array(&from, sizeof(*k->programs), &k->nprograms);
	for (uint32_t i = 0; k->programs && i < k->nprograms; i++)
		if (!get_bytes(&from, &k->programs[i].path) || !get_bytes(&from, &k->programs[i].text) ||
			!is_text(&k->programs[i].path) || k->programs[i].text.len > PROGRAM_MAX_SOURCE)
			return false;
	k->keys = k->programs ? get_array(&from, sizeof(*k->keys), &k->nkeys) : NULL;
	for (uint32_t i = 0; k->keys && i < k->nkeys; i++)
		if (!get_bytes(&from, &k->keys[i]) || !is_key(&k->keys[i]))
			return false;
	return k->text && k->keys && from.len == 0;
}

static void kept_close(struct kept *k)
{
	if (k->all.at)
		munmap((void *)k->all.at, k->all.len);
	free(k->text);
	free(k->programs);
	free(k->keys);
}

static int kept_open(struct kept *k, int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > KEPT_MAX ||
		(fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return -EBADMSG;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	k->all = (struct kept_bytes){p, (size_t)st.st_size};
	return 0;
}

bool catalog_is_kept(const struct catalog *c, int fd)
{
	CLEANUP(kept_close) struct kept k = {0};
	char *bytes = NULL;
	size_t size = 0;
	bool is;

	if (kept_open(&k, fd) < 0 || serialize(c, &bytes, &size) < 0)
		return false;
	is = size == k.all.len && memcmp(bytes, k.all.at, size) == 0;
	wipe(bytes, size);
	return is;
}

int catalog_restore(int fd, struct catalog **out, char **errors)
{
	CLEANUP(kept_close) struct kept k = {0};
	int r = kept_open(&k, fd);

	*errors = NULL;
	if (r < 0)
		return r;
	return parse(&k) ? kept_load(&k, out, errors) : -EBADMSG;
}
