/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int source_map(struct source_file *f, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC), r = 0;
	void *mem = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0)
		mem = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		r = -errno;
		perror(path);
	} else {
		*f = (struct source_file){.mem = mem, .size = (size_t)st.st_size};
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int source_register(struct source_file *f, struct ibv_pd *pd, int more_access)
{
	if (!f->mr)
		f->mr = ibv_reg_mr(pd, f->mem, f->size, IBV_ACCESS_REMOTE_READ | more_access);
	return f->mr ? 0 : -errno;
}

void source_unmap(struct source_file *f)
{
	if (f->mr)
		ibv_dereg_mr(f->mr);
	if (f->mem)
		munmap(f->mem, f->size);
	*f = (struct source_file){0};
}
