/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon makes of results of checks. The checks of this file run on no device. */
#include "reddnd/probe/probe.h"

#include "util/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct probe_check checks[] = {
	{.number = PROBE_TIMESTAMPS, .assumes = "not at start"},
	{.number = PROBE_CHAIN, .assumes = "chains run", .flags = PROBE_AT_START},
	{.number = PROBE_RECV_ENABLE, .assumes = "RECVs are enabled", .flags = PROBE_AT_START},
	{.number = PROBE_FETCH, .assumes = "nothing is fetched early", .flags = PROBE_AT_START},
	{.number = PROBE_FENCED_ENABLE, .assumes = "fences hold", .flags = PROBE_AT_START | PROBE_IF_ASKED},
	{.number = PROBE_FLUSH, .assumes = "flushes are counted", .flags = PROBE_AT_START},
	{.number = PROBE_MESSAGE_LIMIT, .assumes = "messages are limited", .flags = PROBE_AT_START},
	{.number = PROBE_ATOMICS, .assumes = "atomics work", .flags = PROBE_AT_START},
	{.number = PROBE_MASKED_ATOMICS, .assumes = "masks work", .flags = PROBE_AT_START},
	{.number = PROBE_CALC, .assumes = "numbers are added", .flags = PROBE_AT_START},
};

/* Of the check with this number; the others hold */
static enum probe_number odd;
static struct probe_result odd_result;
static unsigned ran;

const struct probe_check *probe_checks(unsigned *n)
{
	*n = COUNT(checks);
	return checks;
}

void probe_run(const struct probe_attr *attr, const struct probe_check *check, struct probe_result *result)
{
	(void)attr;
	ran++;
	*result = (struct probe_result){.verdict = PROBE_HOLDS, .value = 1};
	if (check->number == odd)
		*result = odd_result;
}

/* There is no device */
const char *__wrap_rnic_device_name(const struct rnic_device *dev);
const char *__wrap_rnic_device_name(const struct rnic_device *dev)
{
	(void)dev;
	return "none";
}

static int start(enum probe_number number, struct probe_result result, struct rnic_observed *seen)
{
	struct master_qp master = {0};
	const struct probe_attr attr = {.master = &master};

	odd = number;
	odd_result = result;
	ran = 0;
	return probe_at_start(&attr, false, seen);
}

static void test_holds(void **state)
{
	struct rnic_observed seen;

	(void)state;
	assert_int_equal(start(0, (struct probe_result){0}, &seen), 0);
	assert_int_equal(ran, COUNT(checks) - 2);
	assert_true(seen.recv_enables && seen.masked_atomics && seen.flushes_enabled_only);
	assert_int_equal(seen.atomics, RNIC_ATOMICS_HOST);
	assert_int_equal(seen.fetch_group, 1);
	assert_int_equal(seen.calc, 1);
	assert_false(seen.fenced_enables);
}

/* Some operations are right: these are there */
static void test_some_operations(void **state)
{
	struct probe_result r = {.verdict = PROBE_DOES_NOT, .value = 0x12, .words = "MAX: no"};
	struct rnic_observed seen;

	(void)state;
	assert_int_equal(start(PROBE_CALC, r, &seen), 0);
	assert_int_equal(seen.calc, 0x12);
}

static void test_no_chains(void **state)
{
	struct probe_result r = {.verdict = PROBE_DOES_NOT, .words = "no"};
	struct rnic_observed seen;

	(void)state;
	assert_int_equal(start(PROBE_CHAIN, r, &seen), -EIO);
	assert_int_equal(start(PROBE_MESSAGE_LIMIT, r, &seen), -EIO);
	r = (struct probe_result){.error = -EREMOTEIO, .words = "CREATE_QP fails"};
	assert_int_equal(start(PROBE_MESSAGE_LIMIT, r, &seen), -EREMOTEIO);
	r = (struct probe_result){.error = -ENOMEM, .words = "no memory"};
	assert_int_equal(start(PROBE_CHAIN, r, &seen), -ENOMEM);
}

/* The device refuses what one check needs: the daemon starts, and relies on nothing that was not seen */
static void test_not_tried(void **state)
{
	struct probe_result r = {.error = -EREMOTEIO, .words = "CREATE_QP fails"};
	struct rnic_observed seen;

	(void)state;
	assert_int_equal(start(PROBE_RECV_ENABLE, r, &seen), 0);
	assert_int_equal(ran, COUNT(checks) - 2);
	assert_false(seen.recv_enables);
	assert_true(seen.masked_atomics);
	assert_int_equal(start(PROBE_FETCH, r, &seen), 0);
	assert_int_equal(seen.fetch_group, 0);
	assert_int_equal(start(PROBE_ATOMICS, r, &seen), 0);
	assert_int_equal(seen.atomics, RNIC_ATOMICS_WRONG);
	assert_int_equal(start(PROBE_MASKED_ATOMICS, r, &seen), 0);
	assert_false(seen.masked_atomics);
	assert_int_equal(start(PROBE_FLUSH, r, &seen), 0);
	assert_false(seen.flushes_enabled_only);
	assert_int_equal(start(PROBE_CALC, r, &seen), 0);
	assert_int_equal(seen.calc, 0);
	/* but a shortage does not show what the device does */
	r.error = -EAGAIN;
	assert_int_equal(start(PROBE_MASKED_ATOMICS, r, &seen), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_some_operations),
		cmocka_unit_test(test_no_chains),
		cmocka_unit_test(test_not_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
