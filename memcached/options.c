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
	{"help", no_argument, NULL, 'h'},
	{"license", no_argument, NULL, 'i'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/* The value of -o: words with commas between them; the last hashpower counts */
static void read_extended(struct options *o, const char *words)
{
	static const char name[] = "hashpower=";

	for (; words; words = strchr(words, ',')) {
		words += *words == ',';
		if (strncmp(words, name, strlen(name)) == 0)
			o->power = (unsigned)strtoul(words + strlen(name), NULL, 10);
	}
}

static void read_one(struct options *o, int option)
{
	switch (option) {
	case 'm':
		o->memory = strtoull(optarg, NULL, 10) << 20;
		break;
	case 'e':
		o->memory_file = true;
		break;
	case 'o':
		read_extended(o, optarg);
		break;
	case 'C':
		o->no_cas = true;
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
