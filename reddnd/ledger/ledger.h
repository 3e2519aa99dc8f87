/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h - writes the ledger (format.h).
 *
 * Thread rules: any thread may take and end slots; one slot is written by one thread at a time.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "reddnd/ledger/format.h"

#include <stdbool.h>
#include <stddef.h>

struct ledger;
struct ledger_view;

/** An empty one in a new memfd, of generation 1. */
int ledger_new(struct ledger **ledger, uint32_t slots, uint64_t arena_bytes);
/**
 * Goes on with the ledger in file @fd, which it takes on success. @view is what was read from it, and all
 * that it does not keep is gone: slots that are not LIVE in it are free, and sessions that end have no
 * objects and no memory. -EBADMSG: it is no file that a ledger can be in.
 */
int ledger_open(struct ledger **ledger, int fd, const struct ledger_view *view);
void ledger_free(struct ledger *ledger); /* the file stays as it is, wherever it is open */
int ledger_fd(const struct ledger *ledger);

/** False: the kernel that had its objects is gone. */
bool ledger_is_of_this_boot(const struct ledger_head *head);
/** Counts attempts to go on with the ledger in file @fd. */
int ledger_set_failed(int fd, uint32_t failed);
/** Whether the last attempt failed for its configuration, perhaps. */
int ledger_set_distrusted(int fd, bool distrusted);
bool ledger_is_distrusted(int fd); /* false if that is unknown */

/** What is not in slots. */
struct ledger_head *ledger_head(struct ledger *ledger);
/** Nothing is stored if that is its name already: whoever reads the ledger meanwhile finds it. */
void ledger_set_device(struct ledger *ledger, const char *name);
/** Before the session with that number is taken. @ledger may be NULL. */
void ledger_set_last_session(struct ledger *ledger, uint64_t number);
/** -ENOSPC */
int ledger_add_listener(struct ledger *ledger, uint32_t id);
/** Before it is destroyed: its id may be that of a connection right after that. */
void ledger_remove_listener(struct ledger *ledger, uint32_t id);

/** A connection that waits for an answer: from right after its request was read to right before it is
 * destroyed, or right after it was accepted. If there is no room it is not in the ledger. */
void ledger_add_request(struct ledger *ledger, uint32_t id);
void ledger_remove_request(struct ledger *ledger, uint32_t id); /* fine if it is not there */
bool ledger_has_request(const struct ledger *ledger, uint32_t id);

/** A slot that is BUILDING, or NULL: all are in use. */
struct ledger_slot *ledger_take(struct ledger *ledger, enum ledger_kind kind);
void ledger_live(struct ledger_slot *slot);
void ledger_ending(struct ledger_slot *slot);
/** The slot is FREE; or ENDING for good if the device did not let go of all that is in it. */
void ledger_drop(struct ledger *ledger, struct ledger_slot *slot);

/** Number of a slot, from 1, for references to it in other slots; 0 for NULL. And its slot; NULL for 0. */
uint32_t ledger_number(const struct ledger *ledger, const struct ledger_slot *slot);
struct ledger_slot *ledger_slot_of(const struct ledger *ledger, uint32_t number);

/* What was inherited by ledger_open(). A claim: something of this process needs a slot. */

/** The next slot of that kind after @after, NULL: the first, that was inherited and is not claimed; or NULL.
 */
struct ledger_slot *ledger_unclaimed(
	const struct ledger *ledger, enum ledger_kind kind, const struct ledger_slot *after);
void ledger_claim(struct ledger *ledger, const struct ledger_slot *slot);
/** The first slot of that kind that was inherited, has not been destroyed, and for which @fits returns true,
 * with one claim more; NULL: there is none. */
struct ledger_slot *ledger_claim_fitting(struct ledger *ledger, enum ledger_kind kind,
	bool (*fits)(const struct ledger_slot *slot, const void *arg), const void *arg);
/** True: that was the last claim, and what is in the slot is the caller's to destroy. */
bool ledger_release(struct ledger *ledger, const struct ledger_slot *slot);

/* These do nothing if @slot is NULL: what is made for a moment is not in the ledger. */

/** Right after the object was made. A slot has room for all that is made together. */
void ledger_made(struct ledger_slot *slot, const struct ledger_object *object);
/** Right before the connection manager accepts its connection, or when the NIC has begun with its queues: if
 * the session is recycled, the next daemon goes on with it. */
void ledger_accepted(struct ledger_slot *slot);
/** The client has completed the connection. */
void ledger_established(struct ledger_slot *slot);
/** Right after it was destroyed. */
void ledger_gone(struct ledger_slot *slot, enum ledger_type type, uint32_t handle);
/** The slot's part of the arena; @size 0: none. Before it is given to the device, and after the device has
 * left it. */
void ledger_set_block(struct ledger_slot *slot, uint64_t offset, uint64_t size);
/** Cuts @name to what fits; it never does not. */
void ledger_set_name(char to[LEDGER_NAME], const char *name);

/*
 * Reads a ledger as if a stranger had written it: a daemon of another version, or one that wrote where it
 * should not have. What is returned was copied first, so it cannot change, and no offset, count or name in it
 * leads anywhere else. Handles are numbers; what they are handles of, only the kernel knows. Pure, but for
 * ledger_load().
 */

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
