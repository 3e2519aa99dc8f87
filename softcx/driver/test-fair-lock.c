/* SPDX-License-Identifier: BSD-2-Clause */
/* test-fair-lock.c - who asked first has the lock first. */
#include "softcx/driver/fair-lock.h"
#include "util/array.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static struct fair_lock lock;
static unsigned order[4], norder; /* of those who had the lock */

static void wait_for_askers(uint32_t n)
{
	while (atomic_load(&lock.next) - atomic_load(&lock.serving) != n)
		sched_yield();
}

static void *ask(void *arg)
{
	fair_lock(&lock);
	order[norder++] = *(unsigned *)arg;
	fair_unlock(&lock);
	return NULL;
}

/* The main thread takes the lock again right after it has released it, and is the last in the row. */
static void test_first_come(void **state)
{
	unsigned name[3] = {1, 2, 3};
	pthread_t thread[3];

	for (unsigned round = 0; round < 1000; round++) {
		norder = 0;
		fair_lock(&lock);
		for (unsigned i = 0; i < COUNT(thread); i++) {
			assert_int_equal(pthread_create(&thread[i], NULL, ask, &name[i]), 0);
			wait_for_askers(i + 2);
		}
		fair_unlock(&lock);
		fair_lock(&lock);
		assert_int_equal(norder, 3);
		for (unsigned i = 0; i < COUNT(thread); i++)
			assert_int_equal(order[i], i + 1);
		fair_unlock(&lock);
		for (unsigned i = 0; i < COUNT(thread); i++)
			pthread_join(thread[i], NULL);
	}
}

enum { ADDITIONS = 100000 };

static void *add(void *arg)
{
	for (unsigned i = 0; i < ADDITIONS; i++) {
		fair_lock(&lock);
		++*(unsigned *)arg;
		fair_unlock(&lock);
	}
	return NULL;
}

static void test_excludes(void **state)
{
	unsigned sum = 0;
	pthread_t thread[2];

	for (unsigned i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add, &sum), 0);
	for (unsigned i = 0; i < COUNT(thread); i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sum, COUNT(thread) * ADDITIONS);
}

/* The child has none of the threads that wait in the parent. */
static void test_fork(void **state)
{
	unsigned name = 1;
	pthread_t thread;
	int status;
	pid_t pid;

	norder = 0;
	fair_lock(&lock);
	assert_int_equal(pthread_create(&thread, NULL, ask, &name), 0);
	wait_for_askers(2);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fair_lock_fork_child(&lock);
		fair_lock(&lock);
		fair_unlock(&lock);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fair_unlock(&lock);
	pthread_join(thread, NULL);
	assert_int_equal(norder, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_come),
		cmocka_unit_test(test_excludes),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
