/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a device whose self-test fails, of one that there was no memory to test, and of one that is
 * left out. */
#include "reddnd/probe/probe.h"
#include "reddnd/server/devices.c"
#include "reddnd/server/devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* ---- assign ---- */

/* Of the addresses 10.0.0.1, 10.0.0.2 and so on */
static struct catalog with(const char *first, const char *second, unsigned addresses)
{
	struct catalog c = {.nlisten = addresses};

	for (unsigned i = 0; i < addresses; i++) {
		c.listen[i].port = 7471;
		snprintf(c.listen[i].address, sizeof(c.listen[i].address), "10.0.0.%u", i + 1);
	}
	if (first)
		strcpy(c.devices[c.ndevices++], first);
	if (second)
		strcpy(c.devices[c.ndevices++], second);
	return c;
}

static void refused(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], const char *words)
{
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_int_equal(assign_devices(c, belongs, &a, why), -EINVAL);
	assert_string_equal(why, words);
}

/* Nobody asks what addresses belong to: the device is opened, and compared then */
static void test_one(void **state)
{
	const struct catalog none = with(NULL, NULL, 2), one = with("a", NULL, 2);
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_false(assign_asks(&none));
	assert_int_equal(assign_devices(&none, NULL, &a, why), 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.name[0], "");
	assert_int_equal(a.of[1], 0);
	assert_false(assign_asks(&one));
	assert_int_equal(assign_devices(&one, NULL, &a, why), 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.name[0], "a");
}

static void test_list(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"b", "a", "b"};
	const struct catalog c = with("a", "b", 3);
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_true(assign_asks(&c));
	assert_int_equal(assign_devices(&c, belongs, &a, why), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[0], "a");
	assert_int_equal(a.of[0], 1);
	assert_int_equal(a.of[1], 0);
	assert_int_equal(a.of[2], 1);
}

/* In the order of the addresses */
static void test_all(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"b", "a", "b"};
	struct catalog c = with(NULL, NULL, 3);
	char why[ASSIGN_WHY];
	struct assignment a;

	c.all_devices = true;
	assert_true(assign_asks(&c));
	assert_int_equal(assign_devices(&c, belongs, &a, why), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[0], "b");
	assert_string_equal(a.name[1], "a");
	assert_int_equal(a.of[1], 1);
	assert_int_equal(a.of[2], 0);
}

static void test_mistakes(void **state)
{
	static const char elsewhere[][CATALOG_DEVICE_BYTES] = {"a", "c"},
			  any[][CATALOG_DEVICE_BYTES] = {"a", ""},
			  lonely[][CATALOG_DEVICE_BYTES] = {"a", "a"};
	const struct catalog c = with("a", "b", 2);
	struct catalog all = with(NULL, NULL, 2);

	refused(&c, elsewhere,
		"\"listen\": 10.0.0.2 port 7471 belongs to c, which is not in the list \"device\"; "
		"add it, or listen on an address of a device that is");
	refused(&c, any,
		"\"listen\": 10.0.0.2 port 7471 belongs to no device in particular; "
		"with several devices, give addresses of each");
	refused(&c, lonely,
		"no address of \"listen\" belongs to b, which is in the list \"device\"; add one, or take it "
		"out");
	all.all_devices = true;
	refused(&all, any,
		"\"listen\": 10.0.0.2 port 7471 belongs to no device in particular; "
		"with several devices, give addresses of each");
}

static void test_too_many(void **state)
{
	struct catalog c = with(NULL, NULL, CATALOG_DEVICES_MAX + 1);
	char belongs[CATALOG_LISTEN_MAX][CATALOG_DEVICE_BYTES];

	c.all_devices = true;
	for (unsigned i = 0; i < c.nlisten; i++)
		snprintf(belongs[i], sizeof(belongs[i]), "d%u", i);
	refused(&c, belongs, "the addresses of \"listen\" belong to more than 8 devices");
}

/* What was in force is served as far as it can be: addresses have gone, or belong to others now */
static void test_again(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"a", "", "c"},
			  none[][CATALOG_DEVICE_BYTES] = {"", "", ""};
	struct catalog c = with("a", "b", 3);
	struct assignment a;

	assign_again(&c, belongs, &a);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[1], "b");
	assert_int_equal(a.of[0], 0);
	assert_int_equal(a.of[1], ASSIGN_MISSING);
	assert_int_equal(a.of[2], ASSIGN_MISSING);

	c = with(NULL, NULL, 3);
	c.all_devices = true;
	assign_again(&c, belongs, &a);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[1], "c");
	assert_int_equal(a.of[1], ASSIGN_MISSING);
	assert_int_equal(a.of[2], 1);
	assign_again(&c, none, &a);
	assert_int_equal(a.n, 0);

	c = with("a", NULL, 3);
	assign_again(&c, none, &a);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.of[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_chains),
		cmocka_unit_test(test_runs_none),
		cmocka_unit_test(test_shortage),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
