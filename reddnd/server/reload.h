/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload.h - what a reload of the configuration cannot change. Pure.
 */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "reddnd/catalog/catalog.h"

#include <stdbool.h>

/** The name of a setting that sessions depend on and that differs in @next; NULL: there is none. */
const char *reload_conflict(const struct catalog *now, const struct catalog *next);

/** True if @next takes all offloads away and does not state that: it has no setting "offloads", as a file
 * that was not written to its end. */
bool reload_loses_offloads(const struct catalog *now, const struct catalog *next);

#endif
