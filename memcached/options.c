/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/options.h"

#include "util/cleanup.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* A colon behind those with a value: what follows them is no option */
#define SHORT "a:Ap:s:U:m:Mc:khiVrvdl:u:P:f:n:t:D:LR:Cb:B:I:SFXWY:e:o:N:Z"

static const struct option long_options[] = {
	{"memory-limit", required_argument, NULL, 'm'},
	{"memory-file", required_argument, NULL, 'e'},
	{"extended", required_argument, NULL, 'o'},
	{"disable-cas", no_argument, NULL, 'C'},
	{"protocol", required_argument, NULL, 'B'},
	{"enable-sasl", no_argument, NULL, 'S'},
	{"auth-file", required_argument, NULL, 'Y'},
	{"enable-ssl", no_argument, NULL, 'Z'},
	{"help", no_argument, NULL, 'h'},
	{"license", no_argument, NULL, 'i'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static void refuse(struct options *o, const char *why)
{
	o->unserved = o->unserved ? o->unserved : why;
}

/* The word of @words, with commas between them, is @name, or begins with it if that ends with '=' */
static bool is_word(const char *words, const char *name)
{
	size_t len = strlen(name);

	return strncmp(words, name, len) == 0 &&
	       (name[len - 1] == '=' || words[len] == ',' || words[len] == '\0');
}

/* The value of -o: words with commas between them; the last hashpower counts */
static void read_extended(struct options *o, const char *words)
{
	static const char power[] = "hashpower=";

	for (; words; words = strchr(words, ',')) {
		words += *words == ',';
		if (is_word(words, power))
			o->power = (unsigned)strtoul(words + strlen(power), NULL, 10);
		/* slab_reassign is off then, and a page has another size for each class (slabs.c,
		 * do_slabs_newslab) */
		if (is_word(words, "no_modern"))
			refuse(o, "-o no_modern makes slab pages of many sizes, which are in no file; leave "
				  "no_modern out");
	}
}

static void read_one(struct options *o, int option)
{
	switch (option) {
	case 'm':
		o->memory = strtoull(optarg, NULL, 10) << 20;
		break;
	case 'e':
		refuse(o, "-e puts items into a file of its own, which no NIC reads; leave -e out");
		break;
	case 'o':
		read_extended(o, optarg);
		break;
	case 'C':
		refuse(o, "-C leaves out the CAS ids that readers need; leave -C out");
		break;
	case 'B':
		if (strcmp(optarg, "binary") == 0)
			refuse(o, "-B binary leaves out the text protocol, in which reddnd asks memcached; "
				  "leave -B out");
		break;
	case 'S':
		refuse(o, "-S leaves out the text protocol, in which reddnd asks memcached; leave -S out");
		break;
	case 'Y':
		refuse(o, "-Y asks for a password, which reddnd does not have; leave -Y out");
		break;
	case 'Z':
		refuse(o, "-Z encrypts connections, and reddnd asks memcached without TLS; leave -Z out");
		break;
	case 'h':
	case 'i':
	case 'V':
		o->only_prints = true;
		break;
	default:
		break;
	}
}

int options_read(struct options *o, int argc, char *const argv[])
{
	/* getopt_long() changes the order of what it gets */
	CLEANUP(cleanup_free) char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	int option, errors = opterr;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, argv, (size_t)argc * sizeof(*copy));
	*o = (struct options){.memory = 64 << 20, .power = 16};
	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, copy, SHORT, long_options, NULL)) != -1)
		read_one(o, option);
	opterr = errors;
	/* 0: the program's first call begins anew, as getopt_long(3) describes */
	optind = 0;
	return 0;
}
