/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.h - copies between ranges of memory of applications. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_COPY_H
#define SOFTCX_HW_COPY_H

#include "softcx/hw/hw.h"

/** Bytes that a key covers, resolved. @host is NULL when only a process has them. */
struct hw_span {
	uint8_t *host;
	uint64_t va;
	uint32_t len;
	struct hw_mem *mem; /* used only when @host is NULL */
};

/**
 * Copy @len bytes: out of spans, into spans, or from spans to spans. The spans hold at least @len bytes.
 * Every aligned 8-byte word of a source is read once and aligned words of a destination are stored whole, as
 * by DMA, except in the bulk of copies above 4 KiB. False: the memory of another process could not be
 * reached.
 */
bool hw_gather(void *dst, const struct hw_span *src, unsigned nsrc, uint32_t len);
bool hw_scatter(const struct hw_span *dst, unsigned ndst, const void *src, uint32_t len);
/** Like hw_scatter() of all that the spans hold, but the last span first: no order within a message is
 * promised. */
bool hw_scatter_backwards(const struct hw_span *dst, unsigned ndst, const void *src);
bool hw_copy(
	const struct hw_span *dst, unsigned ndst, const struct hw_span *src, unsigned nsrc, uint32_t len);

#endif
