/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mm.h - memory of applications, mapped here. A range may consist of several pieces of several files; they
 * are mapped side by side, so that the hardware sees one contiguous range.
 *
 * Linux since 6.5 pins no pages of a file that lies on a disk so that a device can write to them: mm/gup.c,
 * writable_file_mapping_allowed(). Neither does this: -EFAULT.
 *
 * A file may become shorter than what is mapped: an access beyond its end meets zeros (the page is replaced,
 * see mm_init) and never kills the NIC.
 *
 * Threads: mm_new() and mm_unmap(), which take long, may be called without the hardware (hardware.h), the
 * others need it. Errors: negative errno.
 */
#ifndef SOFTCX_NIC_MM_H
#define SOFTCX_NIC_MM_H

#include "softcx/hw/hw.h"

struct mm_piece {
	uint64_t va, len; /* whole pages */
	uint64_t offset;
	int fd; /* -1: reached by process_vm only; then it must be the only piece */
};

/** Installs the SIGBUS handler. Once, before anything is mapped. */
int mm_init(void);

/**
 * Makes a hw_mem with one reference for [@va, @va + @len) of process @pid. @pieces must cover that range in
 * ascending order without gaps: -EINVAL otherwise. Descriptors stay the caller's and may be closed at once.
 * The hardware may use it after mm_add().
 */
int mm_new(struct hw_mem **mem, uint64_t va, uint64_t len, bool writable, pid_t pid,
	const struct mm_piece *pieces, unsigned n);
void mm_add(struct hw_mem *mem);

/** One whose last reference is gone, or NULL. The caller passes it to mm_unmap(). */
struct mm_released *mm_take_released(void);
void mm_unmap(struct mm_released *gone);

#endif
