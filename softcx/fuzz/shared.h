/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - state that the processes of the fuzzer share, in a file that all of them map:
 * $SOFTCX_FUZZ_SHARED. Every member has one writer; a recent value is enough for readers.
 */
#ifndef SOFTCX_FUZZ_SHARED_H
#define SOFTCX_FUZZ_SHARED_H

#include "softcx/fuzz/replay.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUZZ_APPS = 2 };

/** Where a program's memory and queues are. */
struct fuzz_place {
	uint64_t va;
	uint32_t key, qpn;
};

struct fuzz_shared {
	uint64_t rounds;             /* of the bystander */
	struct fuzz_place bystander; /* known to all, and still out of reach */
	struct fuzz_place app[FUZZ_APPS];
	uint64_t app_case[FUZZ_APPS], app_wqes[FUZZ_APPS];
	uint64_t number; /* of the case that is replayed */
	struct replay_counts counts;
};

static inline struct fuzz_shared *fuzz_shared_map(void)
{
	const char *path = getenv("SOFTCX_FUZZ_SHARED");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = mmap(NULL, sizeof(struct fuzz_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

#endif
