/* SPDX-License-Identifier: BSD-2-Clause */
/* Service times, and bars: compiled in, they are its own */
#include "tools/reddnctl/top.c"

#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* The list that the daemon would give for "TO_NS REQUESTS, TO_NS REQUESTS" */
static struct json_object *list_of(const char *text)
{
	struct json_object *list = json_object_new_array();

	while (*text) {
		struct json_object *o = json_object_new_object();
		char *end;

		json_object_object_add(o, "to_ns", json_object_new_uint64(strtoull(text, &end, 10)));
		json_object_object_add(o, "requests", json_object_new_uint64(strtoull(end, &end, 10)));
		json_object_array_add(list, o);
		text = end + strspn(end, ", ");
	}
	return list;
}

static void add(struct times *t, const char *text)
{
	struct json_object *list = list_of(text);

	times_add(t, list);
	json_object_put(list);
}

static void take_away(struct times *t, const char *text)
{
	struct json_object *list = list_of(text);

	times_take_away(t, list);
	json_object_put(list);
}

static void test_parts(void **state)
{
	struct times t = {0};

	assert_int_equal(times_at(&t, 0.5), 0);
	add(&t, "1600 98, 3200 1, 6400 1");
	assert_int_equal(times_at(&t, 0.5), 1500);
	assert_int_equal(times_at(&t, 0.98), 1500);
	assert_int_equal(times_at(&t, 0.99), 3000);
	assert_int_equal(times_at(&t, 1), 6000);
	add(&t, "800 900, 6400 0"); /* of another session */
	assert_int_equal(t.n, 4);
	assert_int_equal(times_at(&t, 0.5), 750);
	assert_int_equal(times_at(&t, 1), 6000);
}

static void test_since(void **state)
{
	struct times t = {0};

	add(&t, "1600 98, 3200 7, 6400 1");
	take_away(&t, "1600 97, 6400 1");
	assert_int_equal(times_at(&t, 0.1), 1500);
	assert_int_equal(times_at(&t, 0.5), 3000);
	assert_int_equal(times_at(&t, 1), 3000);
	/* nothing has come since */
	take_away(&t, "1600 1, 3200 7");
	assert_int_equal(times_at(&t, 0.5), 0);
}

/* The counters of a daemon that was started since begin with 0 again */
static void test_another_daemon(void **state)
{
	struct times t = {0};

	add(&t, "1600 5");
	take_away(&t, "1600 3, 3200 1");
	assert_int_equal(t.at[0].count, 5);
}

static void test_no_lists(void **state)
{
	static const char *const texts[] = {
		"17", "[17, \"a\", [], {}]", "[{\"to_ns\": 5}]", "{\"to_ns\": 5, \"requests\": 1}"};
	struct times t = {0};

	times_add(&t, NULL);
	times_take_away(&t, NULL);
	for (unsigned i = 0; i < COUNT(texts); i++) {
		struct json_object *list = json_tokener_parse(texts[i]);

		times_add(&t, list);
		json_object_put(list);
	}
	assert_int_equal(times_at(&t, 0.5), 0);
}

static void test_too_many(void **state)
{
	static struct times t;
	char text[64];

	for (unsigned i = 0; i < TIMES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "%u 1", (TIMES_MAX + 10 - i) * 16);
		add(&t, text);
	}
	assert_int_equal(t.n, TIMES_MAX);
}

/* ---- bars ---- */

static const char *draw(const struct spark *s, unsigned most, bool utf8)
{
	static char text[SPARK_TEXT];

	spark_draw(s, most, utf8, text);
	return text;
}

static void test_heights(void **state)
{
	struct spark s = {0};

	assert_string_equal(draw(&s, 10, true), "");
	spark_add(&s, 0);
	assert_string_equal(draw(&s, 10, true), "▁");
	spark_add(&s, 7000);
	spark_add(&s, 1);
	spark_add(&s, 3000);
	assert_string_equal(draw(&s, 10, true), "▁█▂▄");
	assert_string_equal(draw(&s, 10, false), "_#.-");
	assert_string_equal(draw(&s, 2, false), ".#");
}

static void test_oldest_goes(void **state)
{
	struct spark s = {0};

	for (uint64_t i = 0; i < 3 * SPARK_MAX; i++)
		spark_add(&s, i);
	assert_int_equal(s.n, SPARK_MAX);
	assert_int_equal(s.number[0], 2 * SPARK_MAX);
	assert_int_equal(s.number[SPARK_MAX - 1], 3 * SPARK_MAX - 1);
	spark_draw(&s, SPARK_MAX, true, (char[SPARK_TEXT]){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_since),
		cmocka_unit_test(test_another_daemon), cmocka_unit_test(test_no_lists),
		cmocka_unit_test(test_too_many), cmocka_unit_test(test_heights),
		cmocka_unit_test(test_oldest_goes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
