/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.h - makes ranges of this process's memory reachable for the NIC process.
 *
 * Shared file mappings (memfd, tmpfs, files) are handed over as they are. Private memory is converted in
 * place: its pages move into a memfd, the pool, that is mapped over the same addresses, so that the NIC
 * can map it as well and both see one memory for as long as either lives. While a page moves, other threads
 * can read it; one that writes to it faults, waits in a SIGSEGV handler until the page is back and writes
 * then. (System calls of other threads that write to such a page in these microseconds fail with EFAULT.)
 *
 * Never converted: thread stacks, thread control blocks and the kernel's special mappings; private huge pages
 * only where a queue lies in them, which makes them small ones; and what a limit of file sizes (ulimit -f)
 * has no room for, unless a queue lies in it. They are reached through process_vm_readv/writev instead.
 *
 * Nothing is remembered about converted ranges: what is shared is read from /proc/self/maps each time, so
 * memory that was unmapped, moved or reused is never mistaken.
 *
 * Threads: mem_resolve() by one at a time (device.c holds its lock). Errors: negative errno; -EFBIG: the
 * process may not make files as large (ulimit -f), and a queue needs one.
 */
#ifndef SOFTCX_DRIVER_MEM_H
#define SOFTCX_DRIVER_MEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mem_piece {
	uint64_t va, len; /* page aligned */
	uint64_t offset;
	int fd; /* -1: by process_vm only */
};

struct mem_list {
	const struct mem_piece *pieces; /* ascending, without gaps, covering the range */
	unsigned n;
};

/**
 * Resolves [@va, @va + @len), widened to whole pages. -EFAULT when some of it is not mapped, not readable
 * (or writable, if asked), or when @direct is asked and it cannot be shared. The result is valid until
 * mem_list_done().
 */
int mem_resolve(uint64_t va, uint64_t len, bool writable, bool direct, struct mem_list *out);
void mem_list_done(struct mem_list *list);

/* Around fork: the child's converted ranges become private copies before either side runs on. */
void mem_fork_prepare(void);
void mem_fork_parent(void);
void mem_fork_child(void);

/** After madvise(MADV_DONTNEED) of private memory the application may expect zeros, converted or not. */
void mem_discarded(void *addr, size_t len);

/*
 * Reads /proc/self/maps. Allocates nothing and takes no lock, so that it can be used in a
 * forked child and in a signal handler.
 */

struct maps_entry {
	uint64_t start, end;
	int prot; /* PROT_* */
	bool shared;
	uint64_t offset;
	dev_t dev;
	uint64_t ino;
	const char *path; /* "" for anonymous memory; valid during the callback only */
};

/**
 * Calls @fn for every mapping in ascending order until it returns non-zero, and returns that; 0 at the
 * end, -errno when the file cannot be read.
 */
int maps_each(int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

/**
 * The same without the mappings that end at @addr or before. Linux 6.11 finds the first one without a look at
 * them, however many there are; earlier ones read all.
 */
int maps_from(uint64_t addr, int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

/*
 * The addresses of this process's thread stacks. /proc does not have them, so pthread_create is
 * interposed: every thread notes its own stack before it runs and removes it at its end.
 *
 * Threads: any.
 */

/** Notes the control block of the initial thread; called once, by it. */
void stacks_init(void);
/** In a forked child: only the caller is left. */
void stacks_fork_child(void);

#endif
