/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * old-kernel.c - preloaded into a daemon: Linux before 6.2, which pins memory for a device only if the
 * mapping can be written, whatever the device may do there (drivers/infiniband/core/umem.c: FOLL_WRITE,
 * FOLL_FORCE).
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>

static bool can_be_written(uintptr_t at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	bool found = false;
	char line[512], mode[5];

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 && at >= start && at < end;
	if (maps)
		fclose(maps);
	return found && mode[1] == 'w';
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *mem, size_t size, uint64_t iova, unsigned access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, uint64_t, unsigned))
			dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");

	if (!can_be_written((uintptr_t)mem)) {
		errno = EFAULT;
		return NULL;
	}
	return real(pd, mem, size, iova, access);
}
