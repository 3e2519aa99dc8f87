/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-reddn.h - the way of asking that is libreddn.
 */
#ifndef TOOLS_LOAD_LOAD_REDDN_H
#define TOOLS_LOAD_LOAD_REDDN_H

#include "tools/load/load.h"

/** Connects to an offload, whatever it is. What is submitted are gets; there are no sets. */
int load_reddn_connect(struct load_way *way, const struct reddn_options *opt);
/** The same, to one that is a table. */
int load_reddn_open(struct load_way *way, const struct reddn_options *opt);

#endif
