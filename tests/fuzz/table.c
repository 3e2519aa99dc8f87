/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: table files, for the daemon's and the client library's checks. An input is a good table with
 * damage: the file's new size (8 bytes, little-endian), then patches, each an offset (4 bytes), a length (1
 * byte) and that many bytes. A size or an offset beyond the good table wraps.
 */
#include "reddnd/generation/table.h"
#include "libclient/reddn-table.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WHY = 200, PATCH_HEAD = 5, KEYS = 24 };

static int fd = -1;
static uint8_t *good, *bad;
static size_t good_size;

static void make_table(void)
{
	const struct reddn_table_options options = {
		.buckets = 64, .heap_size = 8192, .max_key = 16, .max_value = 100, .seed = 3};
	struct reddn_table *t;
	struct reddn_table_stat st;

	fd = memfd_create("table", MFD_CLOEXEC);
	fuzz_need(reddn_table_create_fd(&t, fd, &options, NULL, 0) == 0, "no table");
	for (int k = 0; k < 20; k++)
		fuzz_need(reddn_table_put(t, &k, sizeof(k), "0123456789012345678901234567890123456789",
				  10 + (size_t)k) == 0,
			"no entry");
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	good_size = st.file_size;
	bad = mmap(NULL, good_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	good = malloc(good_size);
	fuzz_need(bad != MAP_FAILED && good, "no memory");
	memcpy(good, bad, good_size);
}

/* Writes the damaged table. Returns the size that the file shall have. */
static uint64_t damage(const uint8_t *p, size_t size)
{
	const uint8_t *last = p + size;
	uint64_t to = good_size;

	memcpy(bad, good, good_size);
	if (size < sizeof(to))
		return to;
	memcpy(&to, p, sizeof(to));
	for (p += sizeof(to); last - p > PATCH_HEAD && last - p >= PATCH_HEAD + p[4];
		p += PATCH_HEAD + p[4]) {
		uint32_t at;

		memcpy(&at, p, sizeof(at));
		at %= (uint32_t)good_size;
		memcpy(bad + at, p + PATCH_HEAD, p[4] < good_size - at ? p[4] : good_size - at);
	}
	return to % (good_size + 1);
}

/* The daemon. */
static void read_geometry(uint64_t size)
{
	struct table_geometry g;
	char why[WHY] = "";
	int r = table_geometry(bad, size, &g, why, sizeof(why));

	if (r != 0) {
		fuzz_need(r == -EINVAL, "neither accepted nor refused");
		fuzz_refused(why);
		return;
	}
	fuzz_need(g.buckets_off >= REDDN_TABLE_PAGE && g.buckets_off <= size &&
			  g.buckets * 16 <= size - g.buckets_off && g.heap_off <= size && g.heap_size &&
			  g.heap_size <= size - g.heap_off && g.heap_off >= g.buckets_off + g.buckets * 16,
		"a window outside of the file is accepted");
	fuzz_need(
		g.offset_len >= 1 && g.offset_len <= 5 && table_slot_need(&g) < 1u << 25, "impossible sizes");
}

/* The client library. */
static void use_table(int flags)
{
	struct reddn_table_entry e;
	struct reddn_table *t;
	char why[WHY] = "";
	uint64_t at = 0;
	int r;

	if (reddn_table_open_fd(&t, fd, flags, why, sizeof(why)) < 0) {
		fuzz_refused(why);
		return;
	}
	while ((r = reddn_table_next(t, &at, &e)) != REDDN_TABLE_END)
		fuzz_need(r < 0 || (e.key_len && e.key_len + e.val_len < good_size), "an impossible record");
	for (int k = 0; k < KEYS; k++) {
		const void *value;
		size_t len;

		reddn_table_get(t, &k, sizeof(k), &value, &len);
		if (flags & REDDN_TABLE_WRITE) {
			reddn_table_put(t, &k, sizeof(k), "new", 3);
			reddn_table_delete(t, &k, sizeof(k));
		}
	}
	reddn_table_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t before = fuzz_refusals, to;

	if (fd < 0)
		make_table();
	to = damage(data, size);
	read_geometry(to);
	fuzz_need(ftruncate(fd, (off_t)to) == 0, "the file cannot be cut");
	use_table(0);
	use_table(REDDN_TABLE_WRITE);
	fuzz_need(ftruncate(fd, (off_t)good_size) == 0, "the file cannot be restored");
	if (fuzz_refusals > before) /* one input, whoever refused it */
		fuzz_refusals = before + 1;
	return 0;
}
