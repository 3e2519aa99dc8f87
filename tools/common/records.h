/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - keys and values as text. Two formats, one record per line:
 *
 *   TSV: key TAB value. In both, \t \n \r \0 \\ and \xHH stand for bytes; other bytes stand for themselves.
 *   Empty lines are skipped. A line without TAB is a key without value, where the caller accepts that. A
 *   carriage return at the end of a line and a byte order mark are those of another system's text file, and
 *   wrong.
 *
 *   JSON: {"key": "...", "value": "..."} with strings in UTF-8; or "key_hex" and "value_hex" with two
 *   hexadecimal digits per byte. Other members are ignored; half a surrogate pair, a control character inside
 *   a string and a member that is there twice are wrong.
 *
 * Reading what was written gives the same bytes.
 */
#ifndef TOOLS_COMMON_RECORDS_H
#define TOOLS_COMMON_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum records_format { RECORDS_TSV, RECORDS_JSON };

struct record_text {
	const uint8_t *key;
	size_t key_len;
	const uint8_t *val; /* NULL: the line had no value */
	size_t val_len;
};

struct records_reader {
	FILE *file;
	enum records_format format;
	uint64_t line;  /* number of the last line read */
	uint64_t bytes; /* read so far */
	size_t most;    /* bytes of a line */
	char *text;
	size_t text_room;
	uint8_t *decoded;
	size_t decoded_room;
	char why[160]; /* why the line is wrong */
};

/** A record of a table has less bytes (reddn-table.h). */
#define RECORDS_MOST (16u << 20)

/** Begin to read @file, which stays the caller's. @most: bytes of the longest key and value together; a line
 * that is longer than any way to write so many is wrong, and is not read to its end. */
void records_init(struct records_reader *r, FILE *file, enum records_format format, size_t most);
void records_deinit(struct records_reader *r);

enum { RECORDS_END = 1 };

/** Read the next record. Its bytes are valid until the next call. RECORDS_END; -EBADMSG: the line is wrong,
 * see `why`; or another -errno, of the file. */
int records_next(struct records_reader *r, struct record_text *rec);

/** Write one line, without a value if it is NULL. ferror() reports a failure. */
void records_write(FILE *f, enum records_format format, const struct record_text *rec);

/** Write bytes as a member of a JSON object: "NAME": "..." or "NAME_hex": "...". */
void records_write_member(FILE *f, const char *name, const uint8_t *bytes, size_t len);

/** True of UTF-8 without control characters. */
bool records_is_text(const uint8_t *bytes, size_t len);

#endif
