/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/identity.h"

#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KEY "reddn-identity-%016" PRIx64
#define SPENT "reddn-cas-spent-%015" PRIx64 /* as long */
/* So long that the item is in a slab page that the keys of a proof have used (proof.c): another class of
 * sizes would take a page from a small memcached */
enum { DIGITS = 45 };
#define VALUE "%0*" PRIx64

enum { SPENT_MOST = 4096, SPENT_BYTES = 128 };

/* 1, and its CAS id; 0: there is no item */
static int find(struct talk *t, uint64_t generation, uint64_t *cas)
{
	char line[128], value[DIGITS + 2];
	int e = talk_ask(t, line, sizeof(line), "gets " KEY, generation);

	if (e < 0 || strcmp(line, "END") == 0)
		return e;
	if (sscanf(line, "VALUE %*s %*u %*u %" SCNu64, cas) != 1)
		return -EPROTO;
	e = talk_line(t, value, sizeof(value));
	if (e == 0)
		e = talk_line(t, line, sizeof(line));
	if (e < 0)
		return e;
	return strcmp(line, "END") == 0 ? 1 : -EPROTO;
}

/* CAS ids count the sets of a memcached (items.c, get_cas_id): after few of them a copy of the item could
 * have that of the item. So a random number of them is spent before, of which a copy knows nothing. */
static int spend(struct talk *t, uint64_t generation)
{
	CLEANUP(cleanup_free) char *sets = malloc(SPENT_MOST * SPENT_BYTES);
	char line[64], set[SPENT_BYTES];
	uint32_t n = 0;
	size_t len;

	if (!sets)
		return -ENOMEM;
	/* never fails for so few bytes (getrandom(2)) */
	(void)!getrandom(&n, sizeof(n), 0);
	len = (size_t)snprintf(set, sizeof(set), SPENT " 0 0 %d noreply\r\n" VALUE "\r\nset ", generation,
		DIGITS, DIGITS, generation);
	n = 1 + n % (SPENT_MOST - 1);
	for (uint32_t i = 0; i < n; i++)
		memcpy(sets + i * len, set, len);
	/* without the last "set " */
	sets[n * len - 4] = '\0';
	return talk_ask(t, line, sizeof(line), "set %sdelete " SPENT, sets, generation);
}

int identity_store(struct talk *t, uint64_t generation, struct identity *identity)
{
	char line[64];
	uint64_t cas = 0;
	int r = find(t, generation, &cas);

	if (r == 0) {
		r = spend(t, generation);
		/* another daemon may have been first, whose item stays */
		if (r == 0)
			r = talk_ask(t, line, sizeof(line), "add " KEY " 0 0 %d\r\n" VALUE, generation,
				DIGITS, DIGITS, generation);
		if (r == 0)
			r = find(t, generation, &cas);
	}
	if (r < 0)
		return r;
	if (!cas)
		return -EPROTO;
	*identity = (struct identity){generation, cas};
	return 0;
}

int identity_ask(struct talk *t, const struct identity *identity)
{
	uint64_t cas;
	int r = find(t, identity->generation, &cas);

	return r > 0 ? cas == identity->cas : r;
}
