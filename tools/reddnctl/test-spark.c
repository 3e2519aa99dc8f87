/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/spark.h"

#include "tests/lib/cmocka.h"

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heights), cmocka_unit_test(test_oldest_goes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
