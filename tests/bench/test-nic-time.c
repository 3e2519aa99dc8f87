/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/nic-time.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static const uint64_t enough_ns = 20000000;

static void *work(void *arg)
{
	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < enough_ns)
		;
	return arg;
}

/* The NIC executes queues in a thread beside the first one. */
static void test_counts_all_threads(void **state)
{
	int done[2], status;
	pthread_t thread;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(done), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
			write(done[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(done[1]);
	assert_int_equal(read(done[0], &byte, 1), 1);
	assert_true(nic_time_cpu((unsigned)pid) >= (double)enough_ns * 1e-9);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(done[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts_all_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
