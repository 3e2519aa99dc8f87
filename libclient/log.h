/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - what a reader of a log learns from the reply of log-read.rdn. Pure functions; test-log.c explores
 * all interleavings of those who append and one who reads.
 *
 * The rules that a log rests on:
 *   - A number is drawn by one fetch-and-add, and is the entry's for good: its low bits are the place.
 *   - Whoever has drawn it fills the entry only if that of a lap ago is filled, and counts the lap after
 * that. So no two write to a place at a time, and none writes there that is late by a lap.
 *   - A reader takes an entry if its lap was counted before the entry was read, and if the number of a lap
 * later is not drawn after that.
 *   - What is drawn and not filled is waited for as long as a request may take, and then passed: from when it
 * was known to be drawn to when that reply was asked for. That is one wait for all that were drawn then. Who
 * has passed the number of a lap before as well does not wait if that one is not filled either: its request
 * is over, and this one finds that.
 */
#ifndef LIBCLIENT_LOG_H
#define LIBCLIENT_LOG_H

#include "libclient/reddn.h"

/** As in log-append.rdn, and log-read.rdn. */
enum {
	REDDN_LOG_RING = 1 << 24, /* bytes of all entries */
	REDDN_LOG_HEADER = 8,     /* of an entry: laps, and the length of the value */
	REDDN_LOG_ENTRY = 24,     /* of a reply, before the entry: tail, bytes of an entry, its header */
	REDDN_LOG_ENTRY_MAX = 256,
	REDDN_LOG_REPLY = 64, /* without an entry; with one, which is a multiple of that, so much more */
};

/** Where entry @number is, of @size bytes. */
static inline uint64_t reddn_log_place(uint64_t number, uint32_t size)
{
	return number * size % REDDN_LOG_RING;
}

/**
 * A reply about l->next, whose entry has @size bytes, received at this time, in ns. 0: it is there.
 * REDDN_AGAIN, -EAGAIN, -ESTALE: as of reddn_log_result. -EPROTO: the reply is none of such a log.
 */
int reddn_log_learn(struct reddn_log *l, const uint8_t *reply, uint32_t size, uint64_t received);

/** l->next was read, or is given up. */
void reddn_log_pass(struct reddn_log *l);

#endif
