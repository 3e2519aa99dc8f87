/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* Read one line and expect a record, or with key NULL a complaint. */
static void expect(enum records_format format, const char *line, size_t len, const char *key, size_t key_len,
	const char *val, size_t val_len)
{
	FILE *f = fmemopen((void *)(uintptr_t)line, len, "r");
	struct records_reader r;
	struct record_text rec;

	assert_non_null(f);
	records_init(&r, f, format, RECORDS_MOST);
	if (!key) {
		assert_int_equal(records_next(&r, &rec), -EBADMSG);
		assert_int_equal(r.line, 1);
		assert_true(strlen(r.why) > 3);
	} else {
		assert_int_equal(records_next(&r, &rec), 0);
		assert_int_equal(rec.key_len, key_len);
		assert_memory_equal(rec.key, key, key_len);
		if (val) {
			assert_non_null(rec.val);
			assert_int_equal(rec.val_len, val_len);
			assert_memory_equal(rec.val, val, val_len);
		} else {
			assert_null(rec.val);
		}
		assert_int_equal(records_next(&r, &rec), RECORDS_END);
	}
	records_deinit(&r);
	fclose(f);
}

#define TSV(line, key, val)                                                                                  \
	expect(RECORDS_TSV, line, sizeof(line) - 1, key, sizeof(key) - 1, val, sizeof(val) - 1)
#define JSON(line, key, val)                                                                                 \
	expect(RECORDS_JSON, line, sizeof(line) - 1, key, sizeof(key) - 1, val, sizeof(val) - 1)
#define BAD(format, line) expect(format, line, sizeof(line) - 1, NULL, 0, NULL, 0)

static void test_tsv(void **state)
{
	TSV("a\tb\n", "a", "b");
	TSV("a\tb", "a", "b");
	TSV("\n\na\t\n\n", "a", "");
	TSV("a b\t c \n", "a b", " c ");
	TSV("\\t\\n\\r\\0\\\\\\x7f\tx\\x00\\xFfy\n", "\t\n\r\0\\\x7f", "x\0\xffy");
	expect(RECORDS_TSV, "key\n", 4, "key", 3, NULL, 0);
	BAD(RECORDS_TSV, "a\tb\tc\n");
	BAD(RECORDS_TSV, "a\\q\tb\n");
	BAD(RECORDS_TSV, "a\tb\\\n");
	BAD(RECORDS_TSV, "a\tb\\x1\n");
	BAD(RECORDS_TSV, "a\tb\\xg0\n");
	BAD(RECORDS_TSV, "a\tb\\\0\n");
	/* text files of other systems */
	BAD(RECORDS_TSV, "a\tb\r\n");
	BAD(RECORDS_TSV, "a\r");
	BAD(RECORDS_TSV, "\r\n");
	BAD(RECORDS_TSV, "\xef\xbb\xbf"
			 "a\tb\n");
	BAD(RECORDS_TSV, "\xff\xfe"
			 "a\0\t\0b\0\n\0");
	TSV("a\r\tb\rc\n", "a\r", "b\rc");
	TSV("\\xef\\xbb\\xbf"
	    "a\tb\n",
		"\xef\xbb\xbf"
		"a",
		"b");
	TSV("\n\xef\xbb\xbf"
	    "a\tb\n",
		"\xef\xbb\xbf"
		"a",
		"b");
}

static void test_json(void **state)
{
	JSON("{\"key\": \"a\", \"value\": \"b\"}\n", "a", "b");
	JSON("{\"value\":\"\",\"key\":\"a\"}", "a", "");
	JSON("{\"key\":\"\\u0000\\n\\u00e9\",\"value\":\"\\\"\"}\n", "\0\n\xc3\xa9", "\"");
	JSON("{\"key_hex\":\"00fF\",\"value_hex\":\"\"}\n", "\0\xff", "");
	expect(RECORDS_JSON, "{\"key\":\"k\"}\n", 12, "k", 1, NULL, 0);
	BAD(RECORDS_JSON, "{\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":1,\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"key_hex\":\"00\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key_hex\":\"0\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key_hex\":\"0g\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"b\"} x\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"b\"\n");
	BAD(RECORDS_JSON, "{\"key\":\"\xff\",\"value\":\"b\"}\n");
	JSON("\r\n {\"key\":\"a\",\"value\":\"b\"} \r\n", "a", "b");
	JSON("{\"key\":\"\\ud83d\\ude00\",\"value\":\"\\\\ud800\"}\n", "\xf0\x9f\x98\x80", "\\ud800");
	JSON("{\"key\":\"a\",\"value\":\"b:\",\"more\":{\"key\":[1],\"value\":{}}}\n", "a", "b:");
	/* half a surrogate pair */
	BAD(RECORDS_JSON, "{\"key\":\"\\ud800\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"\\uDC00\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"b\\ud83d\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"\\ud83d\\u0041\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"\\ud83d\\ud83d\\ude00\"}\n");
	BAD(RECORDS_JSON, "{\"\\ud800\":1,\"key\":\"a\",\"value\":\"b\"}\n");
	/* control characters */
	BAD(RECORDS_JSON, "{\"key\":\"a\tb\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"\x1f\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\0\",\"value\":\"b\"}\n");
	/* members twice */
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"key\":\"b\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "{\"key\":\"a\",\"value\":\"b\",\"v\\u0061lue\":\"b\"}\n");
	BAD(RECORDS_JSON, "\xef\xbb\xbf{\"key\":\"a\",\"value\":\"b\"}\n");
	BAD(RECORDS_JSON, "[]\n");
	BAD(RECORDS_JSON, "null\n");
}

/* A line that no record needs is wrong before all of it is read; a file that cannot be read has no line */
static void test_bounds(void **state)
{
	enum { MOST = 10, LINE = 6 * MOST + 4096 };
	struct records_reader r;
	struct record_text rec;
	char text[LINE + 2];
	FILE *f;

	for (int format = RECORDS_TSV; format <= RECORDS_JSON; format++) {
		f = fopen("/dev/zero", "re");
		assert_non_null(f);
		records_init(&r, f, (enum records_format)format, MOST);
		assert_int_equal(records_next(&r, &rec), -EBADMSG);
		assert_int_equal(r.line, 1);
		assert_int_equal(r.bytes, LINE + 1);
		records_deinit(&r);
		fclose(f);
	}
	memset(text, 'a', LINE);
	text[LINE] = '\n';
	f = fmemopen(text, LINE + 1, "r");
	records_init(&r, f, RECORDS_TSV, MOST);
	assert_int_equal(records_next(&r, &rec), 0);
	assert_int_equal(rec.key_len, LINE);
	assert_int_equal(records_next(&r, &rec), RECORDS_END);
	records_deinit(&r);
	fclose(f);
	f = fopen("/", "re");
	assert_non_null(f);
	records_init(&r, f, RECORDS_TSV, MOST);
	assert_int_equal(records_next(&r, &rec), -EISDIR);
	assert_int_equal(r.line, 0);
	records_deinit(&r);
	fclose(f);
}

static void test_controls(void **state)
{
	static const char *const written[] = {[RECORDS_TSV] = "a\\x1b\\x7f\\xc2\\x9b1m\xc2\xa0\n",
		[RECORDS_JSON] = "{\"key\": \"a\\u001b\\u007f\\u009b1m\xc2\xa0\"}\n"};
	static const uint8_t key[] = "a\x1b\x7f\xc2\x9b"
				     "1m\xc2\xa0";

	for (int format = RECORDS_TSV; format <= RECORDS_JSON; format++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		records_write(f, (enum records_format)format,
			&(struct record_text){.key = key, .key_len = sizeof(key) - 1});
		fclose(f);
		assert_string_equal(text, written[format]);
		free(text);
	}
	assert_true(records_is_text((const uint8_t *)"a\xc2\xa0", 3));
	assert_false(records_is_text((const uint8_t *)"a\xc2\x9b", 3));
	assert_false(records_is_text((const uint8_t *)"a\x1b", 2));
}

/* Whatever bytes are written are read back, in both formats. */
static void test_round_trip(void **state)
{
	enum { N = 3000 };

	for (int format = RECORDS_TSV; format <= RECORDS_JSON; format++) {
		uint8_t key[16], val[300];
		struct records_reader r;
		struct record_text rec;
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		for (int pass = 0; pass < 2; pass++) {
			if (pass) {
				fclose(f);
				f = fmemopen(text, size, "r");
				records_init(&r, f, (enum records_format)format, RECORDS_MOST);
			}
			srandom(4);
			for (int i = 0; i < N; i++) {
				size_t key_len = 1 + (size_t)random() % 15, val_len = (size_t)random() % 300;
				/* From ASCII to anything, so that valid UTF-8 is among it. */
				int range = i % 3 == 0 ? 128 : 256;

				for (size_t k = 0; k < key_len; k++)
					key[k] = (uint8_t)(random() % range);
				if (i == 0)
					memcpy(key, "\xef\xbb\xbf", key_len < 3 ? key_len : 3);
				for (size_t k = 0; k < val_len; k++)
					val[k] = (uint8_t)(random() % range);
				if (!pass) {
					records_write(f, (enum records_format)format,
						&(struct record_text){key, key_len, val, val_len});
					continue;
				}
				assert_int_equal(records_next(&r, &rec), 0);
				assert_int_equal(rec.key_len, key_len);
				assert_memory_equal(rec.key, key, key_len);
				assert_int_equal(rec.val_len, val_len);
				assert_memory_equal(rec.val, val, val_len);
			}
		}
		assert_int_equal(records_next(&r, &rec), RECORDS_END);
		assert_int_equal(r.line, N);
		records_deinit(&r);
		fclose(f);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tsv),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
