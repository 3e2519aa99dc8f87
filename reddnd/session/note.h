/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * note.h - what this daemon notes in the ledger of a session, for the next one (heir.h).
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_NOTE_H
#define SESSION_NOTE_H

#include "reddnd/session/session.h"

/** Counters and limits, as they are now. Does nothing for a session that is in no ledger. */
void session_note(struct session *s);
/** The windows on its regions, and what is needed of its program; once its chain is bound to them. It is in a
 * ledger. */
void session_record_program(struct session *s);

#endif
