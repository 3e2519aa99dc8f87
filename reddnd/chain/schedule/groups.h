/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * groups.h - lays out a chain for a device that fetches WQEBBs of a managed queue in groups, past the enabled
 * index (chain_desc.fetch_group): a WQE that is patched must not share a group with one that is enabled
 * before the patch has landed.
 *
 * What is enabled together is a *run*: the head of a queue, what a SEND_EN adds to that, and so on to the end
 * of the instance. NOPs make each run as long as whole groups. They come first in it, since the CQE of the
 * last step of the reply has to come last; in a head they come last, since that begins with the WAIT for the
 * request. A NOP is one work request and up to four WQEBBs.
 */
#ifndef CHAIN_SCHEDULE_GROUPS_H
#define CHAIN_SCHEDULE_GROUPS_H

#include "reddnd/chain/ir/build.h"

/**
 * Pads the ordered chain @d. @steps and @queues are those that it points to, the first with room for
 * CHAIN_MAX_STEPS. 0; CHAIN_REFUSED with the reason in @err: too many steps; -ENOMEM.
 */
int chain_fill_groups(struct chain_desc *d, struct chain_step *steps, struct chain_queue_desc *queues,
	struct chain_error *err);

#endif
