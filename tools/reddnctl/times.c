/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/times.h"

#include <stdbool.h>
#include <string.h>

/* Entry @i of @list; false: it is none */
static bool entry(struct json_object *list, size_t i, uint64_t *ns, uint64_t *count)
{
	struct json_object *o = json_object_array_get_idx(list, i), *to, *requests;

	if (!json_object_object_get_ex(o, "to_ns", &to) ||
		!json_object_object_get_ex(o, "requests", &requests))
		return false;
	*ns = json_object_get_uint64(to);
	*count = json_object_get_uint64(requests);
	return true;
}

static size_t length(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

/* The place of @ns, or where it would be */
static unsigned place(const struct times *t, uint64_t ns)
{
	unsigned i = 0;

	while (i < t->n && t->at[i].ns < ns)
		i++;
	return i;
}

void times_add(struct times *t, struct json_object *list)
{
	uint64_t ns, count;

	for (size_t k = 0; k < length(list); k++) {
		unsigned i;

		if (!entry(list, k, &ns, &count))
			continue;
		i = place(t, ns);
		if (i == t->n || t->at[i].ns != ns) {
			if (t->n == TIMES_MAX)
				return;
			memmove(&t->at[i + 1], &t->at[i], (t->n++ - i) * sizeof(t->at[0]));
			t->at[i].ns = ns;
			t->at[i].count = 0;
		}
		t->at[i].count += count;
	}
}

void times_take_away(struct times *t, struct json_object *before)
{
	struct times less = *t;
	uint64_t ns, count;

	for (size_t k = 0; k < length(before); k++) {
		unsigned i;

		if (!entry(before, k, &ns, &count))
			continue;
		i = place(&less, ns);
		if (i == less.n || less.at[i].ns != ns || less.at[i].count < count)
			return;
		less.at[i].count -= count;
	}
	*t = less;
}

uint64_t times_at(const struct times *t, double part)
{
	uint64_t all = 0, seen = 0, wanted;

	for (unsigned i = 0; i < t->n; i++)
		all += t->at[i].count;
	wanted = (uint64_t)(part * (double)all + 0.5);
	wanted = wanted ? wanted : 1;
	for (unsigned i = 0; i < t->n; i++) {
		seen += t->at[i].count;
		if (seen >= wanted) /* the middle of the bucket */
			return t->at[i].ns - t->at[i].ns / 16;
	}
	return 0;
}
