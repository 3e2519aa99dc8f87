/* SPDX-License-Identifier: BSD-2-Clause */
/* key.h - what a key of memcached is. */
#ifndef MEMCACHED_KEY_H
#define MEMCACHED_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum { MEMCACHED_KEY_MOST = 250 };
#define MEMCACHED_KEY_WORDS "1 to 250 bytes without white space and control characters"

/** True if @key can be in a command of the text protocol: what has white space or control characters would
 * end the command, and begin another one (protocol.txt, "Keys"). */
static inline bool key_is_text(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] <= ' ' || key[i] == 0x7f)
			return false;
	return len && len <= MEMCACHED_KEY_MOST;
}

#endif
