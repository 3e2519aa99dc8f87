/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest.h - tests the behaviour of the device that chains rely on and public sources leave open. The tests
 * run on loopback queues, take milliseconds, and come before the first client is served.
 */
#ifndef PROBE_SELFTEST_H
#define PROBE_SELFTEST_H

#include "reddnd/rnic/master-qp.h"

#include <stddef.h>

/**
 * Runs a small chain: a WAIT that must hold, then two compares (one that matches, one that does not), a
 * fenced READ that makes a posted NOP a WRITE, and an enable of the queue that holds it. If @masked, also the
 * masks and field boundaries of masked atomics. 0; -EIO and @why in words when the device did something else;
 * another negative errno when the test could not run. Then two messages, of which one finds its RECV enabled
 * and the other has to wait for a second RECV_EN: 1 and @why in words if only this went wrong.
 */
int selftest_run(struct master_qp *master, bool masked, char *why, size_t size);

/**
 * The WQEBBs that the NIC fetches together from a managed queue, a power of two. 10,240 times a WQE is
 * enabled and executed before the next one is patched and enabled; one that lies in the same group is
 * executed as it was before. 1: all were executed as patched. 0: some were not, and no group explains it. A
 * negative errno when the test could not run.
 */
int selftest_fetch_group(struct master_qp *master);

/**
 * Tests if a managed queue that fails gives CQEs to the WQEs that were enabled, and no others. 1: yes. 0: it
 * gives more. A negative errno when the test could not run.
 */
int selftest_flushes_enabled_only(struct master_qp *master);

/**
 * Tests if a fenced SEND_EN starts only after the data of READs before it are in memory. No public source
 * states it. READs of several sizes patch WQEs that such a SEND_EN enables, in its own queue and in another.
 * 1: all were patched in time, and without the fences some were not; 0: some were not patched in time, or the
 * fences made no difference; a negative errno when the test could not run.
 */
int selftest_fenced_enables(struct master_qp *master);

/**
 * Tests if the NIC executes WQEs with the index and QPN of another place, and NOPs with any opmod. Firmware
 * makes the NIC check them unless it is configured otherwise, by means that no public source describes. Where
 * the NIC checks them, only the queue of this test ends, with an error. 1: all were executed; 0: not so; a
 * negative errno when the test could not run.
 */
int selftest_unchecked_wqes(struct master_qp *master);

/**
 * Tests if a message that is longer than its queue pair allows (QPC.log_msg_max) fails. The field is known,
 * its effect is in no public source. 1: it failed, and the longest that is allowed did not; 0: both were
 * sent; a negative errno when the test could not run.
 */
int selftest_limits_messages(struct master_qp *master);

#endif
