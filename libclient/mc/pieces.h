/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pieces.h - gets items that are longer than a reply of memcached-get: their bytes by memcached-piece, and
 * then another reply, which shows that they belong together.
 */
#ifndef LIBCLIENT_MC_PIECES_H
#define LIBCLIENT_MC_PIECES_H

#include "libclient/mc/pool.h"

/** Asks for the pieces of @item. False: nobody sends them. */
bool mc_pieces_begin(struct reddn_mc *mc, struct mc_ask *a, const struct mc_item *item);

/** Takes pieces from @s, from which some are due. Asks that have all pieces are sent to memcached-get again.
 */
void mc_pieces_collect(struct reddn_mc *mc, struct mc_server *s);

/** Sends what is in mc->pieces, as far as there is room. */
void mc_pieces_send(struct reddn_mc *mc);

/** The pieces of @a are the value of *@item, which is what that reply showed; sets the value. */
bool mc_pieces_judge(const struct mc_ask *a, struct mc_item *item, const struct mc_question *q);

#endif
