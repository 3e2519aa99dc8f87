/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pgoutput.h - what a replication slot of PostgreSQL sends of one table, message by message: protocol version
 * 1 of the plugin pgoutput (protocol-replication and protocol-logicalrep-message-formats of its manual). A
 * value is the text of its type's output function; bytea becomes bytes. Pure: it decodes in place.
 */
#ifndef TOOLS_REDDN_FOLLOW_PGOUTPUT_H
#define TOOLS_REDDN_FOLLOW_PGOUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A column that is followed. */
struct pgoutput_column {
	char name[64];
	uint32_t type; /* its OID */
	bool is_bytes;
	int at; /* in the tuples of the messages; -1: not known yet */
};

/** What is followed. Key and value may be one column. */
struct pgoutput_table {
	uint32_t oid;
	struct pgoutput_column key, value;
};

struct pgoutput_field {
	enum {
		PGOUTPUT_NONE,
		PGOUTPUT_VALUE,
		PGOUTPUT_NULL,
		PGOUTPUT_AS_BEFORE, /* a long one that an update did not touch */
	} kind;
	char *bytes; /* of the message */
	size_t len;
};

struct pgoutput_message {
	enum {
		PGOUTPUT_NOTHING, /* nothing of this table */
		PGOUTPUT_COMMIT,
		PGOUTPUT_ALIVE,  /* of the server; `asks`: for a status */
		PGOUTPUT_UNLIKE, /* the table has other columns, or other types, than those that are followed
				  */
		PGOUTPUT_SET,    /* a row is there, or another one than before */
		PGOUTPUT_DELETE, /* the row of `before` */
		PGOUTPUT_TRUNCATE,
	} what;
	uint64_t lsn; /* COMMIT, ALIVE: all commits before have been sent */
	bool asks;
	struct pgoutput_field before; /* the key that the row had; SET: if it had another one */
	struct pgoutput_field key, value;
};

/** Takes the next message of the stream; @t learns where its columns are. -EBADMSG: it is none. */
int pgoutput_take(struct pgoutput_table *t, char *bytes, size_t len, struct pgoutput_message *m);

/** bytea as text to bytes, in place. -EBADMSG: it is none. */
int pgoutput_decode_bytea(char *bytes, size_t *len);

#endif
