/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reddn.h"
#include "tests/bench/ways/list.h"
#include "tests/bench/ways/source.h"

#include <errno.h>
#include <stdlib.h>

static int get(struct source *s, const void *key, uint32_t key_len, struct ibv_sge *answer)
{
	uint64_t asked = list_asked(key, key_len), at = 0;

	do {
		const struct list_node *node = (const void *)((const uint8_t *)s->array.mem + at);
		uint64_t len = list_big(node->len, sizeof(node->len)),
			 off = list_big(node->off, sizeof(node->off));

		if (list_key(node) == asked) {
			if (len > s->reply_max || off + len > s->file.size)
				return -EBADMSG;
			*answer = (struct ibv_sge){
				(uintptr_t)s->file.mem + off, (uint32_t)len, s->file.mr->lkey};
			return 0;
		}
		at = list_big(node->next, sizeof(node->next));
		if (at + sizeof(*node) > s->array.size)
			return -EBADMSG;
	} while (at);
	return REDDN_MISS;
}

static int set(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len,
	const uint64_t *sum)
{
	(void)s, (void)key, (void)key_len, (void)value, (void)val_len, (void)sum;
	return -EROFS;
}

static int serve(struct source *s, struct ibv_pd *pd, enum link_way way)
{
	int r = source_register(&s->file, pd, 0);

	if (r == 0)
		r = source_register(&s->array, pd, 0);
	return r < 0 || way == LINK_LIST || way == LINK_REQUESTS ? r : -EOPNOTSUPP;
}

static void list_free(struct source *s)
{
	source_unmap(&s->file);
	source_unmap(&s->array);
	free(s);
}

int source_list(struct source **out, const char *nodes, const char *values)
{
	struct source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct source){.request_max = 32,
		.reply_max = LIST_VALUE_MAX,
		.get = get,
		.set = set,
		.serve = serve,
		.free = list_free};
	r = source_map(&s->array, nodes);
	if (r == 0)
		r = source_map(&s->file, values);
	if (r == 0 && s->array.size < sizeof(struct list_node))
		r = -EBADMSG;
	if (r < 0) {
		list_free(s);
		return r;
	}
	*out = s;
	return 0;
}
