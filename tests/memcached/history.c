/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/memcached/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Eight versions each. Every fourth key is a counter. */
enum { SET, APPEND, PREPEND, TOUCH, REPLACE, DELETE, ADD, AGAIN, OPS };
enum { UNIT = 16, STEP = 123456789 };

static bool is_counter(unsigned key)
{
	return key % 4 == 3;
}

void history_key(unsigned key, char name[HISTORY_KEY])
{
	snprintf(name, HISTORY_KEY, "key-%u", key);
}

/* A piece of 16 bytes that no other key or version has */
static void put_unit(char *to, unsigned key, uint64_t version)
{
	char text[UNIT + 1];

	snprintf(text, sizeof(text), "k%03u.v%09" PRIu64 ";", key % 1000, version % 1000000000);
	memcpy(to, text, UNIT);
}

static int put_units(char *to, unsigned key, uint64_t version)
{
	int n = 1 + (int)((version * 7 + key) % 30);

	for (int i = 0; i < n; i++)
		put_unit(to + i * UNIT, key, version);
	return n * UNIT;
}

/* Of a counter: its first version of eight sets it, each other one changes all of its digits, and may add one
 */
static int counter_value(uint64_t version, char value[HISTORY_VALUE])
{
	uint64_t first = version / OPS * OPS;

	return snprintf(
		value, HISTORY_VALUE, "%" PRIu64, first * 1000000 + 9012345678 + (version - first) * STEP);
}

int history_value(unsigned key, uint64_t version, char value[HISTORY_VALUE])
{
	uint64_t first = version / OPS * OPS;
	int len;

	if (version == 0)
		return -1;
	if (is_counter(key))
		return counter_value(version, value);
	switch (version % OPS) {
	case DELETE:
		return -1;
	case REPLACE:
	case ADD:
	case AGAIN:
		return put_units(value, key, version);
	default:
		break;
	}
	len = put_units(value, key, first);
	if (version % OPS >= APPEND) {
		put_unit(value + len, key, first + APPEND);
		len += UNIT;
	}
	if (version % OPS >= PREPEND) {
		memmove(value + UNIT, value, (size_t)len);
		put_unit(value, key, first + PREPEND);
		len += UNIT;
	}
	return len;
}

static size_t store(char *command, const char *verb, const char *name, const char *value, int len)
{
	return (size_t)snprintf(
		command, HISTORY_COMMAND, "%s %s 0 0 %d\r\n%.*s\r\n", verb, name, len, len, value);
}

size_t history_command(unsigned key, uint64_t version, char command[HISTORY_COMMAND])
{
	static const char *const verbs[OPS] = {
		"set", "append", "prepend", "touch", "replace", "delete", "add", "set"};
	const char *verb = verbs[version % OPS];
	char name[HISTORY_KEY], value[HISTORY_VALUE] = "";
	int len;

	history_key(key, name);
	if (is_counter(key) && version % OPS)
		return (size_t)snprintf(command, HISTORY_COMMAND, "incr %s %d\r\n", name, STEP);
	switch (version % OPS) {
	case APPEND:
	case PREPEND:
		put_unit(value, key, version);
		return store(command, verb, name, value, UNIT);
	case TOUCH:
		return (size_t)snprintf(command, HISTORY_COMMAND, "touch %s 0\r\n", name);
	case DELETE:
		return (size_t)snprintf(command, HISTORY_COMMAND, "delete %s\r\n", name);
	default:
		len = history_value(key, version, value);
		return store(command, verb, name, value, len);
	}
}

uint64_t history_restart(uint64_t version)
{
	return (version / OPS + 1) * OPS;
}
