/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn-mc.h - "reddn mc": gets from a pool of memcacheds. */
#ifndef TOOLS_REDDN_MC_H
#define TOOLS_REDDN_MC_H

/** Runs the command in argv[1], with its options. Returns the exit status. */
int reddn_mc_main(int argc, char **argv);

#endif
