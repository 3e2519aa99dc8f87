/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: input of a client. The first byte of an input chooses: 'T' records as TSV, 'J' records as
 * JSON, any other a reply in a slot.
 */
#include "libclient/reply.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tools/common/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT = 512 };

/* A hit is a record with this key and a right checksum. */
static void reply(const uint8_t *data, size_t size)
{
	static const struct reddn_geometry geo = {.seed = 1,
		.buckets = 64,
		.max_key = 64,
		.max_value = 300,
		.offset_len = 2,
		.room = SLOT - REDDN_SLOT_RECORD};
	static const struct reddn_seen before = {.epoch = 0};
	_Alignas(64) uint8_t slot[SLOT] = {0};
	struct reddn_record *r = (struct reddn_record *)(slot + REDDN_SLOT_RECORD);

	memcpy(slot, data, size < SLOT ? size : SLOT);
	/* A fuzzer cannot guess a checksum: half of the inputs get the right one. */
	if ((slot[16] & 1) && r->key_len <= 64 && r->val_len <= 300)
		r->sum = reddn_record_sum(r);
	if (reddn_reply_hit(&geo, "key", 3, (uint8_t *)r) < 0) {
		const struct reddn_seen now = reddn_reply_see(slot);

		reddn_reply_without(&geo, "key", 3, (uint8_t *)r, &now, &before);
		fuzz_refused("no record");
	} else {
		fuzz_need(r->key_len == 3 && memcmp(r->bytes, "key", 3) == 0 && r->sum == reddn_record_sum(r),
			"a wrong record is a hit");
	}
}

static bool same(const struct record_text *a, const struct record_text *b)
{
	return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0 && !a->val == !b->val &&
	       a->val_len == b->val_len && (!a->val || memcmp(a->val, b->val, a->val_len) == 0);
}

/* A record that was read can be written, and read again. */
static void write_and_read(enum records_format format, const struct record_text *a)
{
	char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);
	struct records_reader again;
	struct record_text b;

	fuzz_need(f != NULL, "no memory");
	records_write(f, format, a);
	fclose(f);
	f = fmemopen(line, len, "r");
	fuzz_need(f != NULL, "no memory");
	records_init(&again, f, format, RECORDS_MOST);
	/* An empty key without a value is written as an empty line, which is skipped. */
	if (records_next(&again, &b) == 0)
		fuzz_need(same(a, &b), "a record has changed");
	else
		fuzz_need(!a->key_len && !a->val, "a record is lost");
	records_deinit(&again);
	fclose(f);
	free(line);
}

static void text(enum records_format format, const uint8_t *data, size_t size)
{
	FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct records_reader r;
	struct record_text record;
	int got;

	if (!in)
		return;
	records_init(&r, in, format, RECORDS_MOST);
	while ((got = records_next(&r, &record)) == 0)
		write_and_read(format, &record);
	if (got == -EBADMSG)
		fuzz_refused(r.why);
	records_deinit(&r);
	fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'T':
		text(RECORDS_TSV, data + 1, size - 1);
		break;
	case 'J':
		text(RECORDS_JSON, data + 1, size - 1);
		break;
	default:
		reply(data + 1, size - 1);
		break;
	}
	return 0;
}
