/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restore.h - finds the bytes of an instance that must be restored before it can serve another request.
 *
 * Private to the builder. A byte must be put back if the instance writes it, and if anything of the instance
 * reads or fetches it without a step having written it before that always runs, and without whose success it
 * would not come to that. So bytes that a READ fills in each time need no restoring, nor does an opcode that
 * is copied from a lane each time, if the queue of the READ enables what has it; the lane does. The places of
 * a request are restored: a request that is too short leaves the last of them as they are.
 */
#ifndef CHAIN_IR_RESTORE_H
#define CHAIN_IR_RESTORE_H

#include "reddnd/chain/ir/layout.h"

/**
 * Fills in img->restores, and orders img->relocs accordingly. The order of steps is that of the run which
 * layout_check_flow() has found. This is enough for descriptions that chain_check_order() accepts: two
 * accesses to a byte are ordered in every run or in none. 0 or -ENOMEM.
 */
int layout_note_restores(const struct layout *l, struct chain_image *img);

#endif
