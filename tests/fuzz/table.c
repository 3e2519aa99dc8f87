/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, to what the daemon and the client library make of tables. An input is a good table's size as a
 * little-endian word, of which the file gets no more, and then patches: offset (4 bytes), length (1), and
 * that many bytes.
 */
#include "reddnd/generation/table.h"
#include "libclient/reddn-table.h"
#include "tests/fuzz/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WHY = 200, PATCH_HEAD = 5, KEYS = 24 };

static int fd;
static uint8_t *good, *bad;
static size_t size;

static void begin(void)
{
	const struct reddn_table_options options = {
		.buckets = 64, .heap_size = 8192, .max_key = 16, .max_value = 100, .seed = 3};
	struct reddn_table *t;
	struct reddn_table_stat st;

	fd = memfd_create("table", MFD_CLOEXEC);
	inputs_need(reddn_table_create_fd(&t, fd, &options, NULL, 0) == 0, "no table");
	for (int k = 0; k < 20; k++)
		inputs_need(reddn_table_put(t, &k, sizeof(k), "0123456789012345678901234567890123456789",
				    10 + (size_t)k) == 0,
			"no entry");
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	size = st.file_size;
	bad = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	good = malloc(size);
	inputs_need(bad != MAP_FAILED && good, "no memory");
	memcpy(good, bad, size);
}

static void end(void)
{
	munmap(bad, size);
	free(good);
	close(fd);
}

static void put(struct input *in, const void *bytes, size_t n)
{
	memcpy(in->bytes + in->len, bytes, n);
	in->len += n;
}

static void put_patch(struct input *in, uint32_t at, const void *bytes, uint8_t n)
{
	put(in, &at, sizeof(at));
	put(in, &n, 1);
	put(in, bytes, n);
}

static void make(struct input *in)
{
	uint64_t to = inputs_pick(8) ? size : inputs_pick((unsigned)size + 1);

	in->len = 0;
	put(in, &to, sizeof(to));
	for (unsigned i = 1 + inputs_pick(3); i > 0; i--) {
		uint64_t word = inputs_word();

		if (inputs_pick(4)) /* a field of the header; its records and buckets else */
			put_patch(
				in, 8 * inputs_pick(24) + 4 * inputs_pick(2), &word, inputs_pick(2) ? 8 : 4);
		else
			put_patch(in, inputs_pick((unsigned)size), &word, 1);
	}
}

/* The file as @in has it; returns its size */
static uint64_t damage(const struct input *in)
{
	const uint8_t *p = (const uint8_t *)in->bytes, *last = p + in->len;
	uint64_t to;
	uint32_t at;

	inputs_need(in->len >= sizeof(to), "an input without a size");
	memcpy(&to, p, sizeof(to));
	inputs_need(to <= size, "an input with an impossible size");
	memcpy(bad, good, size);
	for (p += sizeof(to); last - p > PATCH_HEAD; p += PATCH_HEAD + p[4]) {
		memcpy(&at, p, sizeof(at));
		inputs_need(last - p >= PATCH_HEAD + p[4] && at + p[4] <= size, "a patch that does not fit");
		memcpy(bad + at, p + PATCH_HEAD, p[4]);
	}
	return to;
}

static bool look(int flags)
{
	struct reddn_table_entry e;
	struct reddn_table *t;
	char why[WHY] = "";
	uint64_t at = 0;
	int r;

	if (reddn_table_open_fd(&t, fd, flags, why, sizeof(why)) < 0) {
		inputs_need(*why, "refused without words");
		inputs_feature(why);
		return false;
	}
	while ((r = reddn_table_next(t, &at, &e)) != REDDN_TABLE_END)
		inputs_need(r < 0 || (e.key_len && e.key_len + e.val_len < size), "a record that cannot be");
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
	return true;
}

static enum input_outcome use(const struct input *in)
{
	struct table_geometry g;
	char why[WHY] = "";
	uint64_t to = damage(in);
	int r = table_geometry(bad, to, &g, why, sizeof(why));
	bool opened;

	if (r == 0) {
		inputs_need(g.buckets_off >= REDDN_TABLE_PAGE && g.buckets_off <= to &&
				    g.buckets * 16 <= to - g.buckets_off && g.heap_off <= to && g.heap_size &&
				    g.heap_size <= to - g.heap_off &&
				    g.heap_off >= g.buckets_off + g.buckets * 16,
			"a window outside of the file is accepted");
		inputs_need(g.offset_len >= 1 && g.offset_len <= 5 && table_slot_need(&g) < 1u << 25,
			"impossible sizes");
	} else {
		inputs_need(r == -EINVAL && *why, "refused without words");
		inputs_feature(why);
	}
	inputs_need(ftruncate(fd, (off_t)to) == 0, "no memory");
	opened = look(0);
	opened &= look(REDDN_TABLE_WRITE);
	inputs_need(ftruncate(fd, (off_t)size) == 0, "no memory");
	return r == 0 && opened ? INPUT_ACCEPTED : INPUT_REFUSED;
}

const struct input_kind inputs_table = {
	.name = "table", .begin = begin, .end = end, .make = make, .use = use};
