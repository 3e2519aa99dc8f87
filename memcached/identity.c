/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define KEY "reddn-identity-%016" PRIx64
/* So long that the item is in a slab page that the keys of a proof have used (proof.c): another class of
 * sizes would take a page from a small memcached */
enum { DIGITS = 45 };
#define VALUE "%0*" PRIx64

int identity_store(struct talk *t, uint64_t generation, struct identity *identity)
{
	struct identity fresh = {.generation = generation};
	char line[64];
	int e;

	/* never fails for so few bytes (getrandom(2)) */
	while (!fresh.number)
		(void)!getrandom(&fresh.number, sizeof(fresh.number), 0);
	e = talk_ask(t, line, sizeof(line), "set " KEY " 0 0 %d\r\n" VALUE, fresh.number, DIGITS, DIGITS,
		fresh.generation);
	if (e < 0)
		return e;
	if (strcmp(line, "STORED") != 0)
		return -EPROTO;
	*identity = fresh;
	return 0;
}

int identity_ask(struct talk *t, const struct identity *identity)
{
	char line[128], value[DIGITS + 2], wanted[DIGITS + 1];
	int e = talk_ask(t, line, sizeof(line), "get " KEY, identity->number);

	if (e < 0 || strcmp(line, "END") == 0)
		return e;
	if (strncmp(line, "VALUE ", 6) != 0)
		return -EPROTO;
	e = talk_line(t, value, sizeof(value));
	if (e == 0)
		e = talk_line(t, line, sizeof(line));
	if (e < 0)
		return e;
	snprintf(wanted, sizeof(wanted), VALUE, DIGITS, identity->generation);
	return strcmp(line, "END") == 0 && strcmp(value, wanted) == 0;
}
