/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/keyset.h"

#include "libclient/reddn-table.h"
#include "tools/common/records.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct keyset *k, const void *key, size_t key_len, const void *val, size_t val_len, bool known)
{
	if (k->count == k->room) {
		size_t room = k->room ? 2 * k->room : 1024;
		struct keyset_key *p = realloc(k->keys, room * sizeof(*p));

		if (!p)
			return -ENOMEM;
		k->keys = p;
		k->room = room;
	}
	if (key_len + val_len > k->size - k->used) {
		size_t size = (k->size + key_len + val_len) * 2;
		uint8_t *p = realloc(k->bytes, size);

		if (!p)
			return -ENOMEM;
		k->bytes = p;
		k->size = size;
	}
	memcpy(k->bytes + k->used, key, key_len);
	if (val_len)
		memcpy(k->bytes + k->used + key_len, val, val_len);
	k->keys[k->count++] = (struct keyset_key){
		.at = k->used, .key_len = (uint32_t)key_len, .val_len = (uint32_t)val_len, .known = known};
	k->used += key_len + val_len;
	return 0;
}

int keyset_load_table(struct keyset *k, const char *name, bool values)
{
	struct reddn_table *t;
	struct reddn_table_entry e;
	uint64_t pos = 0;
	char err[512];
	int r;

	if (reddn_table_open(&t, name, 0, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	while ((r = reddn_table_next(t, &pos, &e)) == 0) {
		r = add(k, e.key, e.key_len, e.val, values ? e.val_len : 0, values);
		if (r < 0)
			break;
	}
	reddn_table_close(t);
	return r < 0 ? tool_complain("%s: %s", name, strerror(-r)) : 0;
}

int keyset_load_text(struct keyset *k, const char *name, bool values)
{
	FILE *f = fopen(name, "re");
	struct records_reader reader;
	struct record_text rec;
	int r;

	if (!f)
		return tool_complain("%s: %s", name, strerror(errno));
	records_init(&reader, f, RECORDS_TSV, RECORDS_MOST);
	while ((r = records_next(&reader, &rec)) == 0) {
		if (!rec.key_len) {
			snprintf(reader.why, sizeof(reader.why), "the key is empty");
			r = -EBADMSG;
			break;
		}
		r = add(k, rec.key, rec.key_len, rec.val, values ? rec.val_len : 0, values && rec.val);
		if (r < 0)
			break;
	}
	if (r == -EBADMSG)
		tool_complain("%s:%" PRIu64 ": %s", name, reader.line, reader.why);
	else if (r < 0)
		tool_complain("%s: %s", name, strerror(-r));
	records_deinit(&reader);
	fclose(f);
	return r < 0 ? 2 : 0;
}

void keyset_deinit(struct keyset *k)
{
	free(k->keys);
	free(k->bytes);
	*k = (struct keyset){0};
}
