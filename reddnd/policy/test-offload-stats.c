/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/offload-stats.h"

#include "tests/lib/cmocka.h"

/* The bucket that has the only time in @t */
static unsigned only(const struct service_times *t)
{
	unsigned i = 0;

	while (i < SERVICE_BUCKETS && !t->count[i])
		i++;
	assert_true(i < SERVICE_BUCKETS && t->count[i] == 1);
	return i;
}

/* A time is in the first bucket that goes as far, which ends at most an eighth behind it */
static void test_buckets(void **state)
{
	for (uint64_t ns = 1; ns < UINT64_C(1) << 33; ns += 1 + ns / 13) {
		struct service_times t = {0};
		unsigned i;

		service_times_add(&t, ns, 1);
		i = only(&t);
		assert_true(service_times_top(i) >= ns);
		assert_true(i == 0 || service_times_top(i - 1) < ns);
		assert_true(ns < 1000 || service_times_top(i) < ns + ns / 8);
	}
}

static void test_longest(void **state)
{
	struct service_times t = {0};

	service_times_add(&t, UINT64_C(1) << 40, 1);
	assert_int_equal(only(&t), SERVICE_BUCKETS - 1);
	assert_int_equal(service_times_top(SERVICE_BUCKETS - 1), (UINT64_C(1) << 33) - 1);
}

/* Powers of two from 1024 ns are the ends of buckets: the metrics rely on it */
static void test_powers(void **state)
{
	unsigned found = 0;

	for (unsigned i = 0; i < SERVICE_BUCKETS; i++)
		for (unsigned power = 10; power <= 33; power++)
			found += service_times_top(i) == (UINT64_C(1) << power) - 1;
	assert_int_equal(found, 24);
}

static void test_merge(void **state)
{
	struct service_times t = {0}, more = {0};

	service_times_add(&t, 5000, 1);
	service_times_add(&more, 5000, 2);
	service_times_add(&more, 70000, 1);
	service_times_merge(&t, &more);
	assert_int_equal(t.sum_ns, 85000);
	assert_int_equal(t.count[bucket_of(5000 >> SERVICE_UNIT_BITS, SERVICE_BITS)], 3);
	assert_int_equal(t.count[bucket_of(70000 >> SERVICE_UNIT_BITS, SERVICE_BITS)], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_buckets), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_powers), cmocka_unit_test(test_merge)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
