/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - what an auditor wants to know: clients that come, go, are refused or judged; configurations; the
 * device.
 *
 * Every event is a message to the journal with an id that stays (units/reddnd.catalog), and is kept in a ring
 * of the last EVENTS_KEPT for readers, who have a position of their own: one that is slow misses the oldest,
 * is told how many, and holds up nobody.
 *
 * Thread rules: one thread.
 */
#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include <stdint.h>

enum { EVENTS_KEPT = 1024 };

enum event_kind {
	EVENT_BEGINS,
	EVENT_ENDS,
	EVENT_REFUSED,
	EVENT_VERDICT,
	EVENT_RELOADED,
	EVENT_RELOAD_FAILED,
	EVENT_DEVICE_LOST,
	EVENT_KINDS
};

/** What does not apply is 0 or "". */
struct event {
	uint64_t number;  /* from 1; given by events_add(), as is the time */
	uint64_t time_us; /* CLOCK_REALTIME */
	uint8_t kind;     /* enum event_kind */
	int level;        /* of syslog.h */
	uint64_t session, requests;
	char tenant[24], offload[24], peer[80];
	char verdict[16], action[16], step[24], path[128], syndrome[80];
	unsigned line;
	char text[512]; /* all of it, as the journal has it; without the number of the session */
};

struct events;

struct events *events_new(void); /* NULL: no memory */
void events_free(struct events *ev);

/** "begins", "verdict", ...: as JSON names it. */
const char *event_kind_name(enum event_kind kind);

/** Logs @e and keeps it. */
void events_add(struct events *ev, const struct event *e);

/** The number of the oldest that is kept; one more than the newest if there is none. */
uint64_t events_first(const struct events *ev);

/**
 * The event at *@next or the oldest after it that is kept; *@lost is how many were dropped in between, and
 * *@next is the one after it. NULL: there is none yet. Valid until the next events_add().
 */
const struct event *events_next(const struct events *ev, uint64_t *next, uint64_t *lost);

/** @fn is called after each event; only one can be. NULL: none any more. */
void events_listen(struct events *ev, void (*fn)(void *arg), void *arg);

#endif
