/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-daemon.h - for tests: the ledger of a daemon with a device, a tenant and a session.
 */
#ifndef LEDGER_TEST_DAEMON_H
#define LEDGER_TEST_DAEMON_H

#include "reddnd/ledger/ledger.h"

enum { TEST_SLOTS = 8, TEST_ARENA = 1 << 20, TEST_BLOCK = 65536 };

struct test_daemon {
	struct ledger *ledger;
	struct ledger_slot *device, *tenant, *session;
};

/** The session has a block of TEST_BLOCK bytes at TEST_BLOCK. The caller frees the ledger. */
struct test_daemon test_daemon_begin(void);
/** Fails the test if the ledger is not sound. */
struct ledger_view *test_daemon_load(const struct test_daemon *d);
/** Fails the test unless the ledger is refused because of @words. */
void test_daemon_refused(const struct test_daemon *d, const char *words);

/** Notes that objects were made, @handle of each kind. */
void test_make(struct ledger_slot *slot, enum ledger_type type, uint32_t handle);
void test_make_cq(struct ledger_slot *slot, uint32_t handle, uint64_t offset);

#endif
