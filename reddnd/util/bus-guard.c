/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/bus-guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static _Thread_local sigjmp_buf back;
static _Thread_local volatile bool guarded;

/* Elsewhere it is as fatal as without the guard */
static void on_bus(int sig)
{
	if (guarded)
		siglongjmp(back, 1);
	signal(sig, SIG_DFL);
}

static void install(void)
{
	struct sigaction act = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};

	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, NULL);
}

int bus_guard(void (*work)(void *arg), void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	/* SA_NODEFER: the mask is the same before and after, and need not be saved */
	if (sigsetjmp(back, 0)) {
		guarded = false;
		return -EFAULT;
	}
	guarded = true;
	work(arg);
	guarded = false;
	return 0;
}
