/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - makes events (events.h) of what happens to clients, configurations and the device.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include "protocol/wire.h"
#include "reddnd/server/events.h"
#include "reddnd/session/session.h"

/** The level of syslog.h at which the end of a session is logged; LOG_WARNING: it failed. */
int report_level(enum reddn_wire_end reason);

/** Client @c was refused. @tenant and @offload: as far as they are known, else "". */
void report_refused(struct events *ev, const struct session_client *c, const char *tenant,
	const char *offload, const char *why);
/** @n more clients of @of, with so many bits of an IPv6 address, were refused, which was not reported one by
 * one; NULL: of many sources. */
void report_unlisted(struct events *ev, const struct source *of, unsigned bits, uint64_t n, const char *why);
void report_began(struct events *ev, const struct session *s);
/** @s was begun by a daemon before this one, and goes on. */
void report_adopted(struct events *ev, const struct session *s);
/** Session @number was begun by a daemon before this one, and does not. @peer: "" if unknown. */
void report_ended_heir(
	struct events *ev, uint64_t number, const uint8_t address[16], const char *peer, const char *why);
void report_ended(struct events *ev, const struct session *s, enum reddn_wire_end reason, const char *text);
/** Session @s got verdict @v, and the catalog asks for @action. */
void report_verdict(
	struct events *ev, const struct session *s, const struct verdict *v, enum verdict_action action);

/** A configuration with so many regions and offloads is in force. */
void report_reloaded(struct events *ev, unsigned regions, unsigned offloads);
/** Nothing is at @path, where the file of @region was; @replaced: another file is. */
void report_moved(struct events *ev, const char *region, const char *path, bool replaced);
/** The writer of the table in region @region, file @path, died in a move. */
void report_unfinished(struct events *ev, const char *region, const char *path);
/** A configuration is not in force: @why, the first mistake. */
void report_reload_failed(struct events *ev, const char *why);
void report_device_lost(struct events *ev, const char *device);

#endif
