/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - what matters to the cache file of memcached's command line. The short options are those of
 * memcached 1.6.18 (memcached.c, shortopts); of long ones those that matter.
 */
#ifndef MEMCACHED_OPTIONS_H
#define MEMCACHED_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	uint64_t memory;  /* -m in bytes, 64 MiB by default */
	unsigned power;   /* -o hashpower, 16 by default */
	bool only_prints; /* -h, -i, -V: it serves nothing */
	/* The first option with which its items cannot be served, and why, as "-C leaves out ...; leave -C
	 * out". NULL: there is none */
	const char *unserved;
};

/** Reads them, without a change to the arguments or to getopt(3)'s state of the program. -ENOMEM. */
int options_read(struct options *o, int argc, char *const argv[]);

#endif
