/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * enforcement.h - what follows from what happens to clients: events for the audit, verdicts and what the
 * catalog says is to follow, bans.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ENFORCEMENT_H
#define SERVER_ENFORCEMENT_H

#include "protocol/wire.h"
#include "reddnd/policy/bans.h"
#include "reddnd/server/events.h"
#include "reddnd/session/session.h"

#include <systemd/sd-event.h>

struct warden {
	struct events *events;
	struct bans bans;
	struct bans slowed;
	sd_event_source *timer;
	uint64_t period_us; /* to the next look; 0: none is due */
	void (*look)(void *arg, uint64_t now_us);
	void *arg;
};

/** @look is called once when warden_look_within() has asked for it, which it may do again. Errors have been
 * logged. */
int warden_init(struct warden *w, sd_event *event, void (*look)(void *arg, uint64_t now_us), void *arg);
void warden_deinit(struct warden *w); /* fine on one that is all zero */

/** Looks within @us. */
void warden_look_within(struct warden *w, uint64_t us);

/** False, with the reason in @rej, if the peer is banned. */
bool warden_lets_in(struct warden *w, const char *peer, struct reddn_wire_rej *rej);

void warden_refused(
	struct warden *w, const char *peer, const char *tenant, const char *offload, const char *why);
/** @words: what the session is made of. */
void warden_began(struct warden *w, const struct session *s, const char *words);
/** @level: of syslog.h; LOG_WARNING: it failed. */
void warden_ended(struct warden *w, const struct session *s, int level, const char *why);

/** The throttle that new sessions of the peer are under, or NULL. */
const struct ban *warden_slows(struct warden *w, const char *peer);

/**
 * Counts @v, and does what the catalog says of it. What is left to be done: VERDICT_LOG: nothing;
 * VERDICT_THROTTLE: the session is to be slowed as warden_slows() tells; VERDICT_TERMINATE: it is to be
 * ended, with v->text as the reason.
 */
enum verdict_action warden_judge(struct warden *w, struct session *s, const struct verdict *v);

void warden_reloaded(struct warden *w, const char *words);
void warden_reload_failed(struct warden *w, const char *why);
void warden_device_lost(struct warden *w, const char *device);

#endif
