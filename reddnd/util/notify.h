/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.h - messages to the service manager, by the protocol of sd_notify(3), whose functions wait for as
 * long as the manager does not read. Without $NOTIFY_SOCKET nothing is sent.
 *
 * Thread rules: any.
 */
#ifndef UTIL_NOTIFY_H
#define UTIL_NOTIFY_H

/** Sends a line that the next one replaces, such as STATUS= or WATCHDOG=1: never waits, and the line is lost
 * if the manager does not read. */
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Sends lines of KEY=VALUE, with descriptor @fd unless that is -1; waits a second at most. -EAGAIN: the
 * manager did not read meanwhile. -EACCES: this user may not send to it, which is logged once. Other errors
 * have been logged. */
int notify_send(const char *text, int fd);

#endif
