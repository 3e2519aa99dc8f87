/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/udata.h"

#include <errno.h>
#include <string.h>

int uverbs_udata_in(const struct uverbs_udata *u, void *dst, size_t min, size_t len)
{
	size_t n = u->in_len < len ? u->in_len : len;

	if (u->in_len < min)
		return -EINVAL;
	if (n)
		memcpy(dst, u->in, n);
	memset((uint8_t *)dst + n, 0, len - n);
	return 0;
}

bool uverbs_udata_cleared(const struct uverbs_udata *u, size_t known)
{
	for (size_t i = known; i < u->in_len; i++)
		if (((const uint8_t *)u->in)[i])
			return false;
	return true;
}

int uverbs_udata_out(const struct uverbs_udata *u, struct nic_call *call, const void *src, size_t len)
{
	size_t n = u->out_len < len ? u->out_len : len;

	return n ? nic_call_store(call, u->out, src, n) : 0;
}

uint64_t uverbs_udata_at(const struct uverbs_udata *u, size_t off)
{
	return u->out + off;
}
