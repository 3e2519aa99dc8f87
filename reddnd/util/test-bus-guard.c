/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/bus-guard.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static volatile uint8_t seen;

static void look(void *arg)
{
	seen = *(volatile uint8_t *)arg;
}

static void outlives_files_that_are_cut_off(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *mem;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	mem = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(mem != MAP_FAILED);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(bus_guard(look, mem), 0);
		assert_int_equal(seen, 'x');
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(bus_guard(look, mem), -EFAULT);
		assert_int_equal(ftruncate(fd, 4096), 0);
		assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	}
	munmap(mem, 4096);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(outlives_files_that_are_cut_off)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
