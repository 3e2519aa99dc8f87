/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libclient takes from outside, for libFuzzer: replies in a slot, files of tables, records as text. The
 * first byte of the input chooses.
 */
#include "libclient/reddn-table.h"
#include "libclient/reply.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "tools/common/records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SLOT = 512 };

/* A hit is a record with this key and a right checksum, whatever is in the slot. */
static void reply(const uint8_t *data, size_t size)
{
	static const struct reddn_geometry geo = {
		.seed = 1, .buckets = 64, .max_key = 64, .max_value = 300, .offset_len = 2};
	_Alignas(64) uint8_t slot[SLOT] = {0};
	struct reddn_seen seen = {.valid = true};
	struct reddn_record *r = (struct reddn_record *)(slot + REDDN_SLOT_RECORD);

	memcpy(slot, data, size < SLOT ? size : SLOT);
	/* Checksums are not to be guessed: in half of the cases it is made right. */
	if ((slot[16] & 1) && r->key_len <= 64 && r->val_len <= 300)
		r->sum = reddn_record_sum(r);
	if (reddn_reply_check(&geo, "key", 3, slot, SLOT, &seen) == REDDN_REPLY_HIT &&
		(r->key_len != 3 || memcmp(r->bytes, "key", 3) != 0 || r->sum != reddn_record_sum(r)))
		abort();
}

/* What is read is written and read again, the same. */
static void text(enum records_format format, const uint8_t *data, size_t size)
{
	FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct records_reader r;
	struct record_text a, b;

	if (!in)
		return;
	records_init(&r, in, format);
	while (records_next(&r, &a) == 0) {
		char *line = NULL;
		size_t len;
		FILE *f = open_memstream(&line, &len);
		struct records_reader again;
		int got;

		records_write(f, format, &a);
		fclose(f);
		f = fmemopen(line, len, "r");
		records_init(&again, f, format);
		got = records_next(&again, &b);
		/* Of an empty key without value an empty line remains. */
		if (got == 0 ? a.key_len != b.key_len || memcmp(a.key, b.key, a.key_len) != 0 ||
					!a.val != !b.val || a.val_len != b.val_len ||
					(a.val && memcmp(a.val, b.val, a.val_len) != 0)
			     : a.key_len || a.val)
			abort();
		records_deinit(&again);
		fclose(f);
		free(line);
	}
	records_deinit(&r);
	fclose(in);
}

/* A good table with some bytes changed: (offset, value) pairs of three bytes. */
static void table(const uint8_t *data, size_t size)
{
	static uint8_t *good, *bad;
	static size_t len;
	static int fd;
	struct reddn_table *t;

	if (!good) {
		struct reddn_table_options opt = {
			.buckets = 16, .heap_size = 4000, .max_key = 8, .max_value = 100, .seed = 3};
		struct reddn_table_stat st;

		fd = memfd_create("table", 0);
		if (reddn_table_create_fd(&t, fd, &opt, NULL, 0) < 0)
			abort();
		for (int k = 0; k < 7; k++)
			reddn_table_put(
				t, &k, sizeof(k), "0123456789012345678901234567890123456789", 10 + 3 * k);
		reddn_table_stat(t, &st);
		reddn_table_close(t);
		len = st.file_size;
		bad = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		good = malloc(len);
		memcpy(good, bad, len);
	}
	memcpy(bad, good, len);
	for (; size >= 3; data += 3, size -= 3) {
		/* The page of the header is mostly empty. */
		size_t at = data[0] << 8 | data[1];

		at = at & 0x8000 ? at % 256 : 4096 + at % (len - 4096);
		bad[at] = data[2];
	}
	for (int flags = 0; flags <= REDDN_TABLE_WRITE; flags++) {
		struct reddn_table_entry e;
		uint64_t pos = 0;
		int r;

		if (reddn_table_open_fd(&t, fd, flags, NULL, 0) < 0)
			continue;
		while ((r = reddn_table_next(t, &pos, &e)) != REDDN_TABLE_END)
			if (r == 0 && (!e.key_len || e.key_len + e.val_len > len))
				abort();
		for (int k = 0; flags && k < 12; k++) {
			reddn_table_put(t, &k, sizeof(k), "new", 3);
			reddn_table_delete(t, &k, sizeof(k));
		}
		reddn_table_close(t);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		reply(data + 1, size - 1);
		break;
	case 1:
		text(RECORDS_TSV, data + 1, size - 1);
		break;
	case 2:
		text(RECORDS_JSON, data + 1, size - 1);
		break;
	case 3:
		table(data + 1, size - 1);
		break;
	}
	return 0;
}
