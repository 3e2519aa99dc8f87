/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file-limit.h - how large a file this process may make.
 */
#ifndef UTIL_FILE_LIMIT_H
#define UTIL_FILE_LIMIT_H

#include <stdint.h>
#include <sys/resource.h>

/** Bytes, at most (ulimit -f, LimitFSIZE=); UINT64_MAX: there is no limit. To make a larger one is EFBIG if
 * the process ignores SIGXFSZ, and else ends it. */
static inline uint64_t file_limit(void)
{
	struct rlimit most;

	return getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur == RLIM_INFINITY ? UINT64_MAX
										    : most.rlim_cur;
}

#endif
