/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload.h - what a reload of the configuration cannot change. Pure.
 */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "reddnd/catalog/catalog.h"

/** The name of a setting that sessions depend on and that differs in @next; NULL: there is none. */
const char *reload_conflict(const struct catalog *now, const struct catalog *next);

#endif
