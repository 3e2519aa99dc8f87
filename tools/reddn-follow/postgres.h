/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * postgres.h - a table of PostgreSQL as a source: one column is the key, another one the value. The server,
 * of version 13 or later, has wal_level = logical and a publication of the table; a role with REPLICATION
 * that may read it is enough (postgres_print_rights()).
 *
 *     APART ──▶ ATTACHING ──▶ COPYING ──▶ REMOVING ──▶ FOLLOWING
 *
 * ATTACHING makes a temporary replication slot, which ends with its connection, so that a follower that is
 * gone keeps no WAL. COPYING reads the table as it was when the slot was made, and puts what differs;
 * REMOVING takes out what the table had not. From there on changes are read from the slot (pgoutput), each
 * transaction when it is committed. A connection that is lost leads to APART; so does TRUNCATE, and whatever
 * else puts all in doubt, also a change of the catalogs, of which the slot has nothing.
 *
 * How new the table is, is found by barriers: the clock and the end of the WAL are asked for, and when the
 * slot has been read to there, the table is as of that time.
 *
 * A key that the primary key, or the index of the replica identity, has as its only column is what a delete
 * and an update of a key name. Text is UTF-8; bytea are bytes; other types are as psql prints them in UTC.
 * NULL is no value: the key is not there.
 */
#ifndef TOOLS_REDDN_FOLLOW_POSTGRES_H
#define TOOLS_REDDN_FOLLOW_POSTGRES_H

#include "tools/reddn-follow/mirror.h"
#include "tools/reddn-follow/pgoutput.h"
#include "tools/reddn-follow/source.h"
#include "tools/reddn-follow/url.h"

#include <libpq-fe.h>

enum postgres_state {
	POSTGRES_APART,
	POSTGRES_ATTACHING,
	POSTGRES_COPYING,
	POSTGRES_REMOVING,
	POSTGRES_FOLLOWING
};

struct postgres_link {
	PGconn *conn;
	bool connected;
	PostgresPollingStatusType polling;
	bool unsent;
	PGresult *result; /* the last one of the command */
};

struct postgres {
	const struct postgres_url *url;
	const struct prefixes *prefixes;
	struct mirror *mirror;
	struct mirror_walk walk;
	enum postgres_state state;
	/* of ATTACHING and COPYING: which answer is awaited. Commands go over the SQL link, the slot over the
	 * other one */
	enum postgres_step {
		STEP_CONNECT,
		STEP_SYSTEM,
		STEP_PREPARE,
		STEP_TABLE,
		STEP_SLOT,
		STEP_SNAPSHOT,
		STEP_CURSOR,
		STEP_FETCH,
		STEP_COMMIT,
		STEP_STREAM,
		STEP_DONE,
	} step;
	struct postgres_link sql, stream;

	struct pgoutput_table followed;
	char print[32];  /* of the catalogs: all is in doubt when it differs */
	char query[768]; /* both columns of the table */
	unsigned rows;   /* of a fetch */
	struct seen seen;

	uint64_t received; /* LSN: all commits before have been applied */
	struct {
		enum { BARRIER_NONE, BARRIER_CLOCK, BARRIER_WAL } state;
		uint64_t source_us, host_ns, goal;
	} barrier;
	uint64_t barriers;

	uint64_t now, retry_at, pause, barrier_at, ask_at, heard_at; /* ms */
	bool grows, more;                                            /* more: of the stream is to be read */
	uint64_t reload_at, full; /* full: ms until then, if a key has no room */
	uint64_t loads, reported;
	char why[SOURCE_WHY];
};

/** Everything stays the caller's. */
void postgres_init(struct postgres *p, const struct postgres_url *url, const struct prefixes *prefixes,
	struct mirror *m);
struct source postgres_as_source(struct postgres *p);

/** Prints the statements that give a role what a follower of the table needs. */
void postgres_print_rights(const struct postgres_url *url);

#endif
