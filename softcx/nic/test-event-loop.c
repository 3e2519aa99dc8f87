/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop of the NIC process: a request to end that comes before the wait is not lost. */
#include "softcx/nic/event-loop.h"

#include <signal.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static struct event_loop loop;

static void on_signal(int sig)
{
	event_loop_wake(&loop);
}

static int poll_once(uint64_t timeout_ns)
{
	int n = event_loop_wait(&loop, timeout_ns);

	event_loop_serve(&loop);
	return n;
}

static void signal_before_wait(void **state)
{
	assert_int_equal(event_loop_init(&loop), 0);
	signal(SIGTERM, on_signal);
	raise(SIGTERM);
	raise(SIGTERM);
	/* Without a memory of the signals this would never return. */
	poll_once(UINT64_MAX);
	/* One round takes all of them. */
	assert_int_equal(poll_once(0), 0);
	event_loop_done(&loop);
}

struct pipe_source {
	struct source source;
	unsigned inputs;
};

static bool take(struct source *source)
{
	struct pipe_source *p = (struct pipe_source *)source;
	char c;

	p->inputs++;
	return read(source->fd, &c, 1) == 1;
}

static void destroy(struct source *source)
{
}

static void sources_are_served_beside(void **state)
{
	struct pipe_source p = {.source = {.input = take, .destroy = destroy}};
	int ends[2];

	assert_int_equal(event_loop_init(&loop), 0);
	assert_int_equal(pipe(ends), 0);
	p.source.fd = ends[0];
	assert_int_equal(event_loop_add(&loop, &p.source), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	event_loop_wake(&loop);
	poll_once(UINT64_MAX);
	assert_int_equal(p.inputs, 1);
	assert_int_equal(poll_once(0), 0);
	event_loop_remove(&loop, &p.source);
	close(ends[1]);
	event_loop_done(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_before_wait),
		cmocka_unit_test(sources_are_served_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
