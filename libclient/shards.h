/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shards.h - several sets of hosts in one handle, each with the table of some slots of a cluster of Redis.
 * Each set is a *shard*: a handle of its own, as one without shards, which the handle owns as it owns parts.
 * The handle itself has no session. It sends each key to the shard that has its slot.
 *
 * Which slots a shard has is stated by its table, with each reply (table-format.h, live.slots), and judged by
 * the reply itself: one of a table that does not have the slot is no answer, and the key goes to another
 * shard. So what is known of a shard only decides who is asked first.
 */
#ifndef LIBCLIENT_SHARDS_H
#define LIBCLIENT_SHARDS_H

#include "libclient/connection.h"

/** The shard that is asked for a key: one that has stated its slot, if there is one. */
struct reddn *reddn_shard_of(const struct reddn *whole, const void *key, size_t key_len);

/**
 * Requests that came to shards whose tables do not have their slots go to others: to the one that has stated
 * the slot; while there is none, from one to the next, with pauses. They are to be sent there. Call it at the
 * end of a poll, when whole->strays. True: some have ended instead, and are to be reported.
 */
bool reddn_shards_route(struct reddn *whole);

#endif
