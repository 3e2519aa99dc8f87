/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz [--time SECONDS] [--runs N] [--seed N] [--keep FILE] [PROGRAM...]: compiles the PROGRAMs, then
 * programs made at random. Half of these keep to the grammar (generate.h), others are such ones or the
 * PROGRAMs with parts of other ones, words left out, doubled or changed, and bytes of any kind. Of what the
 * compiler does with each:
 *   - it takes the program or refuses it with words, and those name a line that is there;
 *   - it gives the same result when it is asked again;
 *   - what it takes is whole: every byte of the request has its argument, every step its line;
 *   - a second opinion on the image agrees (tests/image/check.h).
 * The program at hand is in FILE, which is what remains of a crash. Meant to be built with sanitizers.
 */
#include "reddnd/program/program.h"
#include "tests/image/check.h"
#include "tests/programs/generate.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	LARGEST = PROGRAM_MAX_SOURCE + 64,
	SEEDS = 512,
	PATIENCE = 20, /* seconds for one program, sanitizers and a loaded machine allowed for */
};

struct seed {
	char *text;
	size_t len;
};

static struct seed seeds[SEEDS];
static unsigned nseeds;
static char *text; /* of the program at hand; mapped, so that it survives */
static uint64_t run;

static void wrong(const char *what, const char *said)
{
	fprintf(stderr, "run %llu: %s\n%s", (unsigned long long)run, what, said ? said : "");
	abort();
}

/* ---- programs --------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The word, or the character, at @at */
static size_t token(const char *t, size_t len, size_t at, size_t *end)
{
	size_t from = at, to = at;

	while (from && is_word(t[at]) && is_word(t[from - 1]))
		from--;
	while (to < len && is_word(t[at]) && is_word(t[to]))
		to++;
	*end = to > at ? to : at + 1;
	return from;
}

/* Puts @n bytes in the place of [from, to) */
static size_t replace(size_t len, size_t from, size_t to, const char *with, size_t n)
{
	char copy[64];

	n = n < sizeof(copy) ? n : sizeof(copy);
	if (len - (to - from) + n > PROGRAM_MAX_SOURCE)
		return len;
	memcpy(copy, with, n); /* which may be a part of what is moved */
	memmove(text + from + n, text + to, len - to);
	memcpy(text + from, copy, n);
	return len - (to - from) + n;
}

static size_t mutate(struct random *r, size_t len)
{
	static const char *const WORDS[] = {"@", "->", ",", ":", "{", "}", "(", ")", "[0]", "[", "]", ".",
		"..", "\n", " as be32", " as bytes 12", "0", "1", "255", "64K", "0xffffffffffffffff",
		"18446744073709551615", "-", "~", "<<", "*", "swab(", "slot", "if", "else", "for i in 0..9 {",
		"loop max 9 {", "while v0 < 3 max 2 {", "endless", "break", "on q {", "var", "arg", "region",
		"struct", "queue q", "read", "write", "write_imm", "mov", "cas", "add", "by", "nop", "fence",
		"wait request", "wait l0", "enable l0", "l0.length", "l0.local[1].addr", "l1.opcode",
		"l1.imm", "l1.compare", "v0", "v1", "a0", "r0", "s0", "n", "#", "\r\n"};
	size_t at, from, to, other;
	char byte;

	if (!len)
		return 0;
	at = random_below(r, (unsigned)len);
	from = token(text, len, at, &to);
	switch (random_below(r, 8)) {
	case 0: /* left out */
		return replace(len, from, to, "", 0);
	case 1: /* twice */
		return replace(len, to, to, text + from, to - from);
	case 2: /* a word of the language */
	case 3: {
		const char *w = WORDS[random_below(r, sizeof(WORDS) / sizeof(WORDS[0]))];

		return replace(len, random_below(r, 2) ? from : to, to, w, strlen(w));
	}
	case 4: /* a word from elsewhere in the program */
	case 5:
		other = random_below(r, (unsigned)len);
		at = token(text, len, other, &other);
		return replace(len, from, to, text + at, other - at);
	case 6: /* any byte */
		byte = (char)random_next(r);
		return replace(len, at, at + 1, &byte, 1);
	default: /* the end is missing, or a line is */
		if (random_below(r, 20) == 0)
			return at;
		for (from = at; from && text[from - 1] != '\n';)
			from--;
		for (to = at; to < len && text[to] != '\n';)
			to++;
		return replace(len, from, to, "", 0);
	}
}

static size_t next_program(struct random *r)
{
	struct generate_style style = {.mistakes = 0, .statements = 1 + random_below(r, 16)};
	unsigned kind = random_below(r, 10), changes;
	size_t len;

	if (run < nseeds) {
		memcpy(text, seeds[run].text, seeds[run].len);
		return seeds[run].len;
	}
	if (kind < 3) /* right, and larger now and then */
		style.statements += random_below(r, 30) == 0 ? 150 : 0;
	else
		style.mistakes = random_below(r, 60);
	if (kind < 8 || !nseeds) {
		len = generate(r, &style, text, PROGRAM_MAX_SOURCE);
	} else {
		const struct seed *s = &seeds[random_below(r, nseeds)];

		len = s->len;
		memcpy(text, s->text, len);
	}
	changes = kind < 5 ? 0 : 1 + random_below(r, 6);
	while (changes--)
		len = mutate(r, len);
	return len;
}

/* ---- what is said ----------------------------------------------------------------------------- */

static void check_messages(const char *said, size_t len)
{
	unsigned lines = 1, errors = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	for (const char *line = said; *line; line = strchr(line, '\n') + 1) {
		unsigned at = 0;

		if (!strchr(line, '\n'))
			wrong("a message without an end of line", said);
		if (strncmp(line, "fuzz.rdn:", 9) != 0)
			continue;
		if (sscanf(line, "fuzz.rdn:%u:", &at) == 1 && (at == 0 || at > lines))
			wrong("a message about a line that is not there", said);
		errors++;
	}
	if (!errors)
		wrong("a program is refused without a word", said);
}

static void check_program(const struct program *p, const struct program_target *target)
{
	unsigned bytes = 0;
	char why[300];

	for (unsigned i = 0; i < p->npieces; i++) {
		const struct program_piece *piece = &p->pieces[i];

		if (piece->arg >= p->nargs || piece->first + piece->len > p->args[piece->arg].bytes)
			wrong("a piece of the request is no part of its argument", NULL);
		bytes += piece->len;
	}
	if (bytes != p->image->arg_len)
		wrong("the pieces are not the request", NULL);
	for (unsigned i = 0; i < p->desc->nsteps; i++) {
		if (!p->desc->steps[i].line && !p->desc->steps[i].why)
			wrong("a step without a line", NULL);
	}
	for (unsigned i = 0; p->loop && i < p->loop->nsteps; i++) {
		if (!p->loop->steps[i].line && !p->loop->steps[i].why)
			wrong("a step of the loop without a line", NULL);
	}
	if (!image_check(p, target, why, sizeof(why)))
		wrong("the second opinion on its image differs", why);
}

static int compile(
	size_t len, struct random *r, struct program_target *target, struct program **p, char **said)
{
	struct program_setting set = {"n", random_below(r, 4)};
	char *exact = malloc(len ? len : 1); /* so that reading behind the end shows */
	struct program_source src = {"fuzz.rdn", exact, len};
	int result;

	if (!exact)
		return -1;
	memcpy(exact, text, len);
	*target = (struct program_target){.masked_atomics = random_below(r, 4) > 0,
		.swapped_old = random_below(r, 4) == 0,
		.ignores_index = random_below(r, 4) == 0,
		.fenced_enables = random_below(r, 3) == 0,
		.calc = random_below(r, 3) ? PROGRAM_CALC : 0};
	result = program_compile(&src, &set, random_below(r, 2), target, p, said);
	free(exact);
	return result;
}

static bool one(struct random *r)
{
	size_t len = next_program(r);
	struct random same = *r;
	struct program *p = NULL, *again = NULL;
	struct program_target target;
	char *said = NULL, *said_again = NULL;
	int result;

	memset(text + len, 0, LARGEST - len < 64 ? LARGEST - len : 64);
	alarm(PATIENCE);
	result = compile(len, r, &target, &p, &said);
	if (result == PROGRAM_REFUSED)
		check_messages(said, len);
	else if (result)
		wrong("neither accepted nor refused", NULL);
	else
		check_program(p, &target);
	if (random_below(r, 8) == 0) {
		if (compile(len, &same, &target, &again, &said_again) != result ||
			(said && strcmp(said, said_again) != 0))
			wrong("something else is said the second time", said_again);
	}
	alarm(0);
	program_free(p);
	program_free(again);
	free(said);
	free(said_again);
	return result == 0;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static void load(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct seed *s = &seeds[nseeds];

	if (!f) {
		perror(path);
		exit(2);
	}
	s->text = malloc(PROGRAM_MAX_SOURCE);
	if (s->text) {
		s->len = fread(s->text, 1, PROGRAM_MAX_SOURCE, f);
		nseeds++;
	}
	fclose(f);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Once a second, where somebody looks */
static void progress(double elapsed, uint64_t accepted)
{
	static unsigned last;

	if (!isatty(STDERR_FILENO) || (unsigned)elapsed == last)
		return;
	last = (unsigned)elapsed;
	fprintf(stderr, "\r%llu programs, %llu accepted, %u s ", (unsigned long long)run,
		(unsigned long long)accepted, last);
}

int main(int argc, char **argv)
{
	static const struct option OPTIONS[] = {{"time", 1, NULL, 't'}, {"runs", 1, NULL, 'r'},
		{"seed", 1, NULL, 's'}, {"keep", 1, NULL, 'k'}, {NULL, 0, NULL, 0}};
	double seconds = 60, start = now();
	uint64_t runs = UINT64_MAX, seed = (uint64_t)time(NULL), accepted = 0;
	const char *keep = NULL;
	int c, fd = -1;

	while ((c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
		if (c == 't') {
			seconds = atof(optarg);
		} else if (c == 'r') {
			runs = strtoull(optarg, NULL, 0);
			seconds = 1e9;
		} else if (c == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else if (c == 'k') {
			keep = optarg;
		} else {
			fprintf(stderr, "usage: fuzz [--time SECONDS] [--runs N] [--seed N] [--keep FILE] "
					"[PROGRAM...]\n");
			return 2;
		}
	}
	while (optind < argc && nseeds < SEEDS)
		load(argv[optind++]);
	if (keep) {
		fd = open(keep, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, LARGEST)) {
			perror(keep);
			return 2;
		}
	}
	text = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
		fd, 0);
	if (text == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (; run < runs && now() - start < seconds; run++) {
		/* each has its own start, so that --seed plus its number repeats it */
		struct random r = {(seed + run + 1) * 0x9e3779b97f4a7c15u | 1};

		random_next(&r);
		accepted += one(&r);
		progress(now() - start, accepted);
	}
	if (isatty(STDERR_FILENO))
		fputc('\r', stderr);
	printf("%llu programs, %llu accepted, %.0f s\n", (unsigned long long)run,
		(unsigned long long)accepted, now() - start);
	while (nseeds)
		free(seeds[--nseeds].text);
	image_check_done();
	munmap(text, LARGEST);
	if (fd >= 0)
		close(fd);
	if (keep)
		unlink(keep);
	return 0;
}
