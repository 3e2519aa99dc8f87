/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - state that the processes of the fuzzer share, in a file that all of them map:
 * $SOFTCX_FUZZ_SHARED. Every member has one writer; a recent value is enough for readers.
 */
#ifndef SOFTCX_FUZZ_SHARED_H
#define SOFTCX_FUZZ_SHARED_H

#include "softcx/fuzz/conv.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * replay.c: one case of the fuzzer of sockets and commands: replays a recorded conversation with damage. A
 * step depends only on the seed, the number of the case and its own number, so steps can be left out.
 */

struct replay_setup {
	const char *dir; /* of the NIC */
	const struct conv *convs;
	unsigned nconvs;
	uint64_t seed;
};

struct replay_counts {
	uint64_t calls, done, good; /* sent, answered, answered with success */
};

/**
 * @skip: steps to leave out, or NULL; @nskip of them. Returns the number of steps that the case has.
 * @counts is added to.
 */
unsigned replay_case(const struct replay_setup *setup, uint64_t number, const bool *skip, unsigned nskip,
	struct replay_counts *counts);

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
