/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - messages of one line each, for the journal or stderr.
 *
 * If stderr is the journal (JOURNAL_STREAM names it), a message is a structured entry by sd-journal, with the
 * fields of the caller. Otherwise only the words are written, so that programs can parse "file:line: what is
 * wrong". Levels are those of syslog.h.
 *
 * Errors without a session go to the journal through stderr, as "<3>words": the daemon may end right after
 * one, and journald assigns an entry of sd-journal to no unit if its sender has ended. `systemctl status`
 * would not show why the daemon did not start.
 *
 * Clients can cause some messages without end. Of each line of the source that logs, so many are written per
 * second; those that are left out are counted. Events have limits of their own.
 *
 * If whoever reads stderr stands still, and stderr does not wait (file_unblock_stderr()), lines are lost; the
 * next one that is written comes after their number.
 *
 * Thread rules: log_init() before there are other threads; the others on any thread. Messages longer than
 * 1 KiB are cut.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <syslog.h>

/** Chooses the destination; before this call messages go to stderr. @max: least urgent level that is written.
 */
void log_init(int max);

/** For a tool: its messages on stderr begin with "@program: ", as those that it writes itself. Kept, not
 * copied. */
void log_name(const char *program);

/** Writes errors of this thread to @f as well, one line each, from now on; NULL: no longer. */
void log_tee(FILE *f);
/** From now on messages of this thread go nowhere else; false: they do again. */
void log_mute(bool mute);

/**
 * @session: number of the session that the message is about, 0 for none; becomes the field REDDND_SESSION=
 * and, where there are no fields, the words "session N: ".
 */
void log_message(int level, uint64_t session, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#define log_at(level, session, ...) log_message(level, session, __FILE__, __LINE__, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERR, 0, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, 0, __VA_ARGS__)
#define log_notice(...) log_at(LOG_NOTICE, 0, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, 0, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, 0, __VA_ARGS__)

/** A field of an entry besides those that all messages have. A value of NULL or "": no field. */
struct log_field {
	const char *name; /* "REDDND_PEER" */
	const char *value;
};

/**
 * Logs an event that programs look for. @id is its MESSAGE_ID=, 32 digits; units/reddnd.catalog explains it.
 * At most LOG_FIELDS_MAX fields of at most 400 bytes each. stderr gets only the words.
 */
enum { LOG_FIELDS_MAX = 12 };
void log_event(int level, uint64_t session, const char *id, const struct log_field *fields, unsigned nfields,
	const char *file, int line, const char *text);

/** Logs the words, followed by the text of @error (negative errno), and returns @error. */
int log_errno_(int error, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#define log_errno(error, ...) log_errno_(error, __FILE__, __LINE__, __VA_ARGS__)

#endif
