/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis-slots.h - the slots of Redis Cluster (its specification), and which of them a table has, which all
 * have one range (table-format.h, live.slots): what a follower of a cluster states, and how a client finds
 * the table of a key.
 */
#ifndef PROTOCOL_REDIS_SLOTS_H
#define PROTOCOL_REDIS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REDIS_SLOTS = 16384 };

/** CRC-16/XMODEM. */
static inline unsigned redis_crc16(const char *p, size_t len)
{
	static const uint16_t of_nibble[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
		0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
	unsigned crc = 0;

	for (; len--; p++) {
		crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ (unsigned char)*p >> 4) & 15]) & 0xffff;
		crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ (unsigned char)*p) & 15]) & 0xffff;
	}
	return crc;
}

/** Of the key, or of its tag: what it has between the first brace and the next closing one, if that is not
 * empty. */
static inline unsigned redis_slot(const void *key, size_t len)
{
	const char *text = key, *open = memchr(text, '{', len);
	const char *close = open ? memchr(open, '}', len - (size_t)(open - text)) : NULL;

	if (close && close > open + 1)
		return redis_crc16(open + 1, (size_t)(close - open - 1)) % REDIS_SLOTS;
	return redis_crc16(text, len) % REDIS_SLOTS;
}

/** As in live.slots: bits 0 to 15 are the first slot, bits 16 to 31 how many there are; 0: none. */
static inline uint64_t redis_slots(unsigned first, unsigned n)
{
	return n ? first | (uint64_t)n << 16 : 0;
}

static inline unsigned redis_slots_first(uint64_t slots)
{
	return slots & 0xffff;
}

static inline unsigned redis_slots_count(uint64_t slots)
{
	return slots >> 16 & 0xffff;
}

static inline bool redis_slots_have(uint64_t slots, unsigned slot)
{
	return slot - redis_slots_first(slots) < redis_slots_count(slots);
}

#define REDIS_SLOTS_ALL redis_slots(0, REDIS_SLOTS)

#endif
