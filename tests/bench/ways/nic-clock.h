/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic-clock.h - the clock of the NIC, from ibv_query_rt_values_ex(). On an emulated NIC with a modelled clock
 * it is the time of this process's newest completion: the difference between two completions is the time that
 * the modelled NIC takes.
 */
#ifndef TESTS_BENCH_WAYS_NIC_CLOCK_H
#define TESTS_BENCH_WAYS_NIC_CLOCK_H

#include <stdint.h>

/** Opens the first device, which the connection manager uses too. 0, or -errno and a message on stderr. */
int nic_clock_open(void);
/** The time in nanoseconds. Call nic_clock_open() first. */
uint64_t nic_clock_now(void);

#endif
