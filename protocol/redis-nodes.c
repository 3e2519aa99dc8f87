/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/redis-nodes.h"

#include "protocol/redis-origin.h"

#include <stdlib.h>
#include <string.h>

enum { ID, ADDRESS, FLAGS, EPOCH = 6, RANGES = 8 }; /* words of a line */

/* The words of a line, up to RANGES; how many there are. The last one goes on to the end of the line. */
static unsigned line_split(
	const char *line, size_t len, const char *word[RANGES + 1], size_t word_len[RANGES + 1])
{
	const char *end = line + len;
	unsigned n = 0;

	while (n <= RANGES && line < end) {
		const char *space = n < RANGES ? memchr(line, ' ', (size_t)(end - line)) : NULL;

		word[n] = line;
		word_len[n++] = (size_t)((space ? space : end) - line);
		line = space ? space + 1 : end;
	}
	return n;
}

/* One of those with commas between them */
static bool has_flag(const char *flags, size_t len, const char *flag)
{
	const char *end = flags + len, *next;

	for (; flags < end; flags = next + 1) {
		next = memchr(flags, ',', (size_t)(end - flags));
		next = next ? next : end;
		if ((size_t)(next - flags) == strlen(flag) && memcmp(flags, flag, strlen(flag)) == 0)
			return true;
	}
	return false;
}

/* ip:port@cport,hostname; without a host: it is the node itself, which does not know its address */
static void read_address(struct redis_master *m, const char *text, size_t len)
{
	const char *end = text + strcspn(text, "@ "), *colon = memrchr(text, ':', (size_t)(end - text));

	*m->host = '\0';
	m->port = 0;
	if (!colon || end > text + len || (size_t)(colon - text) >= sizeof(m->host))
		return;
	memcpy(m->host, text, (size_t)(colon - text));
	m->host[colon - text] = '\0';
	m->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

bool redis_nodes_next(const char **text, struct redis_master *m)
{
	const char *word[RANGES + 1];
	size_t len[RANGES + 1], line;

	for (; **text; *text += line + ((*text)[line] == '\n')) {
		line = strcspn(*text, "\n");
		if (line_split(*text, line, word, len) <= RANGES ||
			!has_flag(word[FLAGS], len[FLAGS], "master") || len[ID] >= sizeof(m->id) ||
			*word[RANGES] == '[')
			continue;
		memcpy(m->id, word[ID], len[ID]);
		m->id[len[ID]] = '\0';
		read_address(m, word[ADDRESS], len[ADDRESS]);
		m->epoch = strtoull(word[EPOCH], NULL, 10);
		m->fails = has_flag(word[FLAGS], len[FLAGS], "fail") ||
			   has_flag(word[FLAGS], len[FLAGS], "fail?");
		m->ranges = word[RANGES];
		m->len = len[RANGES];
		*text += line + ((*text)[line] == '\n');
		return true;
	}
	return false;
}

/* Without those that move, which are behind them and in brackets */
static size_t ranges_len(const struct redis_master *m)
{
	const char *bracket = memchr(m->ranges, '[', m->len);

	return bracket ? (size_t)(bracket - m->ranges) - 1 : m->len;
}

unsigned redis_nodes_assign(
	const struct redis_master *m, uint64_t wanted, uint8_t owner[REDIS_SLOTS], uint8_t number)
{
	const char *p = m->ranges, *end = m->ranges + ranges_len(m);
	unsigned n = 0;
	char *next;

	while (p < end) {
		unsigned long first = strtoul(p, &next, 10), last = first;

		if (next == p)
			break;
		if (*next == '-')
			last = strtoul(next + 1, &next, 10);
		for (; first <= last && first < REDIS_SLOTS; first++) {
			if (!redis_slots_have(wanted, (unsigned)first))
				continue;
			n++;
			if (owner)
				owner[first] = number;
		}
		p = next + (*next == ' ');
	}
	return n;
}

static uint64_t master_hash(const struct redis_master *m)
{
	char head[80];
	int len = snprintf(head, sizeof(head), "%s %" PRIu64 " ", m->id, m->epoch);

	return redis_origin_fnv(
		redis_origin_fnv(REDIS_ORIGIN_FNV, head, (size_t)len), m->ranges, ranges_len(m));
}

/* A sum: each node has its own order of lines */
uint64_t redis_nodes_view(const char *text)
{
	struct redis_master m;
	uint64_t view = 1;

	while (redis_nodes_next(&text, &m))
		view += master_hash(&m) ^ m.port;
	return view;
}

uint64_t redis_nodes_origin(const char *text, const char *const *prefixes, size_t nprefixes)
{
	struct redis_master m;
	uint64_t origin = 0;

	while (redis_nodes_next(&text, &m))
		origin += master_hash(&m);
	return origin ? redis_origin_of_keys(origin, prefixes, nprefixes) : 0;
}

uint64_t redis_nodes_version(const char *text)
{
	struct redis_master m;
	uint64_t version = 0;

	while (redis_nodes_next(&text, &m))
		version += m.epoch * redis_nodes_assign(&m, REDIS_SLOTS_ALL, NULL, 0);
	return version;
}

bool redis_nodes_are_ruled(const char *text)
{
	struct redis_master m;
	unsigned all = 0, lost = 0;

	while (redis_nodes_next(&text, &m)) {
		all++;
		lost += m.fails;
	}
	return 2 * lost < all;
}

/* Ranges, and behind them in brackets slots that it gives away or gets */
static bool ranges_move(const char *ranges, size_t len, uint64_t wanted)
{
	const char *end = ranges + len, *p;

	for (p = ranges; (p = memchr(p, '[', (size_t)(end - p))); p++)
		if (redis_slots_have(wanted, (unsigned)strtoul(p + 1, NULL, 10)))
			return true;
	return false;
}

bool redis_nodes_myself(const char *text, uint64_t wanted, char id[48], bool *moves)
{
	const char *word[RANGES + 1];
	size_t len[RANGES + 1], line;

	for (; *text; text += line + (text[line] == '\n')) {
		unsigned n;

		line = strcspn(text, "\n");
		n = line_split(text, line, word, len);
		if (n < RANGES || !has_flag(word[FLAGS], len[FLAGS], "myself") || len[ID] >= 48)
			continue;
		memcpy(id, word[ID], len[ID]);
		id[len[ID]] = '\0';
		*moves = n > RANGES && ranges_move(word[RANGES], len[RANGES], wanted);
		return true;
	}
	return false;
}
