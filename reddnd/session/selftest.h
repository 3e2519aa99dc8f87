/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selftest.h - does this device do what chains rely on? Public sources leave some of it open, so it is tried: on
 * loopback queues, in milliseconds, before the first client is served.
 */
#ifndef SESSION_SELFTEST_H
#define SESSION_SELFTEST_H

#include "reddnd/session/starter.h"

#include <stddef.h>

/**
 * Runs a small chain: a WAIT that must hold, then two compares (one that matches, one that does not), a fenced READ that
 * makes a posted NOP a WRITE, and an enable of the queue that holds it.
 * 0; -EIO and @why in words when the device did something else; another negative errno when it could not be tried.
 */
int selftest_run(struct starter *starter, char *why, size_t size);

#endif
