/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/inputs.h"

#include <stdio.h>
#include <string.h>

/* Puts @n bytes in the place of @cut bytes at @at, if there is room */
static void splice(struct input *t, size_t at, size_t cut, const char *with, size_t n)
{
	if (at > t->len || cut > t->len - at || t->len - cut + n > INPUT_MAX - 1)
		return;
	memmove(t->bytes + at + n, t->bytes + at + cut, t->len - at - cut);
	memcpy(t->bytes + at, with, n);
	t->len += n - cut;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-';
}

/* A word, or what is between words, near a place chosen at random */
static size_t token(const struct input *t, size_t *from)
{
	size_t at = t->len ? inputs_pick((unsigned)t->len) : 0, end = at;

	if (!t->len)
		return *from = 0;
	while (at && is_word(t->bytes[at - 1]) == is_word(t->bytes[at]) && end - at < 24)
		at--;
	while (end < t->len && is_word(t->bytes[end]) == is_word(t->bytes[at]) && end - at < 48)
		end++;
	*from = at;
	return end - at;
}

static void damage(struct input *t, const char *const *words, unsigned nwords)
{
	size_t at, len = token(t, &at), other, n;
	char copy[64], value[32];

	switch (inputs_pick(8)) {
	case 0:
		splice(t, at, len, "", 0);
		break;
	case 1: /* twice */
		memcpy(copy, t->bytes + at, len);
		splice(t, at, 0, copy, len);
		break;
	case 2: /* another part of it */
		n = token(t, &other);
		memcpy(copy, t->bytes + other, n);
		splice(t, at, len, copy, n);
		break;
	case 3:
	case 4:
		other = inputs_pick(nwords);
		splice(t, at, inputs_pick(2) ? len : 0, words[other], strlen(words[other]));
		break;
	case 5:
		n = (size_t)snprintf(value, sizeof(value), "%lld", (long long)inputs_word());
		splice(t, at, len, value, n);
		break;
	case 6:
		if (t->len)
			t->bytes[inputs_pick((unsigned)t->len)] = (char)inputs_pick(256);
		break;
	case 7:
		if (inputs_pick(8) == 0)
			t->len = at;
		else /* the same thing very often */
			for (unsigned i = 1u << inputs_pick(9); i > 0; i--)
				splice(t, at, 0, words[0], strlen(words[0]));
		break;
	}
	t->bytes[t->len] = 0;
}

void inputs_damage(struct input *in, const char *good, const char *const *words, unsigned nwords)
{
	in->len = strlen(good);
	memcpy(in->bytes, good, in->len);
	for (unsigned i = inputs_pick(3) ? 1 : 1 + inputs_pick(4); i > 0; i--)
		damage(in, words, nwords);
}
