/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.h - reads /proc/self/maps. Allocates nothing and takes no lock, so that it can be used in a
 * forked child and in a signal handler.
 */
#ifndef SOFTCX_DRIVER_MAPS_H
#define SOFTCX_DRIVER_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps_entry {
	uint64_t start, end;
	int prot; /* PROT_* */
	bool shared;
	uint64_t offset;
	dev_t dev;
	uint64_t ino;
	const char *path; /* "" for anonymous memory; valid during the callback only */
};

/**
 * Calls @fn for every mapping in ascending order until it returns non-zero, and returns that; 0 at the
 * end, -errno when the file cannot be read.
 */
int maps_each(int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

/**
 * The same without the mappings that end at @addr or before. Linux 6.11 finds the first one without a look at
 * them, however many there are; earlier ones read all.
 */
int maps_from(uint64_t addr, int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

#endif
