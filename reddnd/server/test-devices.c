/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a device whose self-test fails, of one that there was no memory to test, and of one that is
 * left out. */
#include "reddnd/server/devices.c"

#include "reddnd/probe/probe.h"

#include <errno.h>
#include <stdio.h>

#include "tests/lib/cmocka.h"

static struct rnic_caps caps;
static int master_error, probe_error;
static unsigned freed;
static const struct rnic_arena *arena_of_test; /* NULL: that of sessions */
static const struct rnic_arena *arena_of_master;

/* ---- in place of the device ---- */

const char *__wrap_rnic_device_name(const struct rnic_device *dev);
struct rnic_pd *__wrap_rnic_device_pd(const struct rnic_device *dev);
const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev);
void __wrap_rnic_device_deny_chains(struct rnic_device *dev, const char *why);
void __wrap_rnic_device_set_observed(struct rnic_device *dev, const struct rnic_observed *observed);
int __wrap_master_qp_init(struct master_qp *m, struct rnic_pd *pd, struct rnic_arena *arena);
void __wrap_master_qp_deinit(struct master_qp *m);
int __wrap_probe_at_start(const struct probe_attr *attr, bool fences, struct rnic_observed *seen);

const char *__wrap_rnic_device_name(const struct rnic_device *dev)
{
	return "none";
}

struct rnic_pd *__wrap_rnic_device_pd(const struct rnic_device *dev)
{
	return NULL;
}

const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev)
{
	return &caps;
}

void __wrap_rnic_device_deny_chains(struct rnic_device *dev, const char *why)
{
	snprintf(caps.no_chains, sizeof(caps.no_chains), "%s", why);
}

void __wrap_rnic_device_set_observed(struct rnic_device *dev, const struct rnic_observed *observed)
{
}

int __wrap_master_qp_init(struct master_qp *m, struct rnic_pd *pd, struct rnic_arena *arena)
{
	arena_of_master = arena;
	return master_error;
}

void __wrap_master_qp_deinit(struct master_qp *m)
{
	freed++;
}

int __wrap_probe_at_start(const struct probe_attr *attr, bool fences, struct rnic_observed *seen)
{
	arena_of_test = arena_of_master;
	*seen = (struct rnic_observed){0};
	return probe_error;
}

/* ---- */

static int start(int of_master, int of_probe, bool in_use)
{
	struct master_qp master = {0};

	caps = (struct rnic_caps){0};
	master_error = of_master;
	probe_error = of_probe;
	freed = 0;
	return device_test(NULL, NULL, &master, false, in_use);
}

static void test_runs_chains(void **state)
{
	assert_int_equal(start(0, 0, false), 0);
	assert_string_equal(caps.no_chains, "");
}

/* The CPU serves instead, unless chains of a daemon before this one run there */
static void test_runs_none(void **state)
{
	assert_int_equal(start(0, -EIO, false), 0);
	assert_string_not_equal(caps.no_chains, "");
	assert_int_equal(freed, 1);
	assert_int_equal(start(-EINVAL, 0, false), 0);
	assert_string_not_equal(caps.no_chains, "");
	assert_int_equal(start(0, -EIO, true), -EIO);
	assert_string_equal(caps.no_chains, "");
}

static void test_shortage(void **state)
{
	static const int shortages[] = {-ENOMEM, -ENOSPC, -EAGAIN, -EBUSY, -EMFILE};

	for (unsigned i = 0; i < sizeof(shortages) / sizeof(*shortages); i++) {
		assert_int_equal(start(shortages[i], 0, false), shortages[i]);
		assert_string_equal(caps.no_chains, "");
		assert_int_equal(start(0, shortages[i], false), shortages[i]);
		assert_string_equal(caps.no_chains, "");
	}
}

/* Sessions that go on may have all of their arena */
static void test_beside(void **state)
{
	assert_int_equal(start(0, 0, false), 0);
	assert_null(arena_of_test);
	assert_int_equal(start(0, 0, true), 0);
	assert_non_null(arena_of_test);
	assert_null(arena_of_master);
	assert_int_equal(freed, 1);
}

/* reddnctl and the metrics list what is left out, and have a name for each */
static void test_left_out(void **state)
{
	struct assignment assignment = {.n = 1};
	struct devices devices = {0};
	struct catalog catalog = {0};
	const struct opening o = {.catalog = &catalog, .assignment = &assignment};

	note_left_out(&devices, &o, -EADDRINUSE);
	assert_int_equal(devices.nleft_out, 0);
	snprintf(assignment.name[0], sizeof(assignment.name[0]), "no-such-device");
	note_left_out(&devices, &o, -ENODEV);
	assert_int_equal(devices.nleft_out, 1);
	assert_string_equal(devices.left_out[0].why, "there is no such device");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_chains),
		cmocka_unit_test(test_runs_none),
		cmocka_unit_test(test_shortage),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
