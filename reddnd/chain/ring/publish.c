/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/publish.h"

#include "mlx5/wqe.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

struct chain_outcome chain_outcome(const struct chain_image *img, const uint8_t *wqes, const uint8_t *scratch)
{
	const struct chain_publish *p = &img->publish;
	const uint8_t *cas = wqes + p->offset;
	struct chain_outcome o = {.tried = cas[WQE_OPCODE] == WQE_OP_CAS,
		.place = wqe_get64(cas + WQE_RADDR),
		.old = wqe_get64(cas + WQE_ATOMIC + sizeof(uint64_t)),
		.now = wqe_get64(cas + WQE_ATOMIC)};
	uint64_t was;

	assert(p->there);
	memcpy(&was, scratch + p->was, sizeof(was));
	was = p->swapped ? be64toh(was) : le64toh(was);
	o.published = o.tried && was == o.old;
	return o;
}
