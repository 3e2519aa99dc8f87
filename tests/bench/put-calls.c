/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put-calls - the CPU time of reddn_put_submit() for a value that it copies, and for one in registered
 * memory, in turn. Run it with `softcx run`:
 *
 *	put-calls HOST PORT OFFLOAD ROUNDS BYTES...
 *
 * Prints a JSON object for each number of bytes, with the times of all rounds. The values have just been
 * written, as those of a program that puts what it has computed, and each is another one of VALUES.
 */
#include "libclient/reddn.h"
#include "tools/common/tool.h"
#include "util/clock.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { VALUES = 8, ROUNDS_MOST = 10000, PATIENCE_MS = 10000 };

/* What a round puts first and then */
static const char *const ways[] = {"copied_ns", "registered_ns"};

static void must(bool good, const char *what)
{
	if (!good)
		exit(tool_complain("%s: %s", what, strerror(errno)));
}

static uint8_t *map(size_t bytes)
{
	uint8_t *memory =
		mmap(NULL, VALUES * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "memory");
	return memory;
}

static uint64_t put(struct reddn *c, uint8_t *value, size_t bytes, int byte)
{
	struct reddn_result res;
	uint64_t began;

	memset(value, byte, bytes);
	began = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	must(reddn_put_submit(c, "key", 3, value, bytes, 0) == 0, "reddn_put_submit");
	began = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	must(reddn_wait(c, &res, 1, PATIENCE_MS) == 1 && res.status == 0, "a put");
	reddn_release(c);
	return began;
}

static void measure(struct reddn *c, size_t bytes, unsigned rounds)
{
	static uint64_t ns[2][ROUNDS_MOST];
	uint8_t *memory[] = {map(bytes), map(bytes)};

	must(reddn_register(c, memory[1], VALUES * bytes) == 0, "reddn_register");
	for (unsigned n = 0; n < 2 * VALUES; n++)
		put(c, memory[n % 2] + n / 2 * bytes, bytes, 0);
	for (unsigned n = 0; n < 2 * rounds; n++) {
		/* as often the one before the other as behind it */
		const unsigned way = n % 2 ^ n / 2 % 2;

		ns[way][n / 2] = put(c, memory[way] + n / 2 % VALUES * bytes, bytes, (int)n);
	}
	printf("{\"bytes\": %zu", bytes);
	for (unsigned way = 0; way < 2; way++) {
		printf(", \"%s\": [", ways[way]);
		for (unsigned n = 0; n < rounds; n++)
			printf("%s%" PRIu64, n ? ", " : "", ns[way][n]);
		printf("]");
	}
	printf("}\n");
	must(reddn_unregister(c, memory[1]) == 0, "reddn_unregister");
	for (unsigned way = 0; way < 2; way++)
		munmap(memory[way], VALUES * bytes);
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {0};
	uint64_t port, rounds, bytes;
	struct reddn *c;
	char err[256];

	if (argc < 6 || number_parse(argv[2], 1, UINT16_MAX, &port) ||
		number_parse(argv[4], 1, ROUNDS_MOST, &rounds)) {
		fprintf(stderr, "usage: put-calls HOST PORT OFFLOAD ROUNDS BYTES...\n");
		return 2;
	}
	opt.host = argv[1];
	opt.port = (uint16_t)port;
	opt.offload = argv[3];
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	for (int i = 5; i < argc; i++) {
		if (number_parse(argv[i], 1, UINT32_MAX, &bytes))
			return tool_complain("%s: a number of bytes", argv[i]);
		measure(c, bytes, (unsigned)rounds);
	}
	reddn_close(c);
	return 0;
}
