/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/mm.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct mapping {
	struct hw_mem mem;
	uint8_t *base; /* NULL: nothing is mapped */
	size_t size;
	LIST_ENTRY(mapping) link;
};

LIST_HEAD(mapping_list, mapping);
static struct mapping_list mappings = LIST_HEAD_INITIALIZER(mappings);
static struct mapping_list released = LIST_HEAD_INITIALIZER(released);

/** Synchronous, in a thread that has the hardware or a part of it: the list, for which it takes all of it, is
 * not being changed while the thread touches memory. */
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	static const char why[] =
		"softcx-nic: access beyond the end of a file that an application registered\n";
	uint8_t *addr = info->si_addr;
	struct mapping *m;

	(void)context;
	LIST_FOREACH (m, &mappings, link) {
		if (!m->base || addr < m->base || addr >= m->base + m->size)
			continue;
		if (mmap((void *)((uintptr_t)addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			break;
		if (write(STDERR_FILENO, why, sizeof(why) - 1) < 0)
			return;
		return;
	}
	signal(sig, SIG_DFL);
}

int mm_init(void)
{
	struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	return sigaction(SIGBUS, &act, NULL) < 0 ? -errno : 0;
}

static void mapping_release(struct hw_mem *mem)
{
	struct mapping *m = mem->priv;

	LIST_REMOVE(m, link);
	LIST_INSERT_HEAD(&released, m, link);
}

struct mm_released *mm_take_released(void)
{
	struct mapping *m = LIST_FIRST(&released);

	if (m)
		LIST_REMOVE(m, link);
	return (struct mm_released *)m;
}

void mm_unmap(struct mm_released *gone)
{
	struct mapping *m = (struct mapping *)gone;

	if (m->base)
		munmap(m->base, m->size);
	free(m);
}

/** Page size of the file behind @fd: hugetlbfs can be mapped in its own pages only. */
static uint64_t file_page(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : PAGE;
}

static int check(uint64_t va, uint64_t len, const struct mm_piece *pieces, unsigned n)
{
	uint64_t next;

	if (n == 0 || len == 0 || pieces[0].va > va)
		return -EINVAL;
	next = pieces[0].va;
	for (unsigned i = 0; i < n; i++) {
		const struct mm_piece *p = &pieces[i];

		if (p->va != next || p->len == 0 || p->va % PAGE || p->len % PAGE || p->va + p->len < p->va ||
			(p->fd < 0 && n > 1))
			return -EINVAL;
		next = p->va + p->len;
	}
	return va + len < va || next < va + len ? -EINVAL : 0;
}

/* A file system whose pages are never written back. Memory of an application is in a memfd. */
static bool in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

static int map_pieces(struct mapping *m, const struct mm_piece *pieces, unsigned n)
{
	uint64_t total = pieces[n - 1].va + pieces[n - 1].len - pieces[0].va;
	uint64_t page = n == 1 ? file_page(pieces[0].fd) : PAGE;
	uint64_t skew = pieces[0].offset % page; /* of a huge page that begins before the range */
	int prot = PROT_READ | (m->mem.writable ? PROT_WRITE : 0);
	uint8_t *at;

	for (unsigned i = 0; i < n; i++)
		if (m->mem.writable && !in_memory(pieces[i].fd))
			return -EFAULT;
	m->size = total + 3 * page;
	m->base = mmap(NULL, m->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->base == MAP_FAILED) {
		m->base = NULL;
		return -errno;
	}
	at = (uint8_t *)(((uintptr_t)m->base + page - 1) / page * page);
	m->mem.host = at + skew + (m->mem.va - pieces[0].va);
	if (n == 1) {
		uint64_t len = (skew + total + page - 1) / page * page;

		return mmap(at, len, prot, MAP_SHARED | MAP_FIXED, pieces[0].fd,
			       (off_t)(pieces[0].offset - skew)) == MAP_FAILED
			       ? -errno
			       : 0;
	}
	for (unsigned i = 0; i < n; i++)
		if (mmap(at + (pieces[i].va - pieces[0].va), pieces[i].len, prot, MAP_SHARED | MAP_FIXED,
			    pieces[i].fd, (off_t)pieces[i].offset) == MAP_FAILED)
			return -errno;
	return 0;
}

int mm_new(struct hw_mem **mem, uint64_t va, uint64_t len, bool writable, pid_t pid,
	const struct mm_piece *pieces, unsigned n)
{
	struct mapping *m;
	int rc = check(va, len, pieces, n);

	if (rc < 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->mem = (struct hw_mem){.va = va,
		.len = len,
		.pid = pid,
		.writable = writable,
		.refs = 1,
		.release = mapping_release,
		.priv = m};
	if (pieces[0].fd >= 0)
		rc = map_pieces(m, pieces, n);
	if (rc < 0) {
		mm_unmap((struct mm_released *)m);
		return rc;
	}
	*mem = &m->mem;
	return 0;
}

void mm_add(struct hw_mem *mem)
{
	struct mapping *m = mem->priv;

	LIST_INSERT_HEAD(&mappings, m, link);
}
