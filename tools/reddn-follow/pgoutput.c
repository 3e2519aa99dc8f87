/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/pgoutput.h"

#include "util/text.h"

#include <errno.h>
#include <string.h>

struct bytes {
	char *at, *end;
	bool bad;
};

static char *bytes_take(struct bytes *b, size_t n)
{
	char *at = b->at;

	if ((size_t)(b->end - b->at) < n) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	return at;
}

static uint64_t bytes_number(struct bytes *b, unsigned n)
{
	const uint8_t *at = (const uint8_t *)bytes_take(b, n);
	uint64_t value = 0;

	while (at && n--)
		value = value << 8 | *at++;
	return value;
}

static const char *bytes_string(struct bytes *b)
{
	char *zero = memchr(b->at, '\0', (size_t)(b->end - b->at));

	return zero ? bytes_take(b, (size_t)(zero - b->at) + 1) : bytes_take(b, SIZE_MAX);
}

int pgoutput_decode_bytea(char *bytes, size_t *len)
{
	if (*len < 2 || *len % 2 || bytes[0] != '\\' || bytes[1] != 'x')
		return -EBADMSG;
	*len = *len / 2 - 1;
	for (size_t i = 0; i < *len; i++) {
		int hi = text_hex_digit(bytes[2 * i + 2]), lo = text_hex_digit(bytes[2 * i + 3]);

		if (hi < 0 || lo < 0)
			return -EBADMSG;
		bytes[i] = (char)(hi << 4 | lo);
	}
	return 0;
}

static struct pgoutput_field bytes_field(struct bytes *b)
{
	struct pgoutput_field f = {0};

	switch (bytes_number(b, 1)) {
	case 't':
		f.kind = PGOUTPUT_VALUE;
		f.len = bytes_number(b, 4);
		f.bytes = bytes_take(b, f.len);
		break;
	case 'n':
		f.kind = PGOUTPUT_NULL;
		break;
	case 'u':
		f.kind = PGOUTPUT_AS_BEFORE;
		break;
	default:
		b->bad = true;
	}
	return f;
}

static void column_decode(const struct pgoutput_column *c, struct pgoutput_field *f, struct bytes *b)
{
	if (!b->bad && f->kind == PGOUTPUT_VALUE && c->is_bytes)
		b->bad = pgoutput_decode_bytea(f->bytes, &f->len) < 0;
}

static void take_tuple(const struct pgoutput_table *t, struct bytes *b, struct pgoutput_field *key,
	struct pgoutput_field *value)
{
	unsigned n = (unsigned)bytes_number(b, 2);

	for (int i = 0; i < (int)n && !b->bad; i++) {
		struct pgoutput_field f = bytes_field(b);

		if (i == t->key.at)
			*key = f;
		else if (i == t->value.at)
			*value = f;
	}
	column_decode(&t->key, key, b);
	column_decode(&t->value, value, b);
	if (t->key.at == t->value.at)
		*value = *key;
}

static void take_relation(struct pgoutput_table *t, struct bytes *b, struct pgoutput_message *m)
{
	unsigned n;

	if (bytes_number(b, 4) != t->oid)
		return;
	bytes_string(b); /* schema and name */
	bytes_string(b);
	bytes_number(b, 1);
	n = (unsigned)bytes_number(b, 2);
	t->key.at = t->value.at = -1;
	for (int i = 0; i < (int)n && !b->bad; i++) {
		bool identifies = bytes_number(b, 1) & 1;
		const char *name = bytes_string(b);
		uint64_t type = bytes_number(b, 4);

		bytes_number(b, 4); /* its modifier */
		if (b->bad)
			return;
		if (strcmp(name, t->key.name) == 0 && identifies && type == t->key.type)
			t->key.at = i;
		if (strcmp(name, t->value.name) == 0 && type == t->value.type)
			t->value.at = i;
	}
	if (t->key.at < 0 || t->value.at < 0)
		m->what = PGOUTPUT_UNLIKE;
}

static void take_row(const struct pgoutput_table *t, char what, struct bytes *b, struct pgoutput_message *m)
{
	bool other = bytes_number(b, 4) != t->oid;
	char kind = (char)bytes_number(b, 1);
	struct pgoutput_field unused = {0};

	if (other)
		return;
	m->what = what == 'D' ? PGOUTPUT_DELETE : PGOUTPUT_SET;
	if (kind == 'K' || kind == 'O') {
		take_tuple(t, b, &m->before, &unused);
		kind = what == 'D' ? 0 : (char)bytes_number(b, 1);
	}
	if (what == 'D')
		b->bad |= m->before.kind != PGOUTPUT_VALUE;
	else if (kind == 'N')
		take_tuple(t, b, &m->key, &m->value);
	else
		b->bad = true;
}

static void take_truncate(const struct pgoutput_table *t, struct bytes *b, struct pgoutput_message *m)
{
	uint64_t n = bytes_number(b, 4);

	bytes_number(b, 1);
	while (n-- && !b->bad)
		if (bytes_number(b, 4) == t->oid)
			m->what = PGOUTPUT_TRUNCATE;
}

static void take_change(struct pgoutput_table *t, struct bytes *b, struct pgoutput_message *m)
{
	char what = (char)bytes_number(b, 1);

	switch (what) {
	case 'C':
		m->what = PGOUTPUT_COMMIT;
		bytes_take(b, 9);
		m->lsn = bytes_number(b, 8);
		break;
	case 'R':
		take_relation(t, b, m);
		break;
	case 'I':
	case 'U':
	case 'D':
		take_row(t, what, b, m);
		break;
	case 'T':
		take_truncate(t, b, m);
		break;
	default: /* Begin, Type, Origin: nothing to do */
		break;
	}
}

int pgoutput_take(struct pgoutput_table *t, char *bytes, size_t len, struct pgoutput_message *m)
{
	struct bytes b = {bytes, bytes + len, false};
	char kind = (char)bytes_number(&b, 1);

	*m = (struct pgoutput_message){0};
	if (kind == 'w') {
		if (bytes_take(&b, 24))
			take_change(t, &b, m);
	} else if (kind == 'k') {
		m->what = PGOUTPUT_ALIVE;
		m->lsn = bytes_number(&b, 8);
		bytes_take(&b, 8);
		m->asks = bytes_number(&b, 1);
	}
	return b.bad ? -EBADMSG : 0;
}
