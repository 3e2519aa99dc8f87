/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a device whose events cannot be read any more. */
#include "reddnd/server/dispatch.h"

#include "reddnd/server/events.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static int error, events_fd, quiet_fd, async_fd;
static bool is_lost;
static unsigned reported, called;

/* ---- in place of the device ---- */

int __wrap_rnic_cm_fd(const struct rnic_cm *cm);
const char *__wrap_rnic_device_name(const struct rnic_device *dev);
int __wrap_rnic_device_event_fd(const struct rnic_device *dev);
int __wrap_rnic_device_async_fd(const struct rnic_device *dev);
int __wrap_rnic_device_next_event(struct rnic_device *dev, uint64_t *cookie);
bool __wrap_rnic_device_is_lost(const struct rnic_device *dev);
void __wrap_rnic_device_lose(struct rnic_device *dev);
void __wrap_report_device_lost(struct events *ev, const char *device);
int __wrap_collect_init(struct dispatch *d);
int __wrap_cpu_threads_new(struct cpu_threads **e, sd_event *event, struct rnic_device *dev,
	int (*wanted)(void *arg), void *arg);
int __wrap_connects_init(struct connects *c, sd_event *event, struct worker *registrar);

int __wrap_rnic_cm_fd(const struct rnic_cm *cm)
{
	return quiet_fd;
}

const char *__wrap_rnic_device_name(const struct rnic_device *dev)
{
	return "none";
}

int __wrap_rnic_device_event_fd(const struct rnic_device *dev)
{
	return events_fd;
}

int __wrap_rnic_device_async_fd(const struct rnic_device *dev)
{
	return async_fd;
}

int __wrap_rnic_device_next_event(struct rnic_device *dev, uint64_t *cookie)
{
	return error;
}

bool __wrap_rnic_device_is_lost(const struct rnic_device *dev)
{
	return is_lost;
}

void __wrap_rnic_device_lose(struct rnic_device *dev)
{
	is_lost = true;
}

void __wrap_report_device_lost(struct events *ev, const char *device)
{
	reported++;
}

int __wrap_collect_init(struct dispatch *d)
{
	return 0;
}

int __wrap_cpu_threads_new(
	struct cpu_threads **e, sd_event *event, struct rnic_device *dev, int (*wanted)(void *arg), void *arg)
{
	return 0;
}

int __wrap_connects_init(struct connects *c, sd_event *event, struct worker *registrar)
{
	return 0;
}

/* ---- */

/* The others go on */
static int on_lost(void *arg)
{
	struct dispatch *d = arg;

	called++;
	d->queue_source = sd_event_source_disable_unref(d->queue_source);
	return 0;
}

/* Returns true if the event loop goes on after the reading of an event has failed with @with */
static bool goes_on(int with)
{
	static struct record record;
	struct shared shared = {.record = &record};
	struct dispatch d = {.cm = NULL};
	struct dispatch_parts parts = {.shared = &shared, .lost = on_lost, .arg = &d};
	bool ends;

	error = with;
	is_lost = false;
	reported = called = 0;
	quiet_fd = eventfd(0, EFD_NONBLOCK);
	async_fd = eventfd(0, EFD_NONBLOCK);
	events_fd = eventfd(1, EFD_NONBLOCK);
	assert_true(sd_event_new(&parts.event) >= 0);
	assert_int_equal(dispatch_init(&d, &parts), 0);
	assert_true(sd_event_run(parts.event, UINT64_MAX) >= 0);
	ends = sd_event_get_exit_code(parts.event, &(int){0}) >= 0;
	sd_event_source_disable_unref(d.queue_source);
	sd_event_source_disable_unref(d.cm_source);
	sd_event_source_disable_unref(d.async_source);
	sd_event_source_disable_unref(d.round_timer);
	budgets_deinit(&d.budgets);
	sd_event_unref(parts.event);
	close(events_fd);
	close(quiet_fd);
	close(async_fd);
	return !ends;
}

/* After a removal, before the system reports it (Linux hw/mlx5/devx.c, devx_async_event_read) */
static void test_removed(void **state)
{
	assert_true(goes_on(-EIO));
	assert_true(is_lost);
	assert_int_equal(called, 1);
	assert_int_equal(reported, 1);
}

/* Events have got lost, and the device has not: the next daemon looks at all of its queues */
static void test_overflow(void **state)
{
	assert_false(goes_on(-EOVERFLOW));
	assert_false(is_lost);
	assert_int_equal(called, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
