/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/pgoutput.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* XLogData: two positions and a time */
#define DATA "w" AT AT AT
#define AT "\0\0\0\0\0\0\0\7"
#define TABLE "\0\0\1\0"
#define OTHER "\0\0\1\1"
#define TEXT "\0\0\0\31\377\377\377\377"
#define BYTEA "\0\0\0\21\377\377\377\377"
#define COLUMNS(types_of_v) DATA "R" TABLE "public\0t\0d\0\3\1k\0" TEXT "\0x\0" TEXT "\0v\0" types_of_v
#define BYTES(literal) literal, sizeof(literal) - 1

static char message[256];

static int take(struct pgoutput_table *t, const char *bytes, size_t len, struct pgoutput_message *m)
{
	assert_in_range(len, 0, sizeof(message));
	memcpy(message, bytes, len);
	return pgoutput_take(t, message, len, m);
}

static struct pgoutput_table table(const char *key, const char *value, uint32_t type)
{
	struct pgoutput_table t = {.oid = 256,
		.key = {.type = 25, .at = -1},
		.value = {.type = type, .is_bytes = type == 17, .at = -1}};

	strcpy(t.key.name, key);
	strcpy(t.value.name, value);
	return t;
}

static void is_field(const struct pgoutput_field *f, const char *text)
{
	assert_int_equal(f->kind, PGOUTPUT_VALUE);
	assert_int_equal(f->len, strlen(text));
	assert_memory_equal(f->bytes, text, f->len);
}

static void test_rows(void **state)
{
	struct pgoutput_table t = table("k", "v", 17);
	struct pgoutput_message m;

	assert_int_equal(take(&t, BYTES(COLUMNS(BYTEA)), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_NOTHING);
	assert_int_equal(t.key.at, 0);
	assert_int_equal(t.value.at, 2);
	assert_int_equal(take(&t, BYTES(DATA "I" TABLE "N\0\3t\0\0\0\1ant\0\0\0\6\\x4142"), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_SET);
	assert_int_equal(m.before.kind, PGOUTPUT_NONE);
	is_field(&m.key, "a");
	is_field(&m.value, "AB");
	assert_int_equal(take(&t, BYTES(DATA "U" TABLE "K\0\3t\0\0\0\1annN\0\3t\0\0\0\1bnu"), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_SET);
	is_field(&m.before, "a");
	is_field(&m.key, "b");
	assert_int_equal(m.value.kind, PGOUTPUT_AS_BEFORE);
	assert_int_equal(take(&t, BYTES(DATA "D" TABLE "K\0\3t\0\0\0\1bnn"), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_DELETE);
	is_field(&m.before, "b");
	assert_int_equal(take(&t, BYTES(DATA "D" OTHER "K\0\3t\0\0\0\1bnn"), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_NOTHING);
}

static void test_one_column(void **state)
{
	struct pgoutput_table t = table("k", "k", 25);
	struct pgoutput_message m;

	assert_int_equal(take(&t, BYTES(COLUMNS(BYTEA)), &m), 0);
	assert_int_equal(take(&t, BYTES(DATA "I" TABLE "N\0\3t\0\0\0\1anu"), &m), 0);
	is_field(&m.key, "a");
	is_field(&m.value, "a");
}

static void test_others(void **state)
{
	struct pgoutput_table t = table("k", "v", 17);
	struct pgoutput_message m;

	assert_int_equal(take(&t, BYTES(COLUMNS(TEXT)), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_UNLIKE);
	assert_int_equal(take(&t, BYTES(DATA "T\0\0\0\2\0" OTHER TABLE), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_TRUNCATE);
	assert_int_equal(take(&t, BYTES(DATA "T\0\0\0\1\0" OTHER), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_NOTHING);
	assert_int_equal(take(&t, BYTES(DATA "C\0" AT "\0\0\0\0\0\0\1\0" AT), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_COMMIT);
	assert_int_equal(m.lsn, 256);
	assert_int_equal(take(&t, BYTES("k" AT AT "\1"), &m), 0);
	assert_int_equal(m.what, PGOUTPUT_ALIVE);
	assert_int_equal(m.lsn, 7);
	assert_true(m.asks);
}

/* Each message cut off anywhere, and rows without what a row has */
static void test_wrong(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} whole[] =
		{
			{BYTES(COLUMNS(BYTEA))},
			{BYTES(DATA "I" TABLE "N\0\3t\0\0\0\1ant\0\0\0\6\\x4142")},
			{BYTES(DATA "U" TABLE "K\0\3t\0\0\0\1annN\0\3t\0\0\0\1bnu")},
			{BYTES(DATA "D" TABLE "K\0\3t\0\0\0\1bnn")},
			{BYTES("k" AT AT "\1")},
		},
	  wrong[] = {
		  {BYTES(DATA "I" TABLE "N\0\3t\0\0\0\1ant\0\0\0\5\\x414")},
		  {BYTES(DATA "I" TABLE "N\0\3t\0\0\0\1ant\0\0\0\4\\x4g")},
		  {BYTES(DATA "I" TABLE "N\0\1?")},
		  {BYTES(DATA "I" TABLE "?")},
		  {BYTES(DATA "D" TABLE "K\0\3nnn")},
		  {BYTES(DATA "I" TABLE "N\0\1t\377\377\377\377a")},
	  };
	struct pgoutput_table t = table("k", "v", 17);
	struct pgoutput_message m;

	for (size_t i = 0; i < COUNT(whole); i++) {
		assert_int_equal(take(&t, whole[i].bytes, whole[i].len, &m), 0);
		for (size_t len = 0; len < whole[i].len; len++)
			assert_int_equal(take(&t, whole[i].bytes, len, &m), -EBADMSG);
		take(&t, BYTES(COLUMNS(BYTEA)), &m);
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(take(&t, wrong[i].bytes, wrong[i].len, &m), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_one_column),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
