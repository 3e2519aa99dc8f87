/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registered HOST PORT OFFLOAD INTO LONGEST CONNECTIONS - puts values in a store from registered memory, of
 * all kinds of lengths up to LONGEST, with each call that puts, and gets them. Beside that from memory that
 * is registered in part or not at all, which it changes at once, and from registered memory that it changes,
 * as no caller may. INTO is an offload of the same store for REDDN_INTO. Part of registered.sh.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "util/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* PLACES: outstanding at a time; all others are in one place */
enum { DEPTH = 4, PLACES = 4, WAIT_MS = 60000, RETRY_MS = 20 };

static struct {
	struct reddn *c;
	uint8_t *memory; /* of `len` bytes, of which the first `registered` are */
	uint8_t *got;    /* `longest` bytes */
	size_t longest, registered, len;
	uint8_t next; /* in turn, what values are made of */
} test;

static void must(int r, const char *what)
{
	if (r)
		die("%s: %d, %s; %s", what, r, r < 0 ? strerror(-r) : "", reddn_errmsg(test.c));
}

static void fill(uint8_t *at, size_t len)
{
	test.next++;
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(test.next + i * 7 + (i >> 8));
}

static void has(const char *key, const uint8_t *value, size_t len)
{
	size_t got;

	must(reddn_get(test.c, key, strlen(key), test.got, test.longest, &got), "get");
	if (got != len || memcmp(test.got, value, len) != 0)
		die("%s: another value, of %zu bytes, where %zu were put", key, got, len);
}

static uint64_t version_of(const char *key)
{
	struct reddn_result res;

	must(reddn_get_submit(test.c, key, strlen(key), 0), "submit");
	if (reddn_wait(test.c, &res, 1, WAIT_MS) != 1)
		die("no version of %s", key);
	must(res.status, "version");
	reddn_release(test.c);
	return res.version;
}

/* Each value behind another byte, so that it is aligned to nothing */
static void lengths(void)
{
	const size_t some[] = {0, 1, 2, 7, 8, 63, 64, 107, 108, 109, 255, 256, 4095, 4096, 4097, 65535, 65536,
		65537,
		/* with a record that has the tag in its length, which is padded to the next without */
		0xa500, 0xa5000, test.longest - 1, test.longest};
	uint64_t version = 0;

	for (size_t i = 0; i < COUNT(some); i++) {
		uint8_t *at = test.memory + i % 16;

		if (some[i] > test.longest)
			continue;
		fill(at, some[i]);
		must(reddn_put(test.c, "put", 3, at, some[i]), "put");
		has("put", at, some[i]);
		must(reddn_put_ttl(test.c, "ttl", 3, at, some[i], 3600000), "put_ttl");
		has("ttl", at, some[i]);
		must(reddn_put_if(test.c, "if", 2, at, some[i], &version), "put_if");
		has("if", at, some[i]);
		version = version_of("if");
	}
}

/* As many as are outstanding at a time, each in a place of its own */
static void outstanding(void)
{
	const size_t len = test.longest / PLACES;
	struct reddn_result res[PLACES];

	for (unsigned rounds = 0; rounds < 8; rounds++) {
		for (unsigned i = 0; i < PLACES; i++) {
			fill(test.memory + i * len, len);
			must(reddn_put_submit(
				     test.c, (char[]){(char)('a' + i)}, 1, test.memory + i * len, len, i),
				"submit");
		}
		if (reddn_unregister(test.c, test.memory) != -EBUSY)
			die("memory of requests is taken back");
		for (int n = 0, some; n < PLACES; n += some) {
			some = reddn_wait(test.c, res, PLACES, WAIT_MS);
			if (some <= 0)
				die("no result: %s", reddn_errmsg(test.c));
			for (int i = 0; i < some; i++)
				must(res[i].status, "a put");
		}
		reddn_release(test.c);
		for (unsigned i = 0; i < PLACES; i++)
			has((char[]){(char)('a' + i), '\0'}, test.memory + i * len, len);
	}
}

/* Puts @len bytes at @at, and changes them at once. They are those of @key, or a value with a wrong checksum
 * is */
static void changed(const char *key, uint8_t *at, size_t len, bool is_registered)
{
	uint8_t *before = malloc(len);
	struct reddn_result res;
	size_t got;
	int r;

	if (!before)
		die("no memory");
	fill(at, len);
	memcpy(before, at, len);
	must(reddn_put_submit(test.c, key, strlen(key), at, len, 0), "submit");
	fill(at, len);
	if (reddn_wait(test.c, &res, 1, WAIT_MS) != 1)
		die("no result: %s", reddn_errmsg(test.c));
	must(res.status, "a put");
	reddn_release(test.c);
	r = reddn_get(test.c, key, strlen(key), test.got, test.longest, &got);
	if (!is_registered)
		has(key, before, len);
	else if (r == 0)
		has(key, before, len);
	else if (r != -EBADMSG)
		die("%s: what was changed meanwhile is %d; %s", key, r, reddn_errmsg(test.c));
	free(before);
}

/* The first put waits for its session: what it finds then has changed for certain */
static void unsent(void)
{
	struct reddn_result res;
	size_t got;

	fill(test.memory, 1000);
	must(reddn_put_submit(test.c, "unsent", 6, test.memory, 1000, 0), "submit");
	fill(test.memory, 1000);
	if (reddn_wait(test.c, &res, 1, WAIT_MS) != 1)
		die("no result: %s", reddn_errmsg(test.c));
	must(res.status, "a put");
	reddn_release(test.c);
	if (reddn_get(test.c, "unsent", 6, test.got, test.longest, &got) != -EBADMSG)
		die("a value with a wrong checksum was taken for one");
	must(reddn_put(test.c, "unsent", 6, test.memory, 1000), "put");
	has("unsent", test.memory, 1000);
}

static struct reddn *connect_to(char **argv, const char *offload, uint16_t connections, unsigned flags)
{
	const struct reddn_options opt = {.host = argv[1],
		.port = (uint16_t)arg_number(argv[2], UINT16_MAX),
		.offload = offload,
		.depth = DEPTH,
		.connections = connections,
		.flags = (uint16_t)flags,
		.timeout_ms = WAIT_MS,
		.retry_ms = RETRY_MS};
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("%s: %s", offload, err);
	return c;
}

/* What only one way has: the same memory for both */
static void both_ways(char **argv)
{
	struct reddn *into = connect_to(argv, argv[4], 1, REDDN_INTO);
	size_t len;

	must(reddn_register(into, test.memory, test.registered), "register to get into");
	memset(test.memory, 0, 1000);
	must(reddn_get_into(into, "unsent", 6, test.memory, 1000, &len), "get into");
	if (reddn_put(into, "k", 1, test.memory, 1) != -EINVAL)
		die("a handle that gets into memory puts");
	must(reddn_put(test.c, "copy", 4, test.memory, len), "put what has come");
	has("copy", test.memory, 1000);
	reddn_close(into);
}

int main(int argc, char **argv)
{
	if (argc != 7)
		die("usage: registered HOST PORT OFFLOAD INTO LONGEST CONNECTIONS");
	test.longest = arg_number(argv[5], UINT32_MAX);
	test.registered = test.longest + 64;
	test.len = test.registered + 8192;
	test.memory = mmap(NULL, test.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	test.got = malloc(test.longest);
	if (test.memory == MAP_FAILED || !test.got)
		die("no memory");
	test.c = connect_to(argv, argv[3], (uint16_t)arg_number(argv[6], UINT16_MAX), 0);
	if (reddn_register(test.c, test.memory, 0) != -EINVAL ||
		reddn_register(test.c, NULL, 4096) != -EINVAL ||
		reddn_register(test.c, (void *)4096, 4096) != -EFAULT)
		die("what is no memory is registered");
	must(reddn_register(test.c, test.memory, test.registered), "register");
	unsent();
	lengths();
	outstanding();
	for (unsigned i = 0; i < 20; i++) {
		changed("registered", test.memory, 60000, true);
		changed("in part", test.memory + test.registered - 500, 1000, false);
		changed("not", test.memory + test.registered, 1000, false);
	}
	both_ways(argv);
	must(reddn_unregister(test.c, test.memory), "unregister");
	changed("no longer", test.memory, 60000, false);
	/* and with sessions that there are */
	must(reddn_register(test.c, test.memory, test.registered), "register");
	outstanding();
	reddn_close(test.c);
	munmap(test.memory, test.len);
	free(test.got);
	return 0;
}
