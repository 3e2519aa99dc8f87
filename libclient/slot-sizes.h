/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slot-sizes.h - the sizes of reply slots that offloads have asked this process for. One who connects again
 * need not ask again. Threads may share it.
 */
#ifndef LIBCLIENT_SLOT_SIZES_H
#define LIBCLIENT_SLOT_SIZES_H

#include <stdint.h>

/** Bytes that @offload of that server asked for last, or 0: it has not been asked, or that is long ago. */
uint32_t reddn_slot_size(const char *host, uint16_t port, const char *offload);

/** Remembers @bytes, and forgets another offload if there are too many. */
void reddn_slot_size_set(const char *host, uint16_t port, const char *offload, uint32_t bytes);

#endif
