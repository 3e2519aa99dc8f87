/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts replaced HOST PORT - gets, and asks for, keys of a table that is replaced by one with longer keys,
 * after a line on standard input. parts moved HOSTS PORT - asks which of absent keys exist, until the host
 * that it has moved to cannot tell.
 */
#include "libclient/reddn.h"
#include "util/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char long_key[] = "a key that is longer than the table before takes";

static int complain(const char *what, int r)
{
	fprintf(stderr, "parts: %s: %d (%s)\n", what, r, strerror(r < 0 ? -r : 0));
	return 1;
}

/* Until the parts have sessions, gets go without them */
static int use_parts(struct reddn *c)
{
	char value[4][100];
	struct reddn_exists there[] = {{.key = "k1", .key_len = 2}, {.key = "k2", .key_len = 2}};
	struct reddn_mget get[COUNT(value)];
	int r = reddn_exists(c, there, COUNT(there));

	if (r < 0 || there[0].status || there[1].status)
		return complain("exists", r);
	for (unsigned n = 0; n < 1000; n++) {
		for (unsigned i = 0; i < COUNT(value); i++)
			get[i] = (struct reddn_mget){
				.key = "k1", .key_len = 2, .buf = value[i], .buf_len = sizeof(value[i])};
		r = reddn_mget(c, get, COUNT(get));
		if (r < 0 || get[3].status)
			return complain("mget", r);
	}
	return 0;
}

static int replaced(struct reddn *c)
{
	const size_t len = sizeof(long_key) - 1;
	char value[100];
	struct reddn_mget get = {.key = long_key, .key_len = len, .buf = value, .buf_len = sizeof(value)};
	struct reddn_exists there = {.key = long_key, .key_len = len};
	int r = use_parts(c);

	if (r)
		return r;
	puts("ready");
	fflush(stdout);
	(void)getchar();
	/* by this one the handle learns that the table was replaced */
	r = reddn_get(c, "k1", 2, value, sizeof(value), &(size_t){0});
	if (r < 0)
		return complain("get", r);
	r = reddn_mget(c, &get, 1);
	if (r < 0 || get.status)
		return complain("mget of a long key", r < 0 ? r : get.status);
	r = reddn_exists(c, &there, 1);
	return r < 0 || there.status ? complain("exists of a long key", r < 0 ? r : there.status) : 0;
}

static int moved(struct reddn *c)
{
	/* so many that it moves while some of them are asked for */
	static char name[20000][16];
	static struct reddn_exists absent[COUNT(name)];
	unsigned long asked = 0, exist = 0;
	int r;

	puts("ready");
	fflush(stdout);
	do {
		for (unsigned i = 0; i < COUNT(name); i++)
			absent[i] = (struct reddn_exists){.key = name[i],
				.key_len = (size_t)snprintf(name[i], sizeof(name[i]), "no %lu", asked++)};
		r = reddn_exists(c, absent, COUNT(absent));
		for (unsigned i = 0; r == 0 && i < COUNT(name); i++)
			exist += absent[i].status == 0;
	} while (r == 0 && asked < 1000 * COUNT(name));
	printf("%lu of %lu absent keys exist\n", exist, asked);
	/* by chance one of 32,262 */
	return r != -EINVAL || exist > 10 + asked / 3226 ? complain("exists", r) : 0;
}

int main(int argc, char **argv)
{
	bool of_replaced = argc == 4 && strcmp(argv[1], "replaced") == 0;
	struct reddn_options opt = {.offload = "t", .timeout_ms = 60000};
	struct reddn *c;
	char err[256];
	int r;

	if (argc != 4)
		return 2;
	opt.host = argv[2];
	opt.port = (uint16_t)strtoul(argv[3], NULL, 10);
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0) {
		fprintf(stderr, "parts: %s\n", err);
		return 2;
	}
	r = of_replaced ? replaced(c) : moved(c);
	reddn_close(c);
	return r;
}
