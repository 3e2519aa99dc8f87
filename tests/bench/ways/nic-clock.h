/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic-clock.h - the clock of the NIC, as ibv_query_rt_values_ex() tells it. On an emulated NIC with a
 * modelled clock, that is the time of the newest completion that this process has had: what passes between
 * two completions is what the modelled NIC takes.
 */
#ifndef TESTS_BENCH_WAYS_NIC_CLOCK_H
#define TESTS_BENCH_WAYS_NIC_CLOCK_H

#include <stdint.h>

/** Of the first device, of which the connection manager makes connections too. 0, or -errno and a message on
 * stderr. */
int nic_clock_open(void);
/** Nanoseconds; after nic_clock_open(). */
uint64_t nic_clock_now(void);

#endif
