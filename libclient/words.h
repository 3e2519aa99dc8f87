/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words.h - words of the server that clients share: what a lock asks of its word, and what it learns from the
 * reply (reddn.h has the meaning of the bits). Pure functions; test-words.c explores all interleavings.
 *
 * The rules that a lock rests on:
 *   - Taking it makes the token grow, in the same swap.
 *   - A lease is ended by the swap that takes the lock, which expects the whole word that was seen for so
 * long.
 *   - A renewal changes the word, and comes when half of the lease is over: 2^16 of them, after which the
 *     word is the same again, take 2^15 leases.
 *   - A waiter that saw the word longer ago, with a margin, begins anew.
 *   - A holder counts its lease from before it asked, a waiter from after it was answered.
 */
#ifndef LIBCLIENT_WORDS_H
#define LIBCLIENT_WORDS_H

#include "libclient/reddn.h"

#define REDDN_WORD_HELD (1ull << 63)
#define REDDN_WORD_TOKEN_SHIFT 16
#define REDDN_WORD_RENEWALS ((1ull << REDDN_WORD_TOKEN_SHIFT) - 1)
#define REDDN_WORD_TOKEN (~(REDDN_WORD_HELD | REDDN_WORD_RENEWALS))

/**
 * At @now, in ns: the word is to become l->next if it is l->seen. Both are equal if there is nothing but to
 * look. 0; -EINVAL, -EDEADLK, -EOVERFLOW, -EPERM: as reddn_lock_submit.
 */
int reddn_lock_ask(struct reddn_lock *l, enum reddn_lock_step step, uint64_t now);

/** The word @was this when it was compared, and that is known at @now. Returns what reddn_lock_result does.
 */
int reddn_lock_learn(struct reddn_lock *l, uint64_t was, uint64_t now);

#endif
