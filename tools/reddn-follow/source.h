/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what the main loop of a follower knows of a source, whatever it is: it waits on its descriptors,
 * gives it its turns, and reports how it stands. A source writes to the mirror that it was made with.
 */
#ifndef TOOLS_REDDN_FOLLOW_SOURCE_H
#define TOOLS_REDDN_FOLLOW_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

enum { SOURCE_FDS = 128, SOURCE_PREFIXES = 16, SOURCE_WHY = 512 };

/** Only keys that begin with one of these; none: all keys. */
struct prefixes {
	const char *text[SOURCE_PREFIXES];
	unsigned n;
};

static inline bool prefixes_have(const struct prefixes *p, const void *key, size_t len)
{
	for (unsigned i = 0; i < p->n; i++)
		if (len >= strlen(p->text[i]) && memcmp(key, p->text[i], strlen(p->text[i])) == 0)
			return true;
	return !p->n;
}

/** A hash of @h and the prefixes. */
static inline uint64_t prefixes_hash(const struct prefixes *p, uint64_t h)
{
	for (unsigned i = 0; i < p->n; i++)
		h = XXH3_64bits_withSeed(p->text[i], strlen(p->text[i]) + 1, h);
	return h;
}

/** Of what a table is made equal to, 24 bits (mirror_set_source()). @text names it. */
static inline uint32_t source_number(const char *text, const struct prefixes *p)
{
	return (uint32_t)(prefixes_hash(p, XXH3_64bits(text, strlen(text))) >> 40);
}

enum source_stage {
	SOURCE_APART,     /* it cannot be read; it is tried again */
	SOURCE_LOADING,   /* the table is being made equal to it */
	SOURCE_FOLLOWING, /* the table is equal to it, and follows */
};

struct source_report {
	enum source_stage stage;
	const char *state; /* the name of its own state */
	const char *why;   /* the last trouble; empty: there is none */
	uint64_t loads;    /* how often the table was made equal as a whole */
	uint64_t reported; /* keys that the source has reported as changed */
	uint64_t absent;   /* keys that the table cannot have */
	bool complete;     /* it follows, and the table has all keys */
	bool settled;      /* it follows, nothing is to be loaded again, and that was published */
};

struct source {
	void *of;
	const char *name; /* for messages */
	/** What to wait for, in milliseconds and on *@n descriptors; negative ones are not in use. */
	int (*prepare)(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n);
	/** Does what there is to do. @fds: of prepare, after poll(2). */
	void (*turn)(void *of, const struct pollfd *fds);
	void (*report)(const void *of, struct source_report *report);
	void (*deinit)(void *of);
};

#endif
