/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/proof-item.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint16_t flags_of(const struct proof_item *want)
{
	return (uint16_t)(CACHE_ITEM_LINKED | CACHE_ITEM_CAS | (want->flags ? CACHE_ITEM_CFLAGS : 0));
}

size_t proof_item_size(const struct proof_item *want)
{
	return reddn_cache_value((uint8_t)strlen(want->key), flags_of(want)) + strlen(want->value) + 2;
}

static int differs(char *why, const char *field, unsigned off, uint64_t is, uint64_t should)
{
	snprintf(why, PROOF_WHY,
		"this memcached has another layout of items: of one that was set, %s (byte %u) is %" PRIu64
		" where %" PRIu64 " is right",
		field, off, is, should);
	return -EINVAL;
}

static int different_bytes(char *why, const char *field, size_t off)
{
	snprintf(why, PROOF_WHY,
		"this memcached has another layout of items: of one that was set, byte %zu does not begin %s",
		off, field);
	return -EINVAL;
}

static int compare_header(const struct proof_item *want, const struct reddn_cache_item *h, char *why)
{
	uint16_t looked_at = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_SLABBED | CACHE_ITEM_CHUNKED |
			     CACHE_ITEM_HDR | CACHE_ITEM_CFLAGS;
	size_t nbytes = strlen(want->value) + 2;
	uint32_t set = h->time;

	if (set < want->clock_min || set > want->clock_max)
		return differs(why, "time", 24, set, want->clock_min);
	/* the clock may tick while memcached takes the command */
	if (want->ttl ? h->exptime - want->ttl < want->clock_min || h->exptime - want->ttl > want->clock_max
		      : h->exptime != 0)
		return differs(why, "exptime", 28, h->exptime, want->ttl ? want->clock_min + want->ttl : 0);
	if (h->nbytes != (int32_t)nbytes)
		return differs(why, "nbytes", 32, (uint32_t)h->nbytes, nbytes);
	/* one of the reply with the CAS id, which memcached releases after it was sent (resp_finish), and one
	 * of a thread that goes through its lists or pages, which has locked the item (items.c,
	 * lru_pull_tail) */
	if (h->refcount < 1 || h->refcount > 3)
		return differs(why, "refcount", 36, h->refcount, 1);
	if ((h->it_flags & looked_at) != flags_of(want))
		return differs(why, "it_flags", 38, h->it_flags & looked_at, flags_of(want));
	if ((h->clsid & 0x3f) == 0)
		return differs(why, "slabs_clsid", 40, h->clsid, 1);
	if (h->nkey != strlen(want->key))
		return differs(why, "nkey", 41, h->nkey, strlen(want->key));
	if (h->cas != want->cas)
		return differs(why, "the CAS id", 48, h->cas, want->cas);
	return 0;
}

int proof_item_compare(const struct proof_item *want, const uint8_t *bytes, char why[PROOF_WHY])
{
	size_t off = sizeof(struct reddn_cache_item), nkey = strlen(want->key), len = strlen(want->value);
	struct reddn_cache_item h;
	int e;

	memcpy(&h, bytes, sizeof(h));
	e = compare_header(want, &h, why);
	if (e < 0)
		return e;
	if (memcmp(bytes + off, want->key, nkey) != 0)
		return different_bytes(why, "the key", off);
	/* the byte behind the key is what the memory had before (items.c, do_item_alloc) */
	off += nkey + 1;
	if (want->flags) {
		if (memcmp(bytes + off, &want->flags, sizeof(want->flags)) != 0)
			return different_bytes(why, "the client's flags", off);
		off += sizeof(want->flags);
	}
	if (memcmp(bytes + off, want->value, len) != 0 || memcmp(bytes + off + len, "\r\n", 2) != 0)
		return different_bytes(why, "the value, CR and LF", off);
	return 0;
}
