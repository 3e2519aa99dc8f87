/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cleanup.h - release the resource of a variable when it goes out of scope.
 *
 * CLEANUP(fn) calls fn(&variable). DEFINE_CLEANUP derives such an fn, named <fn>p, from a destructor that
 * takes the value; it does not pass NULL on. steal_*() returns the value and leaves NULL or -1 in the
 * variable, so that ownership moves to the caller.
 */
#ifndef UTIL_CLEANUP_H
#define UTIL_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define DEFINE_CLEANUP(type, fn)                                                                             \
	static inline void fn##p(type *p)                                                                    \
	{                                                                                                    \
		if (*p)                                                                                      \
			fn(*p);                                                                              \
	}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/** For a file descriptor; negative means none. */
static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline int steal_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define steal_ptr(p)                                                                                         \
	({                                                                                                   \
		__typeof__(*(p)) *steal_from = (p), steal_value = *steal_from;                               \
		*steal_from = NULL;                                                                          \
		steal_value;                                                                                 \
	})

#endif
