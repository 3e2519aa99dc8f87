/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-mc.h - the load_way of libreddn-mc: gets from a pool of memcacheds.
 */
#ifndef TOOLS_LOAD_LOAD_MC_H
#define TOOLS_LOAD_LOAD_MC_H

#include "libclient/reddn-mc.h"
#include "tools/load/load.h"

/** Options of the pools that load_mc_open() makes, besides those that struct reddn_options has. */
extern struct reddn_mc_options load_mc_options;

/** Make a pool; @opt->host is its configuration string, and port, depth, offload and token_file are those of
 * struct reddn_mc_options. It submits gets; it has no sets. */
int load_mc_open(struct load_way *way, const struct reddn_options *opt);

#endif
