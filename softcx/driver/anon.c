/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"
#include "util/file-limit.h"

#include <errno.h>
#include <stdatomic.h>

enum { MANY = 256 };

/* The mappings that have such a file. A slot is taken while fd is not 0. */
static struct slot {
	_Atomic int fd;
	_Atomic uint64_t start, end; /* where it was mapped; 0: is not yet */
	_Atomic uint64_t ino;
} slots[MANY];

int anon_new(size_t len)
{
	int saved = errno, fd = -1;

	for (unsigned i = 0; i < MANY && fd < 0; i++) {
		int none = 0;
		struct stat st;

		if (atomic_load(&slots[i].fd) || !atomic_compare_exchange_strong(&slots[i].fd, &none, -1))
			continue;
		fd = memfd_create("softcx-shared", MFD_CLOEXEC);
		if (fd >= 0)
			fd = sys_moved_high(fd);
		if (fd < 0 || len > file_limit() || ftruncate(fd, (off_t)len) < 0 || sys_fstat(fd, &st) < 0) {
			if (fd >= 0)
				sys_close(fd);
			atomic_store(&slots[i].fd, 0);
			fd = -1;
			break;
		}
		atomic_store(&slots[i].start, 0);
		atomic_store(&slots[i].end, 0);
		atomic_store(&slots[i].ino, st.st_ino);
		atomic_store(&slots[i].fd, fd);
	}
	errno = saved;
	return fd;
}

/** The application may have closed the descriptor, and another file may have its number. */
static void release(struct slot *slot)
{
	int fd = atomic_load(&slot->fd);
	struct stat st;

	if (sys_fstat(fd, &st) == 0 && st.st_ino == atomic_load(&slot->ino))
		sys_close(fd);
	atomic_store(&slot->fd, 0);
}

void anon_mapped(int fd, void *addr, size_t len)
{
	int saved = errno;

	for (unsigned i = 0; i < MANY; i++) {
		if (atomic_load(&slots[i].fd) != fd)
			continue;
		if (addr == MAP_FAILED) {
			release(&slots[i]);
		} else {
			atomic_store(&slots[i].end, (uintptr_t)addr + len);
			atomic_store(&slots[i].start, (uintptr_t)addr);
		}
		break;
	}
	errno = saved;
}

static int maps_file(const struct maps_entry *e, void *arg)
{
	return e->shared && e->ino == *(const uint64_t *)arg;
}

void anon_unmapped(void *addr, size_t len)
{
	uint64_t start = (uintptr_t)addr, end = start + len;
	int saved = errno;

	for (unsigned i = 0; i < MANY; i++) {
		uint64_t ino = atomic_load(&slots[i].ino);

		if (atomic_load(&slots[i].fd) <= 0 || start >= atomic_load(&slots[i].end) ||
			end <= atomic_load(&slots[i].start))
			continue;
		/* parts of it may still be there, or all of it elsewhere (mremap) */
		if (maps_each(maps_file, &ino) == 0)
			release(&slots[i]);
	}
	errno = saved;
}
