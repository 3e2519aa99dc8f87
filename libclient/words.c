/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/words.h"

#include "libclient/connection.h"
#include "libclient/pause.h"
#include "libclient/public.h"
#include "util/array.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* SEEN_LEASES: a word that was seen so long ago may have come back: of at most two renewals in a lease, 2^16
 * are as none */
enum { WORD = 8, SEEN_LEASES = 1 << 14 };

/* ---- a word ------------------------------------------------------------------------------------ */

/* The program has these arguments: the place of a word, and @n numbers as wide. */
static bool takes_word(const struct reddn *c, unsigned n)
{
	enum reddn_arg_kind kind;
	struct reddn_info info;
	uint32_t bytes;

	reddn_get_info(c, &info);
	if (info.nargs != n + 1 || !reddn_is_sent_once(c))
		return false;
	for (unsigned i = 0; i <= n; i++)
		if (reddn_get_arg(c, i, &kind, &bytes) < 0 || kind != (i ? REDDN_NUMBER : REDDN_OFFSET) ||
			(i && bytes != WORD))
			return false;
	return true;
}

static int check_word(const struct reddn *c, unsigned n, uint64_t word)
{
	if (!takes_word(c, n))
		return -EINVAL;
	return word > UINT64_MAX / WORD ? -ERANGE : 0;
}

static int call_word(struct reddn *c, const struct reddn_arg *args, unsigned n, uint64_t *was)
{
	int r = reddn_call(c, args, n, was, sizeof(*was));

	if (r == 0)
		*was = le64toh(*was);
	return r;
}

PUBLIC int reddn_cas_submit(struct reddn *c, uint64_t word, uint64_t old, uint64_t new_word, uint64_t cookie)
{
	const struct reddn_arg args[] = {{.number = word * WORD}, {.number = old}, {.number = new_word}};
	int r = check_word(c, 2, word);

	return r < 0 ? r : reddn_call_submit(c, args, COUNT(args), cookie);
}

PUBLIC int reddn_cas(struct reddn *c, uint64_t word, uint64_t old, uint64_t new_word, uint64_t *was)
{
	const struct reddn_arg args[] = {{.number = word * WORD}, {.number = old}, {.number = new_word}};
	int r = check_word(c, 2, word);

	return r < 0 ? r : call_word(c, args, COUNT(args), was);
}

PUBLIC int reddn_faa_submit(struct reddn *c, uint64_t word, uint64_t by, uint64_t cookie)
{
	const struct reddn_arg args[] = {{.number = word * WORD}, {.number = by}};
	int r = check_word(c, 1, word);

	return r < 0 ? r : reddn_call_submit(c, args, COUNT(args), cookie);
}

PUBLIC int reddn_faa(struct reddn *c, uint64_t word, uint64_t by, uint64_t *was)
{
	const struct reddn_arg args[] = {{.number = word * WORD}, {.number = by}};
	int r = check_word(c, 1, word);

	return r < 0 ? r : call_word(c, args, COUNT(args), was);
}

PUBLIC uint64_t reddn_word(const struct reddn_result *res)
{
	uint64_t word;

	memcpy(&word, res->value, sizeof(word));
	return le64toh(word);
}

/* ---- a lock ------------------------------------------------------------------------------------ */

static uint64_t lock_lease_ns(const struct reddn_lock *l)
{
	return l->lease_ms * 1000000ull;
}

/* It has to be seen anew, and then for a lease. */
static bool lock_is_old(const struct reddn_lock *l, uint64_t now)
{
	return (now - l->since) / lock_lease_ns(l) >= SEEN_LEASES;
}

/* What it becomes when the caller takes it; or what it is, if somebody may hold it. */
static uint64_t lock_taken(const struct reddn_lock *l, uint64_t now)
{
	if (l->seen & REDDN_WORD_HELD && (now - l->since < lock_lease_ns(l) || lock_is_old(l, now)))
		return l->seen;
	return ((l->seen & REDDN_WORD_TOKEN) + (1ull << REDDN_WORD_TOKEN_SHIFT)) | REDDN_WORD_HELD;
}

/* The same while half of the lease is left. */
static uint64_t lock_renewed(const struct reddn_lock *l, uint64_t now)
{
	if (now - l->since < lock_lease_ns(l) / 2)
		return l->seen;
	return (l->seen & ~REDDN_WORD_RENEWALS) | ((l->seen + 1) & REDDN_WORD_RENEWALS);
}

int reddn_lock_ask(struct reddn_lock *l, enum reddn_lock_step step, uint64_t now)
{
	if (!l->lease_ms)
		return -EINVAL;
	if (step != REDDN_LOCK && !l->token)
		return -EPERM;
	if (step == REDDN_LOCK && l->token)
		return -EDEADLK;
	if (step == REDDN_LOCK && (l->seen & REDDN_WORD_TOKEN) == REDDN_WORD_TOKEN)
		return -EOVERFLOW;
	l->step = step;
	l->asked = now;
	if (step == REDDN_LOCK)
		l->next = lock_taken(l, now);
	else if (step == REDDN_RENEW)
		l->next = lock_renewed(l, now);
	else
		l->next = l->seen & REDDN_WORD_TOKEN;
	return 0;
}

/* The word is another one than was expected. A holder whose answer was lost finds its own. */
static int lock_surprised(struct reddn_lock *l, uint64_t was, uint64_t now)
{
	uint64_t changed = was ^ l->seen;
	bool own = l->token && !(changed & REDDN_WORD_TOKEN);

	l->seen = was;
	if (own && was & REDDN_WORD_HELD)
		return REDDN_AGAIN;
	l->since = now;
	l->token = 0;
	if (l->step == REDDN_LOCK)
		return was & REDDN_WORD_HELD ? -EAGAIN : REDDN_AGAIN;
	return own && l->step == REDDN_UNLOCK ? 0 : -EPERM;
}

int reddn_lock_learn(struct reddn_lock *l, uint64_t was, uint64_t now)
{
	if (was != l->seen)
		return lock_surprised(l, was, now);
	if (l->next == l->seen) {
		if (l->step == REDDN_LOCK && lock_is_old(l, now))
			l->since = now;
		return l->step == REDDN_LOCK ? -EAGAIN : 0;
	}
	l->seen = l->next;
	l->since = l->asked;
	l->token = l->step == REDDN_UNLOCK ? 0 : (l->next & REDDN_WORD_TOKEN) >> REDDN_WORD_TOKEN_SHIFT;
	return 0;
}

PUBLIC int reddn_lock_submit(
	struct reddn *c, struct reddn_lock *l, enum reddn_lock_step step, uint64_t cookie)
{
	int r = reddn_lock_ask(l, step, clock_ns());

	return r < 0 ? r : reddn_cas_submit(c, l->word, l->seen, l->next, cookie);
}

PUBLIC int reddn_lock_result(struct reddn_lock *l, const struct reddn_result *res)
{
	return res->status < 0 ? res->status : reddn_lock_learn(l, reddn_word(res), clock_ns());
}

/* REDDN_AGAIN: it is @until_ns. The first one is normal, the next ones need somebody else who changes the
 * word in between, or a server that answers what it likes. */
static int lock_step(struct reddn *c, struct reddn_lock *l, enum reddn_lock_step step, uint64_t until_ns)
{
	bool first = true;
	uint64_t was;
	int r;

	for (;; first = false) {
		r = reddn_lock_ask(l, step, clock_ns());
		if (r == 0)
			r = reddn_cas(c, l->word, l->seen, l->next, &was);
		if (r == 0)
			r = reddn_lock_learn(l, was, clock_ns());
		if (r != REDDN_AGAIN || (!first && clock_ns() >= until_ns))
			return r;
	}
}

/* As lock_step(), of one who has the lock, which takes as long as a call may. */
static int lock_held_step(struct reddn *c, struct reddn_lock *l, enum reddn_lock_step step)
{
	int r = lock_step(c, l, step, clock_ns() + c->connector.opt.timeout_ms * 1000000ull);

	return r == REDDN_AGAIN ? -ETIMEDOUT : r;
}

PUBLIC int reddn_lock(struct reddn *c, struct reddn_lock *l, int timeout_ms)
{
	struct reddn_waiter waiter = reddn_waiter_begin(timeout_ms);
	int r;

	while ((r = lock_step(c, l, REDDN_LOCK, waiter.until)) == -EAGAIN || r == REDDN_AGAIN)
		if (!reddn_waiter_pause(&waiter))
			return -EAGAIN;
	return r;
}

PUBLIC int reddn_lock_renew(struct reddn *c, struct reddn_lock *l)
{
	if (l->token && l->lease_ms && clock_ns() - l->since < lock_lease_ns(l) / 2)
		return 0;
	return lock_held_step(c, l, REDDN_RENEW);
}

PUBLIC int reddn_unlock(struct reddn *c, struct reddn_lock *l)
{
	return lock_held_step(c, l, REDDN_UNLOCK);
}
