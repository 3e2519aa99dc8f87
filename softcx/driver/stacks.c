/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/stacks.h"
#include "util/array.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

struct span {
	uint64_t start, end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct span spans[4096]; /* end 0: free */
static struct span initial_tcb;
static __thread struct span own __attribute__((tls_model("initial-exec")));

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void forget(void *arg)
{
	struct span *span = arg;

	if (!span)
		return;
	pthread_mutex_lock(&lock);
	*span = (struct span){0};
	pthread_mutex_unlock(&lock);
}

static struct span *note(void)
{
	pthread_attr_t attr;
	struct span *span = NULL;
	void *addr;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return NULL;
	if (pthread_attr_getstack(&attr, &addr, &size) == 0) {
		own = (struct span){(uintptr_t)addr, (uintptr_t)addr + size};
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < COUNT(spans) && !span; i++)
			if (!spans[i].end)
				span = &spans[i];
		if (span)
			*span = own;
		pthread_mutex_unlock(&lock);
	}
	pthread_attr_destroy(&attr);
	return span;
}

static void *thread_main(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	pthread_cleanup_push(forget, note());
	result = start.fn(start.arg);
	pthread_cleanup_pop(1);
	return result;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict thread,
	const pthread_attr_t *restrict attr, void *(*fn)(void *), void *restrict arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *start;
	int rc;

	if (!real)
		real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	start = malloc(sizeof(*start));
	if (!start)
		return EAGAIN;
	*start = (struct start){fn, arg};
	rc = real(thread, attr, thread_main, start);
	if (rc != 0)
		free(start);
	return rc;
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *sum)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(uint64_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

void stacks_init(void)
{
	/*
	 * The kernel writes to the control block (rseq) and so does this code (errno, in the thread-local
	 * variables below it): neither may become read-only, not for a moment. No more than these: the
	 * application's first mapping may begin right below.
	 */
	uint64_t tcb = (uintptr_t)pthread_self(), tls = 0;

	dl_iterate_phdr(add_tls, &tls);
	initial_tcb = (struct span){tcb - tls, tcb + 4096};
}

static bool touches(const struct span *span, uint64_t start, uint64_t end)
{
	return span->end && span->start < end && start < span->end;
}

bool stacks_touch(uint64_t start, uint64_t end)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0);
	/* Of a stack that is not noted; behind one that is there may be memory of any kind */
	struct span caller = {here - 65536, here + 65536};
	bool noted = touches(&own, here, here + 1);
	bool found = touches(&initial_tcb, start, end) || touches(&own, start, end) ||
		     (!noted && touches(&caller, start, end));

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < COUNT(spans) && !found; i++)
		found = touches(&spans[i], start, end);
	pthread_mutex_unlock(&lock);
	return found;
}

void stacks_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < COUNT(spans); i++)
		if (spans[i].start != own.start)
			spans[i] = (struct span){0};
}
