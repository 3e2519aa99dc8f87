/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static const char stanzas[] = "Package: one\nVersion: 1\nDescription: a\n b\n\n"
			      "Source: no name here\n\n"
			      "Version: 2\nPackage: two\n\n"
			      "Package: one\nVersion: 3\n";

static struct workload *load(const char *text, size_t present, size_t absent, uint64_t seed)
{
	char path[] = "/tmp/workload-XXXXXX";
	int fd = mkstemp(path);
	struct workload *w = NULL;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	if (workload_load(&w, path, present, absent, seed))
		w = NULL;
	unlink(path);
	return w;
}

static void test_keys_and_values(void **state)
{
	struct workload *w = load(stanzas, 50, 20, 1);
	size_t one = 0, two = 0, absent = 0;

	assert_non_null(w);
	assert_int_equal(w->keys, 2);
	assert_int_equal(w->ngets, 70);
	for (size_t i = 0; i < w->ngets; i++) {
		const struct workload_get *g = &w->gets[i];

		if (!g->value) {
			assert_false(
				g->key_len == 3 && (!memcmp(g->key, "one", 3) || !memcmp(g->key, "two", 3)));
			absent++;
		} else if (!memcmp(g->key, "one", 3)) {
			/* the last stanza of a name counts, without the newline at the end of the file */
			assert_int_equal(g->value_len, strlen("Package: one\nVersion: 3"));
			assert_memory_equal(g->value, "Package: one\nVersion: 3", g->value_len);
			one++;
		} else {
			assert_memory_equal(g->value, "Version: 2\nPackage: two", g->value_len);
			two++;
		}
	}
	assert_int_equal(absent, 20);
	assert_true(one > 0 && two > 0 && one + two == 50);
	workload_free(w);
}

static void test_equal_seeds_draw_equal_keys(void **state)
{
	struct workload *a = load(stanzas, 30, 30, 7), *b = load(stanzas, 30, 30, 7);

	for (size_t i = 0; i < a->ngets; i++) {
		assert_int_equal(a->gets[i].key_len, b->gets[i].key_len);
		assert_memory_equal(a->gets[i].key, b->gets[i].key, a->gets[i].key_len);
	}
	workload_free(a);
	workload_free(b);
}

/* Answers every get right, except those of the kind @spoil. */
enum spoil { NOTHING, VALUE, LENGTH, LOST, INVENTED, TWICE, SILENT };

static bool verdict(enum spoil spoil, size_t wrong)
{
	struct workload *w = load(stanzas, 10, 10, 3);
	size_t spoiled = spoil == NOTHING;
	bool good;

	for (size_t i = 0; i < w->ngets; i++) {
		const struct workload_get *g = &w->gets[i];
		char value[64] = "";
		size_t len = g->value_len;
		bool found = g->value != NULL;

		if (found)
			memcpy(value, g->value, len);
		workload_start(w, i);
		if (!spoiled && found == (spoil != INVENTED)) {
			spoiled = 1;
			value[0] ^= spoil == VALUE;
			len -= spoil == LENGTH;
			found = spoil == INVENTED || (found && spoil != LOST);
			if (spoil == SILENT)
				continue;
			if (spoil == TWICE)
				workload_answer(w, i, found, value, len);
		}
		workload_answer(w, i, found, value, len);
	}
	assert_int_equal(w->wrong, wrong);
	good = workload_report(w);
	workload_free(w);
	return good;
}

static void test_verdicts(void **state)
{
	assert_true(verdict(NOTHING, 0));
	assert_false(verdict(VALUE, 1));
	assert_false(verdict(LENGTH, 1));
	assert_false(verdict(LOST, 1));
	assert_false(verdict(INVENTED, 1));
	assert_false(verdict(TWICE, 1));
	assert_false(verdict(SILENT, 0));
}

static void test_useless_files(void **state)
{
	assert_null(load("", 1, 1, 1));
	assert_null(load("nothing\n\nto find\n", 1, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_and_values),
		cmocka_unit_test(test_equal_seeds_draw_equal_keys),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_useless_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
