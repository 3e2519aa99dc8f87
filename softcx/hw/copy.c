/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/mem.h"

#include <string.h>
#include <sys/uio.h>

enum { BULK = 4096 };

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the first byte of a word is its lowest");

/*
 * A word that is only partly wanted is read whole all the same: a second read of it could see another
 * value. It cannot fault, as a word does not cross a page; hence no address checks here.
 */
__attribute__((no_sanitize("address"))) static uint64_t load_word(const uint8_t *src)
{
	return __atomic_load_n((const uint64_t *)src, __ATOMIC_RELAXED);
}

static void store_word(uint8_t *dst, uint64_t w)
{
	__atomic_store_n((uint64_t *)dst, w, __ATOMIC_RELAXED);
}

/*
 * A word at a time, through a register: from an array that holds several, compilers make vectors that wait
 * for the stores of its words.
 */
static uint64_t get_word(const uint8_t *src)
{
	uint64_t w;

	memcpy(&w, src, sizeof(w));
	return w;
}

static void put_word(uint8_t *dst, uint64_t w)
{
	memcpy(dst, &w, sizeof(w));
}

/* The low @len bytes of @w, fewer than 8. */
static void put_part(uint8_t *dst, uint64_t w, size_t len)
{
	if (len & 4) {
		memcpy(dst, &w, 4);
		dst += 4;
		w >>= 32;
	}
	if (len & 2) {
		memcpy(dst, &w, 2);
		dst += 2;
		w >>= 16;
	}
	if (len & 1)
		*dst = (uint8_t)w;
}

static void load(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t head = (uintptr_t)src & 7, n;

	if (len > BULK) {
		memcpy(dst, src, len);
		return;
	}
	if (head && len) {
		n = 8 - head < len ? 8 - head : len;
		put_part(dst, load_word(src - head) >> 8 * head, n);
		dst += n;
		src += n;
		len -= n;
	}
	for (; len >= 32; len -= 32, src += 32, dst += 32) {
		put_word(dst, load_word(src));
		put_word(dst + 8, load_word(src + 8));
		put_word(dst + 16, load_word(src + 16));
		put_word(dst + 24, load_word(src + 24));
	}
	for (; len >= 8; len -= 8, src += 8, dst += 8)
		put_word(dst, load_word(src));
	if (len)
		put_part(dst, load_word(src), len);
}

/* Fewer than 8 bytes of one aligned word, in the largest aligned pieces. */
static void store_part(uint8_t *dst, const uint8_t *src, size_t len)
{
	uint32_t v4;
	uint16_t v2;

	/* up to where larger pieces are aligned, */
	if ((uintptr_t)dst & 1 && len) {
		__atomic_store_n(dst, *src, __ATOMIC_RELAXED);
		dst++, src++, len--;
	}
	if ((uintptr_t)dst & 2 && len >= 2) {
		memcpy(&v2, src, 2);
		__atomic_store_n((uint16_t *)dst, v2, __ATOMIC_RELAXED);
		dst += 2, src += 2, len -= 2;
	}
	/* and down to what is left */
	if (len & 4) {
		memcpy(&v4, src, 4);
		__atomic_store_n((uint32_t *)dst, v4, __ATOMIC_RELAXED);
		dst += 4, src += 4;
	}
	if (len & 2) {
		memcpy(&v2, src, 2);
		__atomic_store_n((uint16_t *)dst, v2, __ATOMIC_RELAXED);
		dst += 2, src += 2;
	}
	if (len & 1)
		__atomic_store_n(dst, *src, __ATOMIC_RELAXED);
}

static void store(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t head = -(uintptr_t)dst & 7;

	if (len > BULK) {
		memcpy(dst, src, len);
		return;
	}
	if (head) {
		if (head > len)
			head = len;
		store_part(dst, src, head);
		dst += head;
		src += head;
		len -= head;
	}
	for (; len >= 32; len -= 32, src += 32, dst += 32) {
		store_word(dst, get_word(src));
		store_word(dst + 8, get_word(src + 8));
		store_word(dst + 16, get_word(src + 16));
		store_word(dst + 24, get_word(src + 24));
	}
	for (; len >= 8; len -= 8, src += 8, dst += 8)
		store_word(dst, get_word(src));
	if (len)
		store_part(dst, src, len);
}

/* Memory that only another process has. */
__attribute__((noinline)) static bool reach(
	const struct hw_span *s, uint32_t off, uint8_t *buf, uint32_t len, bool out)
{
	struct iovec local = {buf, len}, remote = {(void *)(uintptr_t)(s->va + off), len};

	if (!len)
		return true;
	if (s->mem->reach)
		return s->mem->reach(s->mem, s->va + off, buf, len, out);
	return (out ? process_vm_writev(s->mem->pid, &local, 1, &remote, 1, 0)
		    : process_vm_readv(s->mem->pid, &local, 1, &remote, 1, 0)) == (ssize_t)len;
}

static inline bool span_load(uint8_t *dst, const struct hw_span *s, uint32_t off, uint32_t len)
{
	if (__builtin_expect(!s->host, 0))
		return reach(s, off, dst, len, false);
	load(dst, s->host + off, len);
	return true;
}

static inline bool span_store(const struct hw_span *s, uint32_t off, const uint8_t *src, uint32_t len)
{
	if (__builtin_expect(!s->host, 0))
		return reach(s, off, (uint8_t *)(uintptr_t)src, len, true);
	store(s->host + off, src, len);
	return true;
}

/* A place in a list of spans. */
struct cursor {
	const struct hw_span *span;
	uint32_t off;
};

static bool gather(uint8_t *dst, struct cursor *c, uint32_t len)
{
	while (len) {
		uint32_t n = c->span->len - c->off;

		if (!n) {
			c->span++;
			c->off = 0;
			continue;
		}
		if (n > len)
			n = len;
		if (!span_load(dst, c->span, c->off, n))
			return false;
		dst += n;
		len -= n;
		c->off += n;
	}
	return true;
}

static bool scatter(struct cursor *c, const uint8_t *src, uint32_t len)
{
	while (len) {
		uint32_t n = c->span->len - c->off;

		if (!n) {
			c->span++;
			c->off = 0;
			continue;
		}
		if (n > len)
			n = len;
		if (!span_store(c->span, c->off, src, n))
			return false;
		src += n;
		len -= n;
		c->off += n;
	}
	return true;
}

bool hw_gather(void *dst, const struct hw_span *src, unsigned nsrc, uint32_t len)
{
	struct cursor c = {src, 0};

	if (nsrc == 1 && len <= src->len)
		return span_load(dst, src, 0, len);
	return len == 0 || (nsrc && gather(dst, &c, len));
}

bool hw_scatter(const struct hw_span *dst, unsigned ndst, const void *src, uint32_t len)
{
	struct cursor c = {dst, 0};

	if (ndst == 1 && len <= dst->len)
		return span_store(dst, 0, src, len);
	return len == 0 || (ndst && scatter(&c, src, len));
}

bool hw_scatter_backwards(const struct hw_span *dst, unsigned ndst, const void *src)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < ndst; i++)
		at += dst[i].len;
	for (unsigned i = ndst; i--;) {
		at -= dst[i].len;
		if (!span_store(&dst[i], 0, (const uint8_t *)src + at, dst[i].len))
			return false;
	}
	return true;
}

bool hw_copy(const struct hw_span *dst, unsigned ndst, const struct hw_span *src, unsigned nsrc, uint32_t len)
{
	_Alignas(64) uint8_t buf[BULK];
	struct cursor from = {src, 0}, to = {dst, 0};

	/* in one piece, whatever the alignment */
	if (len <= BULK - 8)
		return hw_gather(buf, src, nsrc, len) && hw_scatter(dst, ndst, buf, len);
	if (len > BULK && ndst == 1 && nsrc == 1 && src->host && dst->host) {
		memmove(dst->host, src->host, len);
		return true;
	}
	while (len) {
		/* A chunk ends at the end of a source word: the next one must not read that word again */
		uint32_t n = BULK -
			     (nsrc == 1 ? ((src->host ? (uintptr_t)src->host : src->va) + from.off) & 7 : 0);

		if (n > len)
			n = len;
		if (!gather(buf, &from, n) || !scatter(&to, buf, n))
			return false;
		len -= n;
	}
	return true;
}
