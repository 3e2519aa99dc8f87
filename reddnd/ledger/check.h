/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - reads a ledger as if a stranger had written it: a daemon of another version, or one that wrote
 * where it should not have. What is returned was copied first, so it cannot change, and no offset, count or
 * name in it leads anywhere else. Handles are numbers; what they are handles of, only the kernel knows. Pure,
 * but for ledger_load().
 */
#ifndef LEDGER_CHECK_H
#define LEDGER_CHECK_H

#include "reddnd/ledger/format.h"

#include <stdbool.h>
#include <stddef.h>

struct ledger_view {
	struct ledger_head head;
	struct ledger_slot *slots; /* head.used of them, free ones included */
	uint32_t *kept;            /* handles in slots that go on, ascending */
	size_t nkept;
};

/** -EBADMSG and @why, a clause, if these bytes, a ledger's file up to any slot that is not used, are no sound
 * ledger; -ENOMEM. */
int ledger_parse(const void *bytes, size_t size, struct ledger_view **view, const char **why);
/** The same of a file. Also the errors of reading it. */
int ledger_load(int fd, struct ledger_view **view, const char **why);
void ledger_view_free(struct ledger_view *view);

/** True if the next daemon goes on with what is in @slot: that is LIVE, and no session that ends. */
bool ledger_goes_on(const struct ledger_slot *slot);
/** True if a slot that goes on has it: a sweep leaves it alone. */
bool ledger_keeps(const struct ledger_view *view, uint32_t handle);
/** True if the file of a device was kept: it has the objects of all slots. Without one only sessions that
 * end are LIVE. */
bool ledger_has_device(const struct ledger_view *view);
/** The object of that type and handle in a slot of any state but FREE, or NULL. */
const struct ledger_object *ledger_find(const struct ledger_view *view, enum ledger_type type,
	uint32_t handle, const struct ledger_slot **slot);

#endif
