/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - the events that an auditor needs: clients that come, go, are refused or judged; configurations;
 * the device.
 *
 * Each event is a message to the journal with an id that never changes (units/reddnd.catalog). The last ones
 * are kept for readers: EVENTS_KEPT of clients that come, go, or are refused, and apart from them, so that no
 * client displaces them by connecting, EVENTS_KEPT_APART verdicts, reloads and the like. When there is no
 * room left, the oldest one goes of the source that has the most, in the network that has the most: so one
 * with many addresses displaces its own. Each reader has its own position: a slow one misses events, gets
 * their number, and holds up nobody.
 *
 * Thread rules: one thread.
 */
#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include "protocol/wire.h"
#include "reddnd/policy/source.h"
#include "reddnd/session/session.h"

#include <stdint.h>

enum { EVENTS_KEPT = 1024, EVENTS_KEPT_APART = 512 };

enum event_kind {
	EVENT_BEGINS,
	EVENT_ENDS,
	EVENT_REFUSED,
	EVENT_VERDICT,
	EVENT_RELOADED,
	EVENT_RELOAD_FAILED,
	EVENT_MOVED,      /* a file that is served is no longer at its path */
	EVENT_UNFINISHED, /* a table's writer died in a move */
	EVENT_DEVICE_LOST,
	EVENT_KINDS
};

/** Members that do not apply are 0 or "". */
struct event {
	uint64_t number;  /* from 1; given by events_add(), as is the time */
	uint64_t time_us; /* CLOCK_REALTIME */
	uint8_t kind;     /* enum event_kind */
	int level;        /* of syslog.h */
	uint64_t session, requests;
	uint64_t repeats;     /* EVENT_REFUSED: this many more clients, which are not listed */
	struct source source; /* all zero: it concerns no client */
	char tenant[24], offload[24], peer[80];
	char verdict[16], action[16], step[24], path[128], syndrome[80];
	unsigned line;
	char text[512]; /* the message, as the journal has it; without the number of the session */
};

struct events;

struct events *events_new(void); /* NULL: no memory */
void events_free(struct events *ev);

/** The name in JSON: "begins", "verdict", ... */
const char *event_kind_name(enum event_kind kind);

/** Logs @e and keeps it. */
void events_add(struct events *ev, const struct event *e);

/** The number of the oldest event of all that are kept; if there is none, the number of the next one. */
uint64_t events_first(const struct events *ev);

/**
 * Returns event *@next, or the oldest one after it that is kept; sets *@lost to the number of events dropped
 * in between, and *@next to the one that follows. NULL: there is none yet. Valid until the next events_add().
 */
const struct event *events_next(const struct events *ev, uint64_t *next, uint64_t *lost);

/** Calls @fn after each event, in place of the one before. NULL: calls none. */
void events_listen(struct events *ev, void (*fn)(void *arg), void *arg);

/* ---- what happens to clients, configurations and the device, as events ---- */

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
