/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - runs a fuzz target without libFuzzer, with any compiler: over the inputs of a table, then over
 * mutations of them. The mutations are the same in every run with the same table and seed. A line of the
 * table is an input: printable characters, \\ for a backslash, \n for a newline, \xNN for any other byte.
 */
#include "softcx/fuzz/random.h"
#include "tests/fuzz/fuzz.h"
#include "util/array.h"
#include "util/number.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_MAX = 8192, TRIES = 100 };

struct input {
	char bytes[INPUT_MAX];
	size_t len;
};

static struct input *seeds;
static unsigned nseeds;
static uint64_t rng;

static unsigned pick(size_t n)
{
	return fuzz_pick(&rng, (uint32_t)n);
}

/* The byte of a line at *@at, which goes to the next one. */
static char table_byte(const char **at)
{
	unsigned byte;

	if (**at != '\\')
		return *(*at)++;
	*at += 2;
	switch ((*at)[-1]) {
	case 'n':
		return '\n';
	case 'x':
		fuzz_need(sscanf(*at, "%2x", &byte) == 1, "two digits lack in an input");
		*at += 2;
		return (char)byte;
	default:
		fuzz_need((*at)[-1] == '\\', "an input has an unknown escape");
		return '\\';
	}
}

static void load_table(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	fuzz_need(f, path);
	while ((len = getline(&line, &room, f)) > 0) {
		struct input *in;

		line[len - 1] = 0; /* the newline */
		seeds = realloc(seeds, (nseeds + 1) * sizeof(*seeds));
		fuzz_need(seeds, path);
		in = &seeds[nseeds++];
		in->len = 0;
		for (const char *at = line; *at;) {
			fuzz_need(in->len < sizeof(in->bytes), "an input is too long");
			in->bytes[in->len++] = table_byte(&at);
		}
	}
	free(line);
	fclose(f);
	fuzz_need(nseeds, path);
}

static void try(const struct input *in, const char *keep)
{
	uint8_t *exact = malloc(in->len ? in->len : 1); /* lets a sanitizer see a read behind the end */
	FILE *f = keep ? fopen(keep, "w") : NULL;

	fuzz_need(exact && (!keep || f), "the input cannot be copied");
	if (f) {
		fwrite(in->bytes, 1, in->len, f);
		fclose(f);
	}
	memcpy(exact, in->bytes, in->len);
	LLVMFuzzerTestOneInput(exact, in->len);
	free(exact);
}

/* Replaces @cut bytes at @at by @n others, if there is room. */
static void splice(struct input *in, size_t at, size_t cut, const void *with, size_t n)
{
	if (in->len - cut + n > sizeof(in->bytes))
		return;
	memmove(in->bytes + at + n, in->bytes + at + cut, in->len - at - cut);
	memcpy(in->bytes + at, with, n);
	in->len += n - cut;
}

/* Finds a word, or the bytes between two words, at a random place. Returns its length, at most 64. */
static size_t token(const struct input *in, size_t *from)
{
	size_t at = in->len ? pick(in->len) : 0, end = at;

	while (at && end - at < 32 && !isalnum(in->bytes[at - 1]) == !isalnum(in->bytes[end]))
		at--;
	while (end < in->len && end - at < 64 && !isalnum(in->bytes[end]) == !isalnum(in->bytes[at]))
		end++;
	*from = at;
	return end - at;
}

static void mutate(struct input *in)
{
	const struct input *donor = &seeds[pick(nseeds)];
	size_t at, from, len = token(in, &at), n = token(donor, &from);
	uint64_t word = fuzz_word(&rng);
	char text[32];

	switch (pick(8)) {
	case 0:
		splice(in, at, len, "", 0);
		break;
	case 1:
		splice(in, at, len, donor->bytes + from, n);
		break;
	case 2:
		splice(in, at, 0, donor->bytes + from, n);
		break;
	case 3: /* a decimal number */
		splice(in, at, len, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, (int64_t)word));
		break;
	case 4: /* a binary number, anywhere */
		at = pick(in->len + 1);
		n = 1u << pick(4);
		splice(in, at, in->len - at < n ? in->len - at : n, &word, n);
		break;
	case 5:
		if (in->len)
			in->bytes[pick(in->len)] = (char)word;
		break;
	case 6: /* one piece many times */
		for (unsigned i = 1u << pick(9); i > 0 && pick(4) == 0; i--)
			splice(in, at, 0, donor->bytes + from, n);
		break;
	case 7:
		if (pick(8) == 0)
			in->len = at;
		break;
	}
}

static uint64_t number(const char *text)
{
	uint64_t n;

	fuzz_need(number_parse(text, 0, UINT32_MAX, &n) == 0, text);
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"refuse", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'}, {"keep", required_argument, NULL, 'k'}, {0}};
	uint64_t refuse = 0, seed = 1, tried = 0;
	const char *keep = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			refuse = number(optarg);
		else if (c == 's')
			seed = number(optarg);
		else if (c == 'k')
			keep = optarg;
		else
			optind = argc;
	}
	if (optind != argc - 1) {
		fputs("usage: fuzz-KIND [--refuse N] [--seed N] [--keep FILE] TABLE\n"
		      "  --refuse N   go on with mutations of its inputs until N inputs were refused\n"
		      "  --seed N     of the mutations (1)\n"
		      "  --keep FILE  write each input there before it is tried\n",
			stderr);
		return 2;
	}
	load_table(argv[optind]);
	for (unsigned i = 0; i < nseeds; i++)
		try(&seeds[i], keep);
	for (; fuzz_refusals < refuse && tried < refuse * TRIES; tried++) {
		struct input in;

		rng = fuzz_start(seed, tried, 0);
		in = seeds[pick(nseeds)];
		for (unsigned i = 1 + pick(4); i > 0; i--)
			mutate(&in);
		try(&in, keep);
	}
	printf("%u seeds and %" PRIu64 " mutations, %" PRIu64 " refused\n", nseeds, tried, fuzz_refusals);
	free(seeds);
	fuzz_need(fuzz_refusals >= refuse, "too few inputs were refused");
	return 0;
}
