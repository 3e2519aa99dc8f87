/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udata.h - the input of a command and the place for its answer, as both ABIs carry them.
 *
 * Every command has a core part and a driver (mlx5) part, each with input and output. Write
 * commands put them into one buffer, ioctl methods into attributes; handlers see only this.
 * Either side may be longer or shorter than what is known here: older and newer libraries differ.
 */
#ifndef SOFTCX_UVERBS_UDATA_H
#define SOFTCX_UVERBS_UDATA_H

#include "softcx/proto/call.h"

struct uverbs_udata {
	const void *in; /* readable here; NULL when @in_len is 0 */
	size_t in_len;
	uint64_t out; /* address in the application */
	size_t out_len;
};

/**
 * Fills @dst with the first @len bytes of the input, zeroes where the input is shorter.
 * -EINVAL when it is shorter than @min.
 */
int uverbs_udata_in(const struct uverbs_udata *u, void *dst, size_t min, size_t len);
/** True if the input beyond @known is zero. A newer library that asks for more must be refused. */
bool uverbs_udata_cleared(const struct uverbs_udata *u, size_t known);
/** Stores as much of @src as the application has room for. */
int uverbs_udata_out(const struct uverbs_udata *u, struct nic_call *call, const void *src, size_t len);
/** Address of the byte @off of the output, for nic_call_fd(). */
uint64_t uverbs_udata_at(const struct uverbs_udata *u, size_t off);

#endif
