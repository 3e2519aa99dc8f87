/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/postgres.h"

#include "tools/common/tool.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/text.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BARRIER_MS = 50,     /* from the end of a barrier to the next one */
	ASK_MS = 10,         /* between two questions how far the slot has been read */
	PATIENCE_MS = 10000, /* without a word while it follows: a large transaction takes its time */
	PAUSE_LEAST_MS = 20,
	PAUSE_MOST_MS = 2000,
	FULL_MS = 10000, /* until all is read again where there was no room for a key, and twice that the next
			    time */
	FULL_MOST_MS = 600000,
	FETCH_BYTES = 4 << 20,
	FETCH_ROWS = 4096,
	TURN_MESSAGES = 4096,
	PAGE_HEADER = 24,
	SEGMENT_HEADER = 40, /* of the WAL (xlog_internal.h) */
};

/* From 2000-01-01, as the protocol counts */
static const uint64_t epoch_us = 946684800000000;

static void postgres_set_state(struct postgres *p, enum postgres_state state)
{
	assert(state <= POSTGRES_ATTACHING || state == p->state + 1);
	p->state = state;
}

/* ---- connections ------------------------------------------------------------------------------ */

static void link_close(struct postgres_link *l)
{
	PQclear(l->result);
	PQfinish(l->conn);
	*l = (struct postgres_link){0};
}

/* The table keeps what it has. The slot ends with its connection. */
static void __attribute__((format(printf, 2, 3))) postgres_lose(struct postgres *p, const char *format, ...)
{
	va_list args;

	if (p->state == POSTGRES_APART)
		return;
	va_start(args, format);
	vsnprintf(p->why, sizeof(p->why), format, args);
	va_end(args);
	/* an error of libpq has lines */
	p->why[strcspn(p->why, "\n")] = '\0';
	text_clean(p->why);
	link_close(&p->sql);
	link_close(&p->stream);
	p->more = false;
	seen_deinit(&p->seen);
	postgres_set_state(p, POSTGRES_APART);
	p->retry_at = p->now + p->pause;
	p->pause = p->pause * 2 < PAUSE_MOST_MS ? p->pause * 2 : PAUSE_MOST_MS;
}

static void link_lose(struct postgres *p, const struct postgres_link *l)
{
	const char *words = PQresultErrorMessage(l->result);

	if (!*words)
		words = PQerrorMessage(l->conn);
	postgres_lose(p, "%s", *words ? words : "the connection was lost");
}

static void link_open(struct postgres *p, struct postgres_link *l, const char *replication)
{
	/* both print a value alike, whatever the settings of the database are, or become meanwhile */
	const char *const keys[] = {"dbname", "replication", "application_name", "client_encoding", "options",
		NULL},
			  *const values[] = {p->url->conninfo, replication, "reddn-follow", "UTF8",
				  "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC "
				  "-c lc_monetary=C -c extra_float_digits=3 -c bytea_output=hex "
				  "-c row_security=off -c plan_cache_mode=force_generic_plan",
				  NULL};

	*l = (struct postgres_link){
		.conn = PQconnectStartParams(keys, values, 1), .polling = PGRES_POLLING_WRITING};
	if (!l->conn || PQstatus(l->conn) == CONNECTION_BAD)
		link_lose(p, l);
}

static void link_turn(struct postgres *p, struct postgres_link *l, short revents)
{
	if (p->state == POSTGRES_APART)
		return;
	if (!l->connected && revents) {
		l->polling = PQconnectPoll(l->conn);
		l->connected = l->polling == PGRES_POLLING_OK;
		if (l->connected)
			PQsetnonblocking(l->conn, 1);
		else if (l->polling == PGRES_POLLING_FAILED)
			link_lose(p, l);
		return;
	}
	if (l->connected && (revents & ~POLLOUT) && !PQconsumeInput(l->conn))
		link_lose(p, l);
}

static void link_flush(struct postgres *p, struct postgres_link *l)
{
	int r = p->state != POSTGRES_APART && l->connected ? PQflush(l->conn) : 0;

	l->unsent = r > 0;
	if (r < 0)
		link_lose(p, l);
}

static struct pollfd link_prepare(const struct postgres_link *l)
{
	bool writes = l->connected ? l->unsent : l->polling == PGRES_POLLING_WRITING;

	return (struct pollfd){.fd = l->conn ? PQsocket(l->conn) : -1,
		.events = (short)(writes ? l->connected ? POLLIN | POLLOUT : POLLOUT : POLLIN)};
}

/* The next step is the answer */
static void __attribute__((format(printf, 4, 5)))
link_send(struct postgres *p, struct postgres_link *l, enum postgres_step step, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	p->step = step;
	if (!PQsendQuery(l->conn, text))
		link_lose(p, l);
}

/* True: the answer is complete, and its last result is l->result. */
static bool link_answered(struct postgres *p, struct postgres_link *l)
{
	while (p->state != POSTGRES_APART && !PQisBusy(l->conn)) {
		PGresult *r = PQgetResult(l->conn);
		ExecStatusType status = PQresultStatus(r);

		if (!r)
			return true;
		PQclear(l->result);
		l->result = r;
		if (status == PGRES_COPY_BOTH)
			return true;
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
			link_lose(p, l);
	}
	return false;
}

static const char *answer_text(const struct postgres_link *l, int column)
{
	return PQgetvalue(l->result, 0, column);
}

/* ---- attaching ---------------------------------------------------------------------------------- */

static void postgres_attach(struct postgres *p)
{
	postgres_set_state(p, POSTGRES_ATTACHING);
	p->step = STEP_CONNECT;
	p->heard_at = p->now;
	p->received = 0;
	p->barrier.state = BARRIER_NONE;
	link_open(p, &p->sql, NULL);
	if (p->state == POSTGRES_ATTACHING)
		link_open(p, &p->stream, "database");
}

/* Of another history, or of another table, moments cannot be compared. */
static void postgres_set_source(struct postgres *p)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s %s %s %s %s", answer_text(&p->stream, 0),
		answer_text(&p->stream, 1), answer_text(&p->stream, 3), p->url->table, p->url->key,
		p->url->value);
	mirror_set_source(p->mirror, source_number(text, p->prefixes), 0);
}

/* $1 to $4: table, key, value, publication. The time is that of the statement, before it looks at anything.
 *
 * The WAL has nothing of the catalogs. PRINT is of each row of them that decides which changes of the table
 * are published, or how a value is printed: by its oid, and by its xmin if it may be changed in place.
 * - of the table, the file that it is in; of a partition, what it is a partition of;
 * - the publication, and by which of its parts it has the table, one above, or a schema of them: these are
 *   its dependents in pg_depend;
 * - the types of the columns, those that they consist of, the function that prints each, and names of enums.
 * prqual and rngmultitypid are not there in version 13. */
enum { WHY, TABLE, KEY_TYPE, VALUE_TYPE, OID, PRINT, TIME, WAL, PAGE };

static const char ask_table[] =
	"WITH RECURSIVE c AS (SELECT * FROM pg_class WHERE oid = to_regclass($1)),"
	" n AS (SELECT * FROM pg_namespace WHERE oid = (SELECT relnamespace FROM c)),"
	" a AS (SELECT * FROM pg_attribute WHERE attrelid = (SELECT oid FROM c) AND attnum > 0"
	" AND NOT attisdropped AND attname IN ($2, $3)),"
	" p AS (SELECT xmin, * FROM pg_publication WHERE pubname = $4),"
	/* the table, and of a partition, those above it */
	" line AS (SELECT oid, relnamespace FROM c UNION SELECT l.oid, l.relnamespace"
	" FROM c, pg_partition_ancestors(c.oid) r JOIN pg_class l ON l.oid = r.relid),"
	" parts AS (SELECT d.classid, d.objid FROM pg_depend d"
	" WHERE d.refclassid = 'pg_publication'::regclass AND d.refobjid = (SELECT oid FROM p)"
	" AND EXISTS (SELECT FROM pg_depend e, line WHERE e.classid = d.classid AND e.objid = d.objid"
	" AND (e.refclassid = 'pg_class'::regclass AND e.refobjid = line.oid"
	" OR e.refclassid = 'pg_namespace'::regclass AND e.refobjid = line.relnamespace))),"
	" types(oid) AS (SELECT atttypid FROM a UNION SELECT part.oid FROM types,"
	" LATERAL (SELECT unnest(ARRAY[typelem, typbasetype]) FROM pg_type WHERE oid = types.oid"
	" UNION ALL SELECT f.atttypid FROM pg_type t JOIN pg_attribute f ON f.attrelid = t.typrelid"
	" WHERE t.oid = types.oid AND t.typtype = 'c' AND f.attnum > 0 AND NOT f.attisdropped"
	" UNION ALL SELECT r.rngsubtype FROM pg_range r"
	" WHERE types.oid IN (r.rngtypid, (to_jsonb(r)->>'rngmultitypid')::oid)) part(oid))"
	"SELECT CASE WHEN pg_is_in_recovery() THEN 'it is a standby; follow its primary'"
	" WHEN current_setting('wal_level') <> 'logical'"
	" THEN 'wal_level is ' || current_setting('wal_level')"
	" || '; set it to logical, and restart the server'"
	" WHEN c.oid IS NULL THEN 'there is no table ' || $1"
	" WHEN c.relkind <> 'r' THEN $1 || ' is no ordinary table'"
	" WHEN k.attnum IS NULL THEN $1 || ' has no column ' || $2"
	" WHEN v.attnum IS NULL THEN $1 || ' has no column ' || $3"
	" WHEN EXISTS (SELECT FROM types JOIN pg_type t USING (oid)"
	" WHERE t.typnamespace = 'pg_catalog'::regnamespace"
	" AND (t.typname LIKE 'reg%' OR t.typname = 'aclitem'))"
	" THEN $1 || ' has names of objects as keys or values, which change without it: use another type'"
	" WHEN NOT EXISTS (SELECT FROM pg_index i"
	" WHERE i.indrelid = c.oid AND i.indnkeyatts = 1 AND i.indkey[0] = k.attnum"
	" AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)"
	" THEN $2 || ' is neither the primary key of ' || $1 || ', nor its replica identity'"
	" WHEN NOT EXISTS (SELECT FROM pg_publication_tables t"
	" WHERE t.pubname = $4 AND t.schemaname = n.nspname AND t.tablename = c.relname)"
	" THEN $1 || ' is in no publication ' || $4 || ': CREATE PUBLICATION ' || $4 || ' FOR TABLE ' || $1"
	" WHEN NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate)"
	" OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid"
	" AND r.prrelid IN (SELECT oid FROM line) AND to_jsonb(r)->>'prqual' IS NOT NULL)"
	" THEN 'publication ' || $4 || ' does not publish all changes of all rows' END,"
	" quote_ident(n.nspname) || '.' || quote_ident(c.relname), k.atttypid, v.atttypid, c.oid,"
	" hashtextextended(concat_ws(' ', c.oid, c.relfilenode, k.attnum, v.attnum, p.oid, p.xmin,"
	" (SELECT string_agg(concat_ws(' ', i.inhrelid, i.inhparent, i.xmin), ' ' ORDER BY i.inhrelid)"
	" FROM pg_inherits i WHERE i.inhrelid IN (SELECT oid FROM line)),"
	" (SELECT string_agg(concat_ws(' ', classid, objid), ' ' ORDER BY classid, objid) FROM parts),"
	" (SELECT string_agg(concat_ws(' ', t.oid, t.xmin, f.oid, f.xmin), ' ' ORDER BY t.oid)"
	" FROM types JOIN pg_type t USING (oid) JOIN pg_proc f ON f.oid = t.typoutput),"
	" (SELECT string_agg(concat_ws(' ', e.oid, e.xmin), ' ' ORDER BY e.oid)"
	" FROM types JOIN pg_enum e ON e.enumtypid = types.oid)), 0),"
	" (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,"
	" CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() - '0/0' END,"
	" current_setting('wal_block_size')"
	" FROM (SELECT) one LEFT JOIN c ON true LEFT JOIN n ON true LEFT JOIN p ON true"
	" LEFT JOIN a k ON k.attname = $2 LEFT JOIN a v ON v.attname = $3";

/* It is asked at each barrier: planning it takes longer than it does */
static void postgres_prepare_ask(struct postgres *p)
{
	const Oid types[] = {25, 25, 25, 25}; /* text */

	p->step = STEP_PREPARE;
	if (!PQsendPrepare(p->sql.conn, "ask", ask_table, 4, types))
		link_lose(p, &p->sql);
}

static void postgres_ask_table(struct postgres *p, enum postgres_step step)
{
	const struct postgres_url *u = p->url;
	const char *const parameters[] = {u->table, u->key, u->value, u->publication};

	p->step = step;
	if (!PQsendQueryPrepared(p->sql.conn, "ask", 4, parameters, NULL, NULL, 0))
		link_lose(p, &p->sql);
}

static bool column_set(struct pgoutput_column *c, const char *name, const char *type)
{
	const uint32_t bytea = 17; /* pg_type.dat */
	uint64_t oid;

	if (number_parse_decimal(type, 1, UINT32_MAX, &oid) < 0)
		return false;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->type = (uint32_t)oid;
	c->is_bytes = oid == bytea;
	c->at = -1;
	return true;
}

/* NULL is read as well: of a composite type, IS NOT NULL means another thing. */
static bool query_make(struct postgres *p, const char *table)
{
	const struct pgoutput_table *t = &p->followed;
	char *key = PQescapeIdentifier(p->sql.conn, t->key.name, strlen(t->key.name));
	char *value = PQescapeIdentifier(p->sql.conn, t->value.name, strlen(t->value.name));
	bool made = key && value;

	if (made)
		snprintf(p->query, sizeof(p->query), "SELECT %s, %s FROM ONLY %s", key, value, table);
	PQfreemem(key);
	PQfreemem(value);
	return made;
}

static void postgres_take_table(struct postgres *p)
{
	const struct postgres_link *l = &p->sql;
	uint64_t oid;

	if (!PQgetisnull(l->result, 0, WHY)) {
		postgres_lose(p, "%s", answer_text(l, WHY));
		return;
	}
	if (number_parse_decimal(answer_text(l, OID), 1, UINT32_MAX, &oid) < 0 ||
		!column_set(&p->followed.key, p->url->key, answer_text(l, KEY_TYPE)) ||
		!column_set(&p->followed.value, p->url->value, answer_text(l, VALUE_TYPE)) ||
		!query_make(p, answer_text(l, TABLE))) {
		postgres_lose(p, "the server's answer is not understood");
		return;
	}
	p->followed.oid = (uint32_t)oid;
	snprintf(p->print, sizeof(p->print), "%s", answer_text(l, PRINT));
	link_send(p, &p->stream, STEP_SLOT,
		"CREATE_REPLICATION_SLOT reddn_follow_%d TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT",
		PQbackendPID(p->stream.conn));
}

/* As text, which each type's output function makes here as in the stream */
static void postgres_fetch(struct postgres *p)
{
	link_send(p, &p->sql, STEP_FETCH, "FETCH %u FROM follow", p->rows);
}

static void postgres_put(struct postgres *p, const char *key, size_t key_len, const char *val, size_t val_len)
{
	if (mirror_equal(p->mirror, key, key_len, val, val_len) == MIRROR_NO_ROOM &&
		p->reload_at == UINT64_MAX)
		p->reload_at = p->now + p->full;
}

static bool row_decode(
	const struct pgoutput_column *c, PGresult *r, int row, int column, char **bytes, size_t *len)
{
	*bytes = PQgetvalue(r, row, column);
	*len = (size_t)PQgetlength(r, row, column);
	return !c->is_bytes || pgoutput_decode_bytea(*bytes, len) == 0;
}

static void postgres_take_row(struct postgres *p, PGresult *r, int row)
{
	const struct pgoutput_table *t = &p->followed;
	size_t len, val_len;
	char *key, *val;

	if (PQgetisnull(r, row, 1))
		return;
	if (!row_decode(&t->key, r, row, 0, &key, &len) || !row_decode(&t->value, r, row, 1, &val, &val_len))
		return postgres_lose(p, "a value of %s is not understood", p->url->table);
	if (!prefixes_have(p->prefixes, key, len))
		return;
	seen_add(&p->seen, key, len, 0);
	postgres_put(p, key, len, val, val_len);
}

/* As many rows as FETCH_BYTES have, by those of the last fetch. False: that was all */
static bool postgres_take_rows(struct postgres *p)
{
	PGresult *r = p->sql.result;
	int n = PQntuples(r);
	uint64_t bytes = 0;

	for (int i = 0; i < n && p->state == POSTGRES_COPYING; i++) {
		bytes += (uint64_t)PQgetlength(r, i, 0) + (uint64_t)PQgetlength(r, i, 1);
		postgres_take_row(p, r, i);
	}
	if (n) {
		uint64_t rows = FETCH_BYTES / (bytes / (unsigned)n + 1);

		p->rows = (unsigned)(rows < 1 ? 1 : rows < FETCH_ROWS ? rows : FETCH_ROWS);
	}
	return n;
}

/* One step of attaching and copying, if its answer is there. False: it is not. */
static bool postgres_step(struct postgres *p)
{
	struct postgres_link *sql = &p->sql, *stream = &p->stream;
	bool on_stream = p->step == STEP_SYSTEM || p->step == STEP_SLOT || p->step == STEP_STREAM;

	if (p->step == STEP_CONNECT ? !sql->connected || !stream->connected
				    : !link_answered(p, on_stream ? stream : sql))
		return false;
	switch (p->step) {
	case STEP_CONNECT:
		link_send(p, stream, STEP_SYSTEM, "IDENTIFY_SYSTEM");
		break;
	case STEP_SYSTEM:
		postgres_set_source(p);
		postgres_prepare_ask(p);
		break;
	case STEP_PREPARE:
		postgres_ask_table(p, STEP_TABLE);
		break;
	case STEP_TABLE:
		postgres_take_table(p);
		break;
	case STEP_SLOT:
		link_send(p, sql, STEP_SNAPSHOT,
			"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '%s'",
			answer_text(stream, 2));
		break;
	case STEP_SNAPSHOT:
		link_send(p, sql, STEP_CURSOR, "DECLARE follow NO SCROLL CURSOR FOR %s", p->query);
		break;
	case STEP_CURSOR:
		postgres_set_state(p, POSTGRES_COPYING);
		p->reload_at = UINT64_MAX;
		p->rows = 64;
		postgres_fetch(p);
		break;
	case STEP_FETCH:
		if (postgres_take_rows(p))
			postgres_fetch(p);
		else
			link_send(p, sql, STEP_COMMIT, "COMMIT");
		break;
	case STEP_COMMIT:
		seen_sort(&p->seen);
		mirror_walk(p->mirror, &p->walk);
		postgres_set_state(p, POSTGRES_REMOVING);
		p->step = STEP_DONE;
		break;
	case STEP_STREAM:
		p->step = STEP_DONE;
		p->loads++;
		p->barriers = 0;
		p->pause = PAUSE_LEAST_MS;
		p->heard_at = p->barrier_at = p->now;
		*p->why = '\0';
		postgres_set_state(p, POSTGRES_FOLLOWING);
		break;
	case STEP_DONE:
		break;
	}
	return p->state != POSTGRES_APART && p->step != STEP_DONE;
}

/* Nothing is read from the slot meanwhile: what it has would be put. */
static void postgres_remove(struct postgres *p)
{
	char *publication;

	if (p->step == STEP_STREAM || !mirror_keep(p->mirror, &p->walk, &p->seen, TURN_MESSAGES))
		return;
	seen_deinit(&p->seen);
	publication = PQescapeIdentifier(p->stream.conn, p->url->publication, strlen(p->url->publication));
	link_send(p, &p->stream, STEP_STREAM,
		"START_REPLICATION SLOT reddn_follow_%d LOGICAL 0/0 (proto_version '1', publication_names "
		"'%s')",
		PQbackendPID(p->stream.conn), publication ? publication : "");
	PQfreemem(publication);
}

/* ---- the stream ----------------------------------------------------------------------------------- */

static bool field_same(const struct pgoutput_field *a, const struct pgoutput_field *b)
{
	return a->kind == b->kind && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static void field_delete(struct postgres *p, const struct pgoutput_field *key)
{
	if (prefixes_have(p->prefixes, key->bytes, key->len))
		mirror_delete(p->mirror, key->bytes, key->len);
}

static void field_put(struct postgres *p, const struct pgoutput_field *key, const char *val, size_t len)
{
	if (prefixes_have(p->prefixes, key->bytes, key->len))
		postgres_put(p, key->bytes, key->len, val, len);
}

/* A long value that an update did not touch is not in the stream. The row has another key now: it takes the
 * value along, if the table has it */
static void take_along(struct postgres *p, const struct pgoutput_field *from, const struct pgoutput_field *to)
{
	const void *val;
	size_t len;
	char *copy;

	if (!mirror_get(p->mirror, from->bytes, from->len, &val, &len)) {
		postgres_lose(p, "a row got another key, and its value is not known");
		return;
	}
	copy = tool_must(malloc(len + 1));
	memcpy(copy, val, len);
	field_put(p, to, copy, len);
	free(copy);
}

static void take_row(struct postgres *p, struct pgoutput_message *m)
{
	bool had = m->before.kind == PGOUTPUT_VALUE, moved;

	if (m->key.kind == PGOUTPUT_AS_BEFORE && had)
		m->key = m->before;
	moved = had && !field_same(&m->before, &m->key);
	if (m->key.kind != PGOUTPUT_VALUE)
		return postgres_lose(p, "a row has no key");
	if (m->value.kind == PGOUTPUT_VALUE)
		field_put(p, &m->key, m->value.bytes, m->value.len);
	else if (m->value.kind == PGOUTPUT_NULL)
		field_delete(p, &m->key);
	else if (moved)
		take_along(p, &m->before, &m->key);
	if (moved && p->state == POSTGRES_FOLLOWING)
		field_delete(p, &m->before);
}

static void postgres_receive(struct postgres *p, uint64_t lsn)
{
	if (lsn > p->received)
		p->received = lsn;
}

/* How far the slot has been read: WAL before is not kept for it. @ask: the server is to say how far it has
 * sent */
static void postgres_tell(struct postgres *p, bool ask)
{
	struct {
		char kind;
		uint64_t written, flushed, applied, at;
		char ask;
	} __attribute__((packed)) status = {'r', htobe64(p->received), htobe64(p->received),
		htobe64(p->received), htobe64(clock_read_ns(CLOCK_REALTIME) / 1000 - epoch_us), (char)ask};

	if (PQputCopyData(p->stream.conn, (const char *)&status, sizeof(status)) < 0)
		link_lose(p, &p->stream);
	p->ask_at = p->now;
}

static void take_message(struct postgres *p, char *bytes, size_t len)
{
	struct pgoutput_message m;

	p->heard_at = p->now;
	if (pgoutput_take(&p->followed, bytes, len, &m) < 0)
		return postgres_lose(p, "a message of the stream is not understood");
	p->reported += m.what == PGOUTPUT_SET || m.what == PGOUTPUT_DELETE;
	switch (m.what) {
	case PGOUTPUT_NOTHING:
		break;
	case PGOUTPUT_COMMIT:
	case PGOUTPUT_ALIVE:
		postgres_receive(p, m.lsn);
		if (m.asks)
			postgres_tell(p, false);
		break;
	case PGOUTPUT_UNLIKE:
		postgres_lose(p, "%s: the publication lacks the column %s, or a column has another type",
			p->url->table, p->url->value);
		break;
	case PGOUTPUT_SET:
		take_row(p, &m);
		break;
	case PGOUTPUT_DELETE:
		field_delete(p, &m.before);
		break;
	case PGOUTPUT_TRUNCATE:
		postgres_lose(p, "%s was truncated", p->url->table);
		break;
	}
}

static void postgres_read_stream(struct postgres *p)
{
	for (unsigned i = 0; i < TURN_MESSAGES && p->state == POSTGRES_FOLLOWING; i++) {
		char *message = NULL;
		int n = PQgetCopyData(p->stream.conn, &message, 1);

		p->more = n > 0;
		if (n > 0)
			take_message(p, message, (size_t)n);
		PQfreemem(message);
		if (n < 0)
			link_lose(p, &p->stream);
		if (n <= 0)
			return;
	}
}

/* ---- barriers ------------------------------------------------------------------------------------ */

/* The next record begins behind the header of a page, the last one may end before it */
static uint64_t end_of_wal(uint64_t next, uint64_t page)
{
	uint64_t in_page = page ? next % page : next;

	return in_page == PAGE_HEADER || in_page == SEGMENT_HEADER ? next - in_page : next;
}

static void barrier_begin(struct postgres *p)
{
	p->barrier.host_ns = clock_read_ns(CLOCK_REALTIME);
	p->barrier.state = BARRIER_CLOCK;
	postgres_ask_table(p, STEP_DONE);
}

static void barrier_take_clock(struct postgres *p)
{
	const struct postgres_link *l = &p->sql;
	uint64_t next, page;

	if (!PQgetisnull(l->result, 0, WHY))
		return postgres_lose(p, "%s", answer_text(l, WHY));
	if (strcmp(answer_text(l, PRINT), p->print) != 0)
		return postgres_lose(p, "%s or its publication was changed", p->url->table);
	if (number_parse_decimal(answer_text(l, TIME), 0, UINT64_MAX, &p->barrier.source_us) < 0 ||
		number_parse_decimal(answer_text(l, WAL), 0, UINT64_MAX, &next) < 0 ||
		number_parse_decimal(answer_text(l, PAGE), 1, UINT32_MAX, &page) < 0)
		return postgres_lose(p, "the server's clock is not understood");
	p->barrier.goal = end_of_wal(next, page);
	p->barrier.state = BARRIER_WAL;
	postgres_tell(p, true);
}

static void barrier_end(struct postgres *p)
{
	if (p->barrier.source_us < p->mirror->as_of.source)
		mirror_reset_clock(p->mirror);
	mirror_publish(p->mirror, p->barrier.source_us, p->barrier.host_ns, !mirror_count_absent(p->mirror));
	p->barriers++;
	p->barrier.state = BARRIER_NONE;
	p->barrier_at = p->now + BARRIER_MS;
}

static void barrier_step(struct postgres *p)
{
	if (p->barrier.state == BARRIER_NONE && p->now >= p->barrier_at)
		barrier_begin(p);
	if (p->barrier.state == BARRIER_CLOCK && link_answered(p, &p->sql))
		barrier_take_clock(p);
	if (p->state != POSTGRES_FOLLOWING || p->barrier.state != BARRIER_WAL)
		return;
	if (p->received >= p->barrier.goal)
		barrier_end(p);
	else if (p->now - p->ask_at >= ASK_MS)
		postgres_tell(p, true);
}

/* ---- the source ------------------------------------------------------------------------------------ */

static void postgres_follow(struct postgres *p)
{
	postgres_read_stream(p);
	if (p->state == POSTGRES_FOLLOWING)
		barrier_step(p);
	if (p->state == POSTGRES_FOLLOWING && p->now - p->heard_at > PATIENCE_MS)
		postgres_lose(p, "no answer for ten seconds");
	if (p->now >= p->reload_at) {
		p->full = p->full * 2 < FULL_MOST_MS ? p->full * 2 : FULL_MOST_MS;
		postgres_lose(p, "some keys had no room in the table");
	}
}

static void postgres_turn(void *of, const struct pollfd *fds)
{
	struct postgres *p = of;

	p->now = clock_ms();
	if (p->state == POSTGRES_APART && p->now >= p->retry_at)
		postgres_attach(p);
	link_turn(p, &p->stream, fds[0].revents);
	link_turn(p, &p->sql, fds[1].revents);
	while (p->state != POSTGRES_APART && p->step != STEP_DONE && postgres_step(p))
		;
	/* the steps behind may wait for locks, and for transactions of others */
	if (p->state == POSTGRES_ATTACHING && p->step == STEP_CONNECT && p->now - p->heard_at > PATIENCE_MS)
		postgres_lose(p, "no answer for ten seconds");
	if (p->state == POSTGRES_REMOVING)
		postgres_remove(p);
	else if (p->state == POSTGRES_FOLLOWING)
		postgres_follow(p);
	link_flush(p, &p->stream);
	link_flush(p, &p->sql);
	p->grows = mirror_tend(p->mirror, p->now);
}

static int postgres_prepare(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n)
{
	const struct postgres *p = of;
	uint64_t now = clock_ms(), at = now + PAUSE_MOST_MS;

	fds[0] = link_prepare(&p->stream);
	fds[1] = link_prepare(&p->sql);
	*n = 2;
	if (p->grows || p->more || (p->state == POSTGRES_REMOVING && p->step == STEP_DONE))
		return 0;
	if (p->state == POSTGRES_APART)
		at = p->retry_at;
	else if (p->state == POSTGRES_FOLLOWING)
		at = p->barrier.state == BARRIER_NONE ? p->barrier_at : p->ask_at + ASK_MS;
	return at > now ? (int)(at - now) : p->barrier.state == BARRIER_CLOCK ? ASK_MS : 0;
}

static void postgres_report(const void *of, struct source_report *report)
{
	static const char *const names[] = {"apart", "attaching", "copying", "removing", "following"};
	const struct postgres *p = of;

	*report = (struct source_report){
		.stage = p->state == POSTGRES_APART       ? SOURCE_APART
			 : p->state == POSTGRES_FOLLOWING ? SOURCE_FOLLOWING
							  : SOURCE_LOADING,
		.state = names[p->state],
		.why = p->why,
		.loads = p->loads,
		.reported = p->reported,
		.absent = mirror_count_absent(p->mirror),
		.complete = p->state == POSTGRES_FOLLOWING && !mirror_count_absent(p->mirror),
		.settled = p->state == POSTGRES_FOLLOWING && p->barriers,
	};
}

static void postgres_deinit(void *of)
{
	struct postgres *p = of;

	postgres_lose(p, "ended");
}

void postgres_init(
	struct postgres *p, const struct postgres_url *url, const struct prefixes *prefixes, struct mirror *m)
{
	*p = (struct postgres){
		.url = url, .prefixes = prefixes, .mirror = m, .pause = PAUSE_LEAST_MS, .full = FULL_MS};
}

struct source postgres_as_source(struct postgres *p)
{
	return (struct source){.of = p,
		.name = p->url->name,
		.prepare = postgres_prepare,
		.turn = postgres_turn,
		.report = postgres_report,
		.deinit = postgres_deinit};
}

void postgres_print_rights(const struct postgres_url *url)
{
	printf("CREATE ROLE follower LOGIN REPLICATION PASSWORD 'PASSWORD';\n"
	       "GRANT SELECT ON TABLE %s TO follower;\n"
	       "CREATE PUBLICATION %s FOR TABLE %s;\n",
		url->table, url->publication, url->table);
}
