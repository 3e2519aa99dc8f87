/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list-ask - calls conf/programs/list-walk.rdn and compares the answers with the list. Part of lists.sh.
 *
 *   list-ask make NODES HEAP END - writes a list of nodes and their values; END follows the last node
 *   list-ask ask HOST PORT OFFLOAD DEPTH REQUESTS SEED - prints the number of nodes found
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/random.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST = 20, LOOK = 8, NODE = 19, FIRST = 1000, FILE_BYTES = 4096, VALUE = 40, DEEPEST = 64 };

static unsigned length_of(unsigned node)
{
	return 1 + node * 7 % VALUE;
}

static void put(uint8_t *p, unsigned bytes, uint64_t v)
{
	while (bytes--) {
		p[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static bool write_file(const char *path, const uint8_t *bytes)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fwrite(bytes, FILE_BYTES, 1, f) == 1;

	return f && fclose(f) == 0 && ok;
}

/* Node i has key FIRST + i, and a value of bytes i + 1 */
static int make(const char *nodes_path, const char *heap_path, uint64_t end)
{
	static uint8_t nodes[FILE_BYTES], heap[FILE_BYTES];

	for (unsigned i = 0; i < LIST; i++) {
		uint8_t *node = nodes + i * NODE;

		put(node, 5, i + 1 < LIST ? (i + 1) * NODE : end);
		node[5] = (uint8_t)(FIRST + i);
		node[6] = (uint8_t)((FIRST + i) >> 8);
		put(node + 11, 3, length_of(i));
		put(node + 14, 5, i * VALUE);
		memset(heap + i * VALUE, (int)i + 1, VALUE);
	}
	return write_file(nodes_path, nodes) && write_file(heap_path, heap) ? 0 : 1;
}

struct asked {
	unsigned head;
	uint64_t key;
	bool waits;
};

static bool is_right(const struct asked *a, const struct reddn_result *r, bool *found)
{
	uint8_t want[8 + VALUE] = {0};
	unsigned node = (unsigned)(a->key - FIRST);

	*found = node < LIST && (node + LIST - a->head) % LIST < LOOK; /* the last one points to the first */
	if (*found) {
		want[7] = 1;
		memset(want + 8, (int)node + 1, length_of(node));
	}
	return r->status == 0 && r->length >= sizeof(want) && memcmp(r->value, want, sizeof(want)) == 0;
}

static int submit(struct reddn *c, struct asked *asked, unsigned depth, unsigned *outstanding)
{
	unsigned i = 0;
	int r;

	while (i < depth && asked[i].waits)
		i++;
	if (i == depth)
		return 0;
	asked[i] = (struct asked){.head = (unsigned)rnd(LIST), .waits = true};
	asked[i].key = FIRST + (asked[i].head + rnd(LOOK + 2)) % (LIST + 2);
	r = reddn_call_submit(c,
		(struct reddn_arg[]){{.number = (uint64_t)asked[i].head * NODE}, {.number = asked[i].key}}, 2,
		i);
	*outstanding += r == 0;
	asked[i].waits = r == 0;
	return r;
}

static int ask(struct reddn *c, unsigned depth, unsigned requests)
{
	struct asked asked[DEEPEST] = {0};
	unsigned sent = 0, answered = 0, found = 0, outstanding = 0;

	while (answered < requests) {
		struct reddn_result res[8];
		int n;

		reddn_release(c); /* the results checked below */
		while (sent < requests && outstanding < depth && submit(c, asked, depth, &outstanding) == 0)
			sent++;
		n = reddn_wait(c, res, 8, 100000);
		for (int i = 0; i < n; i++) {
			bool hit;

			if (!is_right(&asked[res[i].cookie], &res[i], &hit)) {
				fprintf(stderr,
					"a wrong answer, status %d: key %" PRIu64 " from node %u; %s\n",
					res[i].status, asked[res[i].cookie].key, asked[res[i].cookie].head,
					reddn_errmsg(c));
				return 1;
			}
			asked[res[i].cookie].waits = false;
			found += hit;
			answered++;
			outstanding--;
		}
		if (n <= 0) {
			fprintf(stderr, "%u of %u are answered: %s\n", answered, requests,
				n ? reddn_errmsg(c) : "no reply");
			return 1;
		}
	}
	printf("%u\n", found);
	return 0;
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {.timeout_ms = 100000, .flags = REDDN_NO_RECONNECT};
	struct reddn *c;
	char err[256];
	int r;

	if (argc == 5 && strcmp(argv[1], "make") == 0)
		return make(argv[2], argv[3], arg_number(argv[4], UINT64_MAX));
	if (argc != 8 || strcmp(argv[1], "ask") != 0)
		return 2;
	opt.host = argv[2];
	opt.port = (uint16_t)arg_number(argv[3], UINT16_MAX);
	opt.offload = argv[4];
	opt.depth = (uint16_t)arg_number(argv[5], UINT16_MAX);
	random_seed(arg_number(argv[7], UINT64_MAX));
	if (opt.depth > DEEPEST)
		return 2;
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	r = ask(c, opt.depth, (unsigned)arg_number(argv[6], UINT_MAX));
	reddn_close(c);
	return r;
}
