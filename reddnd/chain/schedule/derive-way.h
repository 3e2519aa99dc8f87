/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive-way.h - private to derive*.c: orders a text in one way. It goes through the text once, and puts each
 * step where its queue ends, behind the barriers that it needs there; derive.h lists these.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_WAY_H
#define CHAIN_SCHEDULE_DERIVE_WAY_H

#include "reddnd/chain/schedule/derive-attempt.h"

/**
 * Orders @t into @out. 0: the order passes chain_check_order(); CHAIN_REFUSED and the reason in @err: this
 * way leads to no order that does; -ENOMEM.
 */
int way_order(struct text *t, struct way way, struct derived *out, struct chain_error *err);

#endif
