/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest.h - does this device do what chains rely on? Public sources leave some of it open, so it is tried:
 * on loopback queues, in milliseconds, before the first client is served.
 */
#ifndef SELFTEST_SELFTEST_H
#define SELFTEST_SELFTEST_H

#include "reddnd/rnic/master-qp.h"

#include <stddef.h>

/**
 * Runs a small chain: a WAIT that must hold, then two compares (one that matches, one that does not), a
 * fenced READ that makes a posted NOP a WRITE, and an enable of the queue that holds it; then messages, of
 * which one finds its RECV enabled and the other has to wait for a second RECV_EN. If @masked, masked atomics
 * as well: their masks and field boundaries. 0; -EIO and @why in words when the device did something else;
 * another negative errno when it could not be tried.
 */
int selftest_run(struct master_qp *master, bool masked, char *why, size_t size);

/**
 * Whether a fenced SEND_EN starts after the READs before it have landed. No public source says so. READs of
 * several sizes patch WQEs that such a SEND_EN enables, of its own queue and of another. 1: all of them were
 * patched in time, and without the fences some were not; 0: not so, or no difference could be seen; a
 * negative errno when it could not be tried.
 */
int selftest_fenced_enables(struct master_qp *master);

/**
 * Whether the NIC executes WQEs whose index and QPN are not those of their queue, and NOPs with any opmod.
 * Firmware checks them unless it was told not to, by means that no public source describes; where it does,
 * the queue of this trial ends with an error, and nothing else. 1: all of them were executed; 0: not so; a
 * negative errno when it could not be tried.
 */
int selftest_unchecked_wqes(struct master_qp *master);

#endif
