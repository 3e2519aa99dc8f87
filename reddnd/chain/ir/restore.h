/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restore.h - what of an instance must be put back before the same bytes can serve another request.
 *
 * Private to the builder. A byte must be put back if the instance writes it, and if anything of the instance
 * reads or fetches it without a step that always runs having written it before. So neither what a request or
 * a READ fills in each time, nor an opcode that is copied from a lane each time; but the lane is.
 */
#ifndef CHAIN_IR_RESTORE_H
#define CHAIN_IR_RESTORE_H

#include "reddnd/chain/ir/layout.h"

/**
 * Fills in img->restores. What comes before what is taken from one possible run of the instance, which is
 * enough for descriptions that chain_check_order() accepts: there, two accesses to a byte are ordered in
 * every run or in none. 0 or -ENOMEM.
 */
int layout_note_restores(const struct layout *l, struct chain_image *img);

#endif
