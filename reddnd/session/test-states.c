/* SPDX-License-Identifier: BSD-2-Clause */
/* Which steps of its state a session may take; any other is a mistake of ours, and aborts. */
#include "reddnd/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { STATES = SESSION_GONE + 1 };

static void take(enum session_state from, enum session_state to, bool adopted)
{
	struct session s = {.state = from, .adopted = adopted};

	if (!freopen("/dev/null", "w", stderr))
		_exit(EXIT_FAILURE);
	session_set_state(&s, to);
	_exit(s.state == to ? EXIT_SUCCESS : EXIT_FAILURE);
}

static bool may(enum session_state from, enum session_state to, bool adopted)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		take(from, to, adopted);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 0);
	return !WIFSIGNALED(status);
}

/* By state: those that may follow, as a mask */
static void steps(void **state)
{
	unsigned follow[STATES] = {
		[SESSION_ARMED] = 1 << SESSION_ACCEPTED | 1 << SESSION_ENDED,
		[SESSION_ACCEPTED] = 1 << SESSION_ESTABLISHED | 1 << SESSION_ENDED,
		[SESSION_ESTABLISHED] = 1 << SESSION_ENDED,
		[SESSION_ENDED] = 1 << SESSION_GONE,
	};

	for (unsigned adopted = 0; adopted < 2; adopted++) {
		follow[SESSION_MAKING] = 1 << (adopted ? SESSION_ACCEPTED : SESSION_ARMED);
		for (unsigned from = 0; from < STATES; from++)
			for (unsigned to = 0; to < STATES; to++)
				assert_int_equal(may(from, to, adopted), follow[from] >> to & 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
