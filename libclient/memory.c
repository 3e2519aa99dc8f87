/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/memory.h"

#include "libclient/public.h"
#include "libclient/queues.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int memory_register(const struct reddn_memory *m, const struct reddn_session *s, struct ibv_mr **mr)
{
	return m->dmabuf < 0 ? reddn_queues_register(s, m->at, m->len, mr)
			     : reddn_queues_register_dmabuf(s, m->at, m->len, m->dmabuf, m->offset, mr);
}

static void memory_deinit(struct reddn_memory *m)
{
	if (m->len && m->dmabuf >= 0)
		close(m->dmabuf);
	*m = (struct reddn_memory){0};
}

void reddn_memory_deinit(struct reddn *c)
{
	for (unsigned i = 0; i < REDDN_MEMORIES; i++)
		memory_deinit(&c->memory[i]);
}

/* That of a part is its owner's */
static const struct reddn_memory *memory_of(const struct reddn *c)
{
	return c->is_part ? c->owner->memory : c->memory;
}

int reddn_memory_begin(const struct reddn *c, struct reddn_session *s)
{
	const struct reddn_memory *memory = memory_of(c);
	int r = 0;

	if (!s->connection || (!s->into && !reddn_session_puts(s)))
		return 0;
	if (s->into && !s->sink)
		r = reddn_session_sink(s);
	if (r == 0 && s->into && !s->sunk)
		r = reddn_queues_register(s, s->sink, reddn_session_sink_len(s), &s->sunk);
	for (unsigned i = 0; i < REDDN_MEMORIES && r == 0; i++)
		if (memory[i].len && !s->memory[i])
			r = memory_register(&memory[i], s, &s->memory[i]);
	return r;
}

int reddn_memory_find(const struct reddn *c, const uint8_t *at, size_t len)
{
	const struct reddn_memory *m = memory_of(c);

	for (int i = 0; i < REDDN_MEMORIES; i++, m++) {
		if (m->len && len <= m->len && (uintptr_t)at >= (uintptr_t)m->at &&
			(uintptr_t)at - (uintptr_t)m->at <= m->len - len)
			return i;
	}
	return -EFAULT;
}

static void forget(struct reddn *c, unsigned i)
{
	for (struct reddn *p = c; p; p = reddn_next_of(c, p)) {
		reddn_queues_leave(&p->session.memory[i]);
		reddn_queues_leave(&p->standby.session.memory[i]);
	}
	memory_deinit(&c->memory[i]);
}

/* The session that puts comes with the first put: that the device takes it is to be known before */
static int memory_try(const struct reddn *c, const struct reddn_memory *m)
{
	struct ibv_mr *mr = NULL;
	int r = c->session.connection ? memory_register(m, &c->session, &mr) : 0;

	reddn_queues_leave(&mr);
	return r;
}

/* Takes it, also if that fails */
static int memory_add(struct reddn *c, struct reddn_memory *m)
{
	bool registered = false;
	unsigned i = 0;
	int r = 0;

	while (i < REDDN_MEMORIES && c->memory[i].len)
		i++;
	if (i == REDDN_MEMORIES) {
		memory_deinit(m);
		return -ENOSPC;
	}
	c->memory[i] = *m;
	for (struct reddn *p = c; p && r == 0; p = reddn_next_of(c, p)) {
		r = reddn_memory_begin(p, &p->session);
		if (r == 0)
			r = reddn_memory_begin(p, &p->standby.session);
		registered |= p->session.memory[i] != NULL;
	}
	if (r == 0 && !registered)
		r = memory_try(c, m);
	if (r < 0)
		forget(c, i);
	return r;
}

/* Itself, or by a part */
static bool handle_puts(const struct reddn *c)
{
	return reddn_is_sent_once(c) &&
	       (reddn_session_is_store(&c->session) || reddn_session_puts(&c->session));
}

static bool memory_is_taken(const struct reddn *c, const void *at, size_t len)
{
	return ((c->connector.opt.flags & REDDN_INTO) || handle_puts(c)) && at && len;
}

PUBLIC int reddn_register(struct reddn *c, void *at, size_t len)
{
	struct reddn_memory m = {.at = at, .len = len, .dmabuf = -1};

	return memory_is_taken(c, at, len) ? memory_add(c, &m) : -EINVAL;
}

PUBLIC int reddn_register_dmabuf(struct reddn *c, void *at, size_t len, int fd, uint64_t offset)
{
	struct reddn_memory m = {.at = at, .len = len, .offset = offset};
	int r;

	if (!memory_is_taken(c, at, len))
		return -EINVAL;
	/* for later sessions */
	m.dmabuf = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	r = m.dmabuf < 0 ? -errno : memory_add(c, &m);
	if (r == -EOPNOTSUPP)
		return reddn_fail(r, c->errmsg, sizeof(c->errmsg),
			"the RDMA device or its driver takes no dmabuf, as mlx5 does from Linux 5.12 on; "
			"register memory of the process instead");
	if (r < 0 && r != -ENOSPC)
		return reddn_fail(r, c->errmsg, sizeof(c->errmsg),
			"descriptor %d cannot be registered as a dmabuf, with %zu bytes from byte %" PRIu64
			" on: %s",
			fd, len, offset, strerror(-r));
	return r;
}

PUBLIC int reddn_unregister(struct reddn *c, void *at)
{
	unsigned i = 0;

	while (i < REDDN_MEMORIES && (!c->memory[i].len || c->memory[i].at != at))
		i++;
	if (i == REDDN_MEMORIES)
		return -ENOENT;
	if (reddn_is_busy(c))
		return -EBUSY;
	forget(c, i);
	return 0;
}
