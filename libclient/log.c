/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/log.h"

#include "libclient/connection.h"
#include "libclient/pause.h"
#include "libclient/public.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { PATIENCE_MS = 1000, LAP_BYTES = 5, LENGTH_BYTES = 3 };

#define LAPS ((1ull << 8 * LAP_BYTES) - 1)

static uint64_t number_at(const uint8_t *p, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | p[bytes];
	return n;
}

/* ---- who appends ------------------------------------------------------------------------------- */

/* Bytes of a value at most; 0: the offload is none of log-append.rdn */
static uint32_t append_room(const struct reddn *c)
{
	enum reddn_arg_kind kind[2];
	struct reddn_info info;
	uint32_t bytes[2];

	reddn_get_info(c, &info);
	if (info.nargs != 2 || info.reply_max != REDDN_LOG_REPLY || !reddn_is_sent_once(c))
		return 0;
	for (unsigned i = 0; i < COUNT(kind); i++)
		if (reddn_get_arg(c, i, &kind[i], &bytes[i]) < 0)
			return 0;
	return kind[0] == REDDN_NUMBER && bytes[0] == LENGTH_BYTES && kind[1] == REDDN_BYTES &&
			       bytes[1] <= REDDN_LOG_ENTRY_MAX
		       ? bytes[1]
		       : 0;
}

/* The arguments of @value, whose bytes are copied to @padded */
static int append_args(const struct reddn *c, const void *value, size_t len,
	uint8_t padded[REDDN_LOG_ENTRY_MAX], struct reddn_arg args[2])
{
	const uint32_t room = append_room(c);

	if (!room)
		return -EINVAL;
	if (len > room)
		return -EMSGSIZE;
	if (len)
		memcpy(padded, value, len);
	memset(padded + len, 0, room - len);
	args[0] = (struct reddn_arg){.number = len};
	args[1] = (struct reddn_arg){.bytes = padded};
	return 0;
}

static int append_learn(const uint8_t *reply, uint64_t *number)
{
	const uint64_t was = number_at(reply + 8, 8), size = number_at(reply + 16, 8);

	if (!size)
		return -EPROTO;
	*number = number_at(reply, 8) / size;
	return was == UINT64_MAX ? REDDN_AGAIN : 0;
}

PUBLIC int reddn_append_submit(struct reddn *c, const void *value, size_t len, uint64_t cookie)
{
	uint8_t padded[REDDN_LOG_ENTRY_MAX];
	struct reddn_arg args[2];
	int r = append_args(c, value, len, padded, args);

	return r < 0 ? r : reddn_call_submit(c, args, COUNT(args), cookie);
}

PUBLIC int reddn_append_result(const struct reddn_result *res, uint64_t *number)
{
	return res->status < 0 ? res->status : append_learn(res->value, number);
}

PUBLIC int reddn_append(struct reddn *c, const void *value, size_t len, uint64_t *number)
{
	const uint64_t until = clock_ns() + c->connector.opt.timeout_ms * 1000000ull;
	uint8_t padded[REDDN_LOG_ENTRY_MAX], reply[REDDN_LOG_REPLY];
	struct reddn_arg args[2];
	int r = append_args(c, value, len, padded, args);

	if (r < 0)
		return r;
	do {
		r = reddn_call(c, args, COUNT(args), reply, sizeof(reply));
		if (r == 0)
			r = append_learn(reply, number);
	} while (r == REDDN_AGAIN && clock_ns() < until);
	return r == REDDN_AGAIN ? -EAGAIN : r;
}

/* ---- who reads --------------------------------------------------------------------------------- */

void reddn_log_pass(struct reddn_log *l)
{
	l->next++;
	l->passed++;
	if (l->next >= l->drawn)
		l->since = 0;
}

/* A little further than has to be, so as not to be overtaken again at once */
static int log_overtaken(struct reddn_log *l, uint64_t tail, uint64_t entries)
{
	const uint64_t next = tail - entries + entries / 8;

	l->lost += next - l->next;
	l->next = next;
	l->passed = l->since = 0;
	return REDDN_AGAIN;
}

/* Its number is drawn. @laps: that were counted */
static bool log_is_hopeless(const struct reddn_log *l, uint64_t laps, uint64_t entries)
{
	const uint64_t patience_ns = (l->patience_ms ? l->patience_ms : PATIENCE_MS) * 1000000ull;

	if (l->passed >= entries && laps != (l->next / entries & LAPS))
		return true;
	return l->since && l->asked >= l->since + patience_ns;
}

int reddn_log_learn(struct reddn_log *l, const uint8_t *reply, uint32_t size, uint64_t received)
{
	const uint64_t entries = REDDN_LOG_RING / size, tail = number_at(reply, 8) / size;
	const uint64_t laps = number_at(reply + 16, LAP_BYTES);

	if (number_at(reply + 8, 8) != size)
		return -EPROTO;
	if (l->next == REDDN_LOG_END)
		l->next = tail;
	if (tail < l->next)
		return -ESTALE;
	if (tail == l->next)
		return -EAGAIN;
	if (tail - l->next > entries)
		return log_overtaken(l, tail, entries);
	if (laps == ((l->next / entries + 1) & LAPS))
		return 0;
	if (!log_is_hopeless(l, laps, entries)) {
		if (!l->since) {
			l->since = received;
			l->drawn = tail;
		}
		return -EAGAIN;
	}
	l->skipped++;
	reddn_log_pass(l);
	return REDDN_AGAIN;
}

/* Bytes of an entry; 0: no reply of log-read.rdn has this length */
static uint32_t log_size_of(size_t reply)
{
	const size_t size = reply - REDDN_LOG_REPLY;

	if (reply < REDDN_LOG_REPLY || size <= REDDN_LOG_HEADER || size > REDDN_LOG_ENTRY_MAX ||
		size & (size - 1))
		return 0;
	return (uint32_t)size;
}

/* 0: the offload is none of log-read.rdn */
static uint32_t log_size(const struct reddn *c)
{
	enum reddn_arg_kind kind;
	struct reddn_info info;
	uint32_t bytes;

	reddn_get_info(c, &info);
	if (info.nargs != 1 || !reddn_is_sent_once(c) || reddn_get_arg(c, 0, &kind, &bytes) < 0 ||
		kind != REDDN_OFFSET || bytes != LENGTH_BYTES)
		return 0;
	return log_size_of(info.reply_max);
}

static struct reddn_arg log_ask(struct reddn_log *l, uint32_t size)
{
	/* no entry is at the end: the reply has the tail */
	const uint64_t next = l->next == REDDN_LOG_END ? 0 : l->next;

	l->asked = clock_ns();
	return (struct reddn_arg){.number = reddn_log_place(next, size)};
}

PUBLIC int reddn_log_submit(struct reddn *c, struct reddn_log *l, uint64_t cookie)
{
	const uint32_t size = log_size(c);
	struct reddn_arg at;

	if (!size)
		return -EINVAL;
	at = log_ask(l, size);
	return reddn_call_submit(c, &at, 1, cookie);
}

PUBLIC int reddn_log_result(struct reddn_log *l, struct reddn_result *res)
{
	const uint32_t size = log_size_of(res->length);
	const uint8_t *reply = res->value, *entry;
	int r;

	if (res->status < 0)
		return res->status;
	/* the server may be another one than when the request was submitted */
	r = size ? reddn_log_learn(l, reply, size, clock_ns()) : -EPROTO;
	if (r)
		return r;
	entry = reply + REDDN_LOG_ENTRY;
	reddn_log_pass(l);
	res->value = entry + REDDN_LOG_HEADER;
	res->length = number_at(entry + LAP_BYTES, LENGTH_BYTES);
	return res->length > size - REDDN_LOG_HEADER ? -EBADMSG : 0;
}

static int log_read(
	struct reddn *c, struct reddn_log *l, uint32_t size, uint8_t *reply, struct reddn_result *res)
{
	const struct reddn_arg at = log_ask(l, size);
	int r;

	*res = (struct reddn_result){.value = reply, .length = REDDN_LOG_REPLY + size};
	r = reddn_call(c, &at, 1, reply, res->length);
	return r < 0 ? r : reddn_log_result(l, res);
}

/* What is passed takes no time, unless a server answers what it likes */
PUBLIC int reddn_log_next(
	struct reddn *c, struct reddn_log *l, void *buf, size_t room, size_t *len, int timeout_ms)
{
	const uint64_t call_until = clock_ns() + c->connector.opt.timeout_ms * 1000000ull;
	struct reddn_waiter waiter = reddn_waiter_begin(timeout_ms);
	uint8_t reply[REDDN_LOG_REPLY + REDDN_LOG_ENTRY_MAX];
	const uint32_t size = log_size(c);
	struct reddn_result res;
	int r;

	if (!size)
		return -EINVAL;
	while ((r = log_read(c, l, size, reply, &res)) == -EAGAIN || r == REDDN_AGAIN) {
		const uint64_t now = clock_ns();

		if (r == -EAGAIN ? !reddn_waiter_pause(&waiter) : now >= waiter.until && now >= call_until)
			return -EAGAIN;
	}
	if (r < 0)
		return r;
	*len = res.length;
	if (res.length > room) {
		l->next--;
		l->passed--;
		return -EMSGSIZE;
	}
	memcpy(buf, res.value, res.length);
	return 0;
}
