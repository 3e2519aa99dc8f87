/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inputs KIND [OPTIONS] [SOCKET] - malformed input of one kind (inputs.h), made at random from good input:
 *
 *   config   configuration files, to the catalog
 *   connect  private data of a connection, to the parser of requests
 *   table    files, to what the daemon and the client library make of tables
 *   control  lines, to the control socket of a living daemon at SOCKET
 *
 *   --seed N --first N --count N | --time SECONDS   input n of a seed is always the same: "--seed S --first N
 * --count 1" repeats it
 *   --corpus FILE     the inputs of this file instead, each a line
 *   --collect FILE    of the inputs made, writes those that are refused and that differ in what they make the
 * code do, --keep N (1200) of them: first each that reaches something new, then those that take another path
 *
 * Meant to be built with sanitizers.
 */
#include "tests/fuzz/inputs.h"

#include "softcx/fuzz/random.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

const char *inputs_socket;

static const struct input_kind *const kinds[] = {
	&inputs_config, &inputs_connect, &inputs_table, &inputs_control};

static struct {
	const struct input_kind *kind;
	const char *corpus, *collect;
	uint64_t seed, first, count, keep;
	time_t end;
} run = {.seed = 1, .count = 1200, .keep = 1200};

static uint64_t number, rng, accepted, refused;
static const struct input *current;

unsigned inputs_pick(unsigned n)
{
	return fuzz_pick(&rng, n);
}

uint64_t inputs_word(void)
{
	return fuzz_word(&rng);
}

void inputs_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s; input %" PRIu64 " of %s%" PRIu64 " is:\n", run.kind->name, what, number,
		run.corpus ? run.corpus : "seed ", run.corpus ? 0 : run.seed);
	if (current)
		corpus_write(stderr, current);
	abort();
}

static enum input_outcome use(const struct input *in)
{
	enum input_outcome r;

	current = in;
	r = run.kind->use(in);
	current = NULL;
	*(r == INPUT_ACCEPTED ? &accepted : &refused) += 1;
	return r;
}

/* ---- collecting
 * ---------------------------------------------------------------------------------------------- */

struct found {
	struct input in;
	uint64_t key; /* of the path, or of the bytes */
	UT_hash_handle hh;
};

/* Whether @key is new in @*set; then it is in it */
static struct found *add(struct found **set, uint64_t key, const struct input *in)
{
	struct found *f;

	HASH_FIND(hh, *set, &key, sizeof(key), f);
	if (f)
		return NULL;
	f = malloc(sizeof(*f));
	inputs_need(f != NULL, "no memory");
	f->in = *in;
	f->key = key;
	HASH_ADD(hh, *set, key, sizeof(f->key), f);
	return f;
}

static uint64_t hash_of(const struct input *in)
{
	uint64_t h = in->len;

	for (size_t i = 0; i < in->len; i++)
		h = (h ^ (uint8_t)in->bytes[i]) * 0x100000001b3;
	return h;
}

static void write_found(FILE *f, struct found *set, uint64_t *left)
{
	struct found *i, *next;

	HASH_ITER (hh, set, i, next) {
		if (*left) {
			corpus_write(f, &i->in);
			--*left;
		}
		HASH_DEL(set, i);
		free(i);
	}
}

static void collect(void)
{
	static struct input in;
	struct found *fresh = NULL, *paths = NULL, *others = NULL;
	uint64_t left = run.keep, path;
	unsigned new_features, nfresh, npaths;
	FILE *f = fopen(run.collect, "w");

	inputs_need(f != NULL, run.collect);
	for (number = run.first; number < run.first + run.count; number++) {
		rng = fuzz_start(run.seed, number, 0);
		run.kind->make(&in);
		coverage_begin();
		if (use(&in) != INPUT_REFUSED)
			continue;
		new_features = coverage_end(&path);
		if (new_features)
			add(&fresh, hash_of(&in), &in);
		else if (!add(&paths, path, &in) && HASH_COUNT(others) < run.keep)
			add(&others, hash_of(&in), &in);
	}
	nfresh = HASH_COUNT(fresh);
	npaths = HASH_COUNT(paths);
	write_found(f, fresh, &left);
	write_found(f, paths, &left);
	write_found(f, others, &left);
	inputs_need(fclose(f) == 0, run.collect);
	printf("%s: of %" PRIu64 " inputs %u reach something new, %u more take a path of their own; %" PRIu64
	       " kept\n",
		run.kind->name, run.count, nfresh, npaths, run.keep - left);
}

/* ---- running
 * ------------------------------------------------------------------------------------------------- */

static void run_corpus(void)
{
	static struct input in;
	unsigned line = 0;
	FILE *f = fopen(run.corpus, "r");

	inputs_need(f != NULL, run.corpus);
	while (corpus_read(f, &in, &line)) {
		number = line;
		use(&in);
	}
	fclose(f);
	printf("%s: %u inputs, %" PRIu64 " accepted, %" PRIu64 " refused\n", run.kind->name, line, accepted,
		refused);
	inputs_need(refused >= 1000, "the corpus has less than 1000 malformed inputs");
}

static void run_random(void)
{
	static struct input in;

	for (number = run.first; run.end ? time(NULL) < run.end : number < run.first + run.count; number++) {
		rng = fuzz_start(run.seed, number, 0);
		run.kind->make(&in);
		use(&in);
	}
	printf("%s: %" PRIu64 " inputs, %" PRIu64 " accepted, %" PRIu64 " refused\n", run.kind->name,
		number - run.first, accepted, refused);
}

static const struct input_kind *find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(name, kinds[i]->name) == 0)
			return kinds[i];
	return NULL;
}

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'}, {"count", required_argument, NULL, 'c'},
		{"time", required_argument, NULL, 't'}, {"corpus", required_argument, NULL, 'C'},
		{"collect", required_argument, NULL, 'o'}, {"keep", required_argument, NULL, 'k'},
		{NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			run.seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			run.first = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			run.count = strtoull(optarg, NULL, 0);
			break;
		case 't':
			run.end = time(NULL) + atoi(optarg);
			break;
		case 'C':
			run.corpus = optarg;
			break;
		case 'o':
			run.collect = optarg;
			break;
		case 'k':
			run.keep = strtoull(optarg, NULL, 0);
			break;
		default:
			return false;
		}
	run.kind = find(optind < argc ? argv[optind++] : NULL);
	inputs_socket = optind < argc ? argv[optind] : NULL;
	return run.kind && (inputs_socket || !run.kind->live);
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv)) {
		fputs("usage: inputs config|connect|table|control [--seed N] [--first N] [--count N | --time "
		      "SECONDS]\n"
		      "              [--corpus FILE | --collect FILE [--keep N]] [SOCKET]\n",
			stderr);
		return 2;
	}
	if (run.kind->begin)
		run.kind->begin();
	if (run.collect)
		collect();
	else if (run.corpus)
		run_corpus();
	else
		run_random();
	if (run.kind->end)
		run.kind->end();
	return 0;
}
