/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * part.h - parts of an offload: other offloads of the same server, named after it (wire.h), that serve some
 * of the requests of its handle: puts and deletes, those on a condition, gets of several keys, and questions
 * which keys exist, each of the latter for as many keys as one request of theirs has. To a handle a part is
 * another handle, with a session of its own, that it owns.
 *
 * The first request for a part makes its handle, which then connects, as after a loss: in steps of
 * reddn_poll(). What only the part can answer waits for that. Gets do not: the handle itself answers them, as
 * long as the part has no session. A part connects only while it has requests, or for gets to come, so that a
 * session that ended because nobody used it is made again when somebody does.
 *
 * Of several hosts a part has a standby of its own, as its handle does, and goes to another host by itself:
 * it may be with another one than the handle, also one that has no such part.
 */
#ifndef LIBCLIENT_PART_H
#define LIBCLIENT_PART_H

#include "libclient/connection.h"

/**
 * Find the handle for puts and deletes of @c, without a condition (REDDN_PUT) or with one (REDDN_PUT_IF): its
 * part, or @c itself, if it is one of these. 0. -EINVAL: it takes none, or must not. -ENOMEM, -EMFILE and
 * others: the part cannot be made.
 */
int reddn_part_of_puts(struct reddn *c, enum reddn_shape shape, struct reddn **puts);

/**
 * Find the handle for one submission of @n keys that are to be got (REDDN_TABLE), or of which is asked if
 * they exist (REDDN_EXISTS): the part that needs the fewest bytes for so many, or @c itself. 0. -EINVAL: none
 * takes so many, or any; without keys, too. Other errors as of puts.
 */
int reddn_part_of_keys(struct reddn *c, enum reddn_shape shape, unsigned n, struct reddn **to);

/** The most keys of one submission, by what the session in use has, or of several hosts another had; with
 * shards, at each of them. 0: none. */
unsigned reddn_part_most(const struct reddn *c, enum reddn_shape shape);

/** A part of gets is AWAY: those that wait for its next session become requests of the handle, as far as that
 * has room. False: none. */
bool reddn_part_give_back(struct reddn *whole, struct reddn *part);

#endif
