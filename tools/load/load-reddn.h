/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-reddn.h - the load_way of libreddn.
 */
#ifndef TOOLS_LOAD_LOAD_REDDN_H
#define TOOLS_LOAD_LOAD_REDDN_H

#include "tools/load/load.h"

/** Connect to an offload of any kind. It submits gets, or puts if it is one that puts. */
int load_reddn_connect(struct load_way *way, const struct reddn_options *opt);

/** Connect to an offload that is a table. */
int load_reddn_open(struct load_way *way, const struct reddn_options *opt);

/** Connect to an offload that puts in a store. */
int load_reddn_open_put(struct load_way *way, const struct reddn_options *opt);

#endif
