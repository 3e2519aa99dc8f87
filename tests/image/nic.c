/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/image/nic.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SGE = 63, FLAGS_FROM = 8, FLAGS_TO = 12 };

/* What an opcode takes a WQE for */
struct form {
	uint8_t opcode, opmod;
	const char *name;
	bool remote, gathers, scatters, sync, calc;
	uint8_t operands; /* words of eight bytes */
	uint8_t sge;      /* where data segments begin */
};

static const struct form forms[] = {
	{WQE_OP_WRITE, 0, "WRITE", .remote = true, .gathers = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE, WQE_CALC_ADD, "CALC of a sum", .calc = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE, WQE_CALC_MAXLOC, "CALC of a maximum", .calc = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE, WQE_CALC_AND, "CALC of AND", .calc = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE, WQE_CALC_OR, "CALC of OR", .calc = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE, WQE_CALC_XOR, "CALC of XOR", .calc = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_WRITE_IMM, 0, "WRITE_IMM", .remote = true, .gathers = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_SEND, 0, "SEND", .gathers = true, .sge = WQE_SEND_SGE},
	{WQE_OP_READ, 0, "READ", .remote = true, .scatters = true, .sge = WQE_RDMA_SGE},
	{WQE_OP_CAS, 0, "CAS", .remote = true, .scatters = true, .operands = 2, .sge = WQE_ATOMIC + 16},
	{WQE_OP_FETCH_ADD, 0, "FETCH_ADD", .remote = true, .scatters = true, .operands = 2,
		.sge = WQE_ATOMIC + 16},
	{WQE_OP_MASKED_CAS, WQE_OPMOD_MASKED_8B, "MASKED_CAS", .remote = true, .scatters = true,
		.operands = 4, .sge = WQE_ATOMIC + 32},
	{WQE_OP_MASKED_FETCH_ADD, WQE_OPMOD_MASKED_8B, "MASKED_FETCH_ADD", .remote = true, .scatters = true,
		.operands = 2, .sge = WQE_ATOMIC + 16},
	{WQE_OP_WAIT, 0, "WAIT", .sync = true},
	{WQE_OP_SEND_EN, 0, "SEND_EN", .sync = true},
	{WQE_OP_RECV_EN, 0, "RECV_EN", .sync = true},
};

/* With an opmod that it does not have: the first that has the opcode */
static const struct form *form_of(uint8_t opcode, uint8_t opmod)
{
	const struct form *first = NULL;

	for (size_t i = sizeof(forms) / sizeof(*forms); i-- > 0;)
		if (forms[i].opcode == opcode) {
			first = &forms[i];
			if (forms[i].opmod == opmod)
				return first;
		}
	return first;
}

static bool __attribute__((format(printf, 3, 4)))
wrong(struct nic *n, const struct nic_wqe *w, const char *fmt, ...)
{
	int len = snprintf(n->why, n->size, "WQE at %u of %s: ", w->at, w->in->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n->why + len, n->size - (size_t)len, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- memory ----------------------------------------------------------------------------------- */

struct space *nic_add(struct nic *n, const struct space *s)
{
	struct space *to = &n->space[n->nspaces];

	*to = *s;
	to->key = 0xc0de0000u + n->nspaces + 1;
	to->base = (uint64_t)(n->nspaces + 1) << 56;
	n->nspaces++;
	return to;
}

struct space *nic_of_key(struct nic *n, uint32_t key)
{
	unsigned i = key - 0xc0de0001u;

	return i < n->nspaces ? &n->space[i] : NULL;
}

void nic_fill(struct nic *n, struct space *s, const uint8_t *bytes)
{
	for (uint64_t i = 0; i < s->size / WORD_BYTES; i++)
		word_set(n->pool, &s->words[i], bytes + i * WORD_BYTES);
}

static struct word *word_of(const struct nic_wqe *w, unsigned at)
{
	return &w->in->words[(w->at + at) / WORD_BYTES];
}

static struct bytes byte_of(const struct nic_wqe *w, unsigned at)
{
	return word_byte(word_of(w, at), &w->by, (w->at + at) % WORD_BYTES);
}

static bool is_written(const struct nic_wqe *w, unsigned at, unsigned n)
{
	for (unsigned i = at; i < at + n; i++)
		if (word_of(w, i)->written >> (w->at + i) % WORD_BYTES & 1)
			return true;
	return false;
}

/* What goes into bytes: @cases possibilities, by a decision if there is more than one */
struct data {
	unsigned cases;
	uint32_t decision;
	const struct bytes *from[CASES];
};

/* The next of @d go to @len bytes of @s */
static void store(
	struct nic *n, struct space *s, uint64_t at, const struct data *d, uint64_t len, struct actor by)
{
	by.sure &= !s->shared;
	for (uint64_t i = 0; i < len;) {
		struct word *word = &s->words[(at + i) / WORD_BYTES];
		const struct word_case *seen[2 * CASES];
		struct word_case out[2 * CASES * CASES];
		unsigned k = (at + i) % WORD_BYTES, cases = word_seen(word, &by, seen), left = 0;
		uint64_t here = len - i < WORD_BYTES - k ? len - i : WORD_BYTES - k;

		for (unsigned c = 0; c < cases; c++)
			for (unsigned v = 0; v < d->cases; v++, left++) {
				out[left] = *seen[c];
				memcpy(&out[left].b[k], d->from[v] + i, here * sizeof(struct bytes));
				if (d->decision)
					out[left].in = (struct guard){d->decision, (1u << v)};
			}
		word->written |= (uint8_t)(((1u << here) - 1) << k);
		word_store(n->pool, word, &by, out, left, d->decision);
		i += here;
	}
}

void nic_receive(struct nic *n, struct space *s, uint32_t at, uint32_t len, uint8_t from)
{
	const struct bytes any = bytes_any(from);
	const struct data d = {.cases = 1, .from = {&any}};

	for (uint32_t i = 0; i < len; i++)
		store(n, s, at + i, &d, 1, (struct actor){.queue = 0xfe, .sure = true});
	/* all of it is there before anything runs */
	for (uint64_t word = at / WORD_BYTES; len && word <= (at + len - 1) / WORD_BYTES; word++)
		s->words[word].nbefore = 0;
}

/* ---- fields ----------------------------------------------------------------------------------- */

struct bytes nic_opcodes(const struct nic_wqe *w)
{
	return byte_of(w, WQE_OPCODE);
}

uint32_t nic_get32(const struct nic_wqe *w, unsigned at)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < 4; i++) {
		struct bytes b = byte_of(w, at + i);
		uint8_t one;

		bytes_const(b, &one);
		v = v << 8 | one;
	}
	return v;
}

/* A number of @len bytes: whether there is one, the largest that it can be, and where it comes from */
struct field {
	bool is_const, is_posted;
	uint64_t most;
	uint8_t from;
};

static struct field field_of(const struct nic_wqe *w, unsigned at, unsigned len)
{
	struct field f = {.is_const = true, .is_posted = !is_written(w, at, len)};

	for (unsigned i = 0; i < len; i++) {
		struct bytes b = byte_of(w, at + i);
		uint8_t one;

		f.is_const &= bytes_const(b, &one);
		f.most = f.most << 8 | bytes_most(b);
		f.from |= bytes_from(b);
	}
	return f;
}

/* And the addresses to which they belong, but for those of regions: behind the key of a data segment, in
 * front of a remote one */
void nic_mark_keys(struct nic *n, const struct nic_wqe *w)
{
	for (unsigned at = WQE_DS; at + 8 <= w->ds * WQE_DS; at += 4) {
		const struct space *s = nic_of_key(n, nic_get32(w, at));

		if (s)
			word_of(w, at)->secret |= (uint8_t)(0xfu << at % WORD_BYTES);
		if (s && s->kind != SPACE_REGION)
			word_of(w, at % WQE_DS == WQE_SGE_LKEY ? at + 4 : at - 8)->secret = 0xff;
	}
}

/* Bytes that a WQE reads or writes */
struct piece {
	struct space *in;
	bool is_const;  /* the place */
	bool stays;     /* the place is the one that was posted */
	bool is_posted; /* place and length are those that were posted */
	uint64_t at;    /* if it is */
	struct field len;
	uint8_t from; /* of the address */
};

static bool key_at(struct nic *n, const struct nic_wqe *w, unsigned at, struct piece *p)
{
	p->in = nic_of_key(n, nic_get32(w, at));
	return (p->in && !is_written(w, at, 4)) || wrong(n, w, "what is at %u is no key, or is written", at);
}

static bool piece_at(struct nic *n, const struct nic_wqe *w, unsigned addr, unsigned key, struct field len,
	struct piece *p)
{
	struct field a = field_of(w, addr, 8);
	struct bytes top = byte_of(w, addr);

	if (!key_at(n, w, key, p))
		return false;
	if (!bytes_only(top, (uint8_t)(p->in->base >> 56)))
		return wrong(n, w, "an address with the key of %s that is elsewhere", p->in->name);
	p->is_const = a.is_const;
	p->stays = !is_written(w, addr, 8);
	p->is_posted = p->stays && len.is_posted;
	p->at = a.most - p->in->base;
	p->len = len;
	p->from = a.from;
	return true;
}

/* ---- rules ------------------------------------------------------------------------------------ */

static bool is_bounded(const struct space *s)
{
	return s->kind == SPACE_REGION;
}

static bool is_publish(const struct nic_wqe *w)
{
	return w->publish && w->in == w->publish->in && w->at == w->publish->at;
}

/* Only the publish writes where its old word stays */
static bool is_found(const struct nic_wqe *w, const struct piece *p)
{
	return w->publish && !is_publish(w) && p->in == w->publish->scratch &&
	       p->at < w->publish->was + WORD_BYTES && w->publish->was < p->at + p->len.most;
}

static bool check_piece(struct nic *n, const struct nic_wqe *w, const struct piece *p, bool writes)
{
	if ((is_bounded(p->in) ? p->is_posted && p->in->size : p->is_const && p->len.is_const) &&
		(p->at > p->in->size || p->len.most > p->in->size - p->at))
		return wrong(n, w, "%lu bytes at %lu of %s, which has %lu", (unsigned long)p->len.most,
			(unsigned long)p->at, p->in->name, (unsigned long)p->in->size);
	if (p->in->kind == SPACE_OWN && !(p->is_const && p->len.is_const))
		return wrong(n, w, "a place in %s that is computed", p->in->name);
	if (p->in->kind == SPACE_SLOT && !p->is_const)
		return wrong(n, w, "a place in the reply slot that is computed");
	if (p->len.from & (FROM_CLIENT | FROM_COUNT | FROM_EXTENT))
		return wrong(n, w, "a length from the client");
	if (p->in->kind == SPACE_CQE && (writes || !p->is_const || !p->len.is_const || p->at < CQE_LENGTH ||
						p->at + p->len.most > CQE_LENGTH + 4))
		return wrong(n, w, "%lu bytes at %lu of the CQE", (unsigned long)p->len.most,
			(unsigned long)p->at);
	if (p->from & FROM_EXTENT)
		return wrong(n, w, "a place from a locator of its own");
	if (writes && is_found(w, p))
		return wrong(n, w, "writes to what the publish has found");
	if (is_bounded(p->in) && writes && !p->in->writable)
		return wrong(n, w, "writes to %s", p->in->name);
	if (is_bounded(p->in) && writes && p->from & (FROM_CLIENT | FROM_COUNT) && !p->in->steered)
		return wrong(n, w, "a place in %s that the client chooses", p->in->name);
	return true;
}

/* Bytes [@at, @at + @len) of what @p names */
static bool take(struct nic *n, const struct nic_wqe *w, const struct piece *p, uint64_t at, struct bytes *to,
	uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		uint64_t byte = p->at + at + i;

		if (p->in->kind == SPACE_CQE) {
			to[i] = bytes_any(FROM_COUNT);
			continue;
		}
		if (p->in->kind != SPACE_OWN) {
			to[i] = bytes_any(FROM_REGION);
			continue;
		}
		if (p->in->words[byte / WORD_BYTES].secret >> byte % WORD_BYTES & 1)
			return wrong(n, w, "reads a key or an address at %lu of %s", (unsigned long)byte,
				p->in->name);
		to[i] = word_byte(&p->in->words[byte / WORD_BYTES], &w->by, byte % WORD_BYTES);
		if (bytes_from(to[i]) & FROM_EXTENT)
			return wrong(n, w, "takes a locator at %lu of %s", (unsigned long)byte, p->in->name);
	}
	return true;
}

enum { AT_ONCE = 256 };

/* Bytes from one place to the other, if anybody knows what they are there */
static bool transfer(struct nic *n, const struct nic_wqe *w, const struct piece *from, uint64_t from_at,
	const struct piece *to, uint64_t to_at, uint64_t len)
{
	static struct bytes bytes[AT_ONCE];
	const struct data d = {.cases = 1, .from = {bytes}};

	for (uint64_t i = 0; i < len; i += AT_ONCE) {
		uint64_t part = len - i < AT_ONCE ? len - i : AT_ONCE;

		if (to->in->kind != SPACE_OWN && from->in->kind != SPACE_OWN)
			return true;
		if (!take(n, w, from, from_at + i, bytes, part))
			return false;
		if (to->in->kind == SPACE_OWN)
			store(n, to->in, to->at + to_at + i, &d, part, w->by);
	}
	return true;
}

/* Whether each of @count places gets bytes of one word, and there are few enough */
static bool is_by_words(const struct piece *from, const struct piece *to, unsigned count)
{
	uint64_t at = from->at;

	for (unsigned i = 0; i < count; at += to[i++].len.most)
		if (at % WORD_BYTES + to[i].len.most > WORD_BYTES)
			return false;
	return from->in->kind == SPACE_OWN && from->len.most <= AT_ONCE;
}

/* A READ of words: to each of its places, what that is in the same case of the word. If nobody knows whether
 * it is made, that is decided for all of them as well: so it is for other queues, because its own may have
 * failed. */
static bool decide(struct nic *n, const struct nic_wqe *w, const struct piece *from, const struct piece *to,
	unsigned count)
{
	const struct word_case *seen[2 * CASES];
	struct bytes joined[AT_ONCE];
	uint64_t at = from->at, word = UINT64_MAX;
	unsigned cases = 0;
	struct data d = {0};
	bool made = w->by.guard.decision || (w->by.sure && (w->by.alone || count == 1));

	if (!is_by_words(from, to, count) || !take(n, w, from, 0, joined, from->len.most))
		return false;
	for (unsigned i = 0; i < count; at += to[i++].len.most) {
		if (at / WORD_BYTES != word) {
			word = at / WORD_BYTES;
			cases = word_seen(&from->in->words[word], &w->by, seen);
			d.decision = (cases > 1 || !made) && cases <= CASES ? ++n->decisions : 0;
			d.cases = d.decision ? cases : 1;
		}
		for (unsigned c = 0; c < d.cases; c++)
			d.from[c] = d.decision ? &seen[c]->b[at % WORD_BYTES] : &joined[at - from->at];
		if (to[i].in->kind == SPACE_OWN)
			store(n, to[i].in, to[i].at, &d, to[i].len.most, w->by);
	}
	return true;
}

/*
 * A length of `least` to `most` at which nothing looks when the chain runs: in each case it is the program's,
 * and one of these, or all of it comes from a region, with nothing above it. Of one up to `most` the chain
 * looks at the length first.
 */
static bool check_declared(
	struct nic *n, const struct nic_wqe *w, unsigned at, const struct chain_place *said)
{
	const struct word_case *seen[2 * CASES];
	unsigned cases = said->least ? word_seen(word_of(w, at), &w->by, seen) : 0;

	for (unsigned c = 0; c < cases; c++) {
		uint64_t least = 0, most = 0;
		bool region = false;

		for (unsigned i = 0; i < 4; i++) {
			struct bytes b = seen[c]->b[(w->at + at + i) % WORD_BYTES];
			bool from = bytes_from(b) & FROM_REGION;

			if (region ? !from : from && most)
				return wrong(n, w, "a length of which a region has a part");
			region |= from;
			least = least << 8 | bytes_next(b, 0);
			most = most << 8 | bytes_most(b);
		}
		if (!region && (least < said->least || most > said->max))
			return wrong(n, w, "a length of %lu to %lu, and it has to be of %u to %u",
				(unsigned long)least, (unsigned long)most, said->least, said->max);
	}
	return true;
}

enum { PACKET = 256 /* bytes, the smallest */ };

/* Of more than a packet, the first is written while the next is read */
static bool is_apart(const struct piece *a, const struct piece *b, uint64_t bytes)
{
	return bytes <= PACKET || a->in != b->in || !is_bounded(a->in) || !a->stays || !b->stays ||
	       a->at >= b->at + bytes || b->at >= a->at + a->len.most;
}

static bool move(struct nic *n, const struct nic_wqe *w, const struct form *f)
{
	struct piece local[MAX_SGE], remote = {.in = NULL};
	unsigned count = 0;
	struct field all = {.is_const = true, .is_posted = true};
	uint64_t at = 0;

	for (unsigned sge = f->sge; sge + WQE_DS <= w->ds * WQE_DS; sge += WQE_DS, count++) {
		struct field len = field_of(w, sge + WQE_SGE_LEN, 4);
		const struct chain_place *said = w->local ? &w->local[count] : NULL;
		bool inline_data = len.most >> 31;

		if (said && said->max && !len.is_const) {
			if (!check_declared(n, w, sge + WQE_SGE_LEN, said))
				return false;
			len.most = len.most > said->max ? said->max : len.most;
		}
		if (!piece_at(n, w, sge + WQE_SGE_ADDR, sge + WQE_SGE_LKEY, len, &local[count]) ||
			!check_piece(n, w, &local[count], f->scatters))
			return false;
		if (local[count].in->kind == SPACE_SLOT)
			return wrong(n, w, "a key of the client");
		if (len.is_const && len.most == 0)
			return wrong(n, w, "a segment of 2^31 bytes");
		if (inline_data)
			return wrong(n, w, "a length that makes the segment inline");
		all.is_const &= len.is_const;
		all.is_posted &= len.is_posted;
		all.most += len.most;
		all.from |= len.from;
	}
	if (!f->remote)
		return w->reply || wrong(n, w, "a SEND to nobody");
	if (!piece_at(n, w, WQE_RADDR, WQE_RKEY, all, &remote) || !check_piece(n, w, &remote, f->gathers))
		return false;
	if (w->reply != (remote.in->kind == SPACE_SLOT))
		return wrong(n, w, "%s of the wrong queue", remote.in->name);
	if (remote.in->kind == SPACE_SLOT && (f->scatters || remote.at + all.most > remote.in->size))
		return wrong(n, w, "%lu bytes at %lu of the reply slot", (unsigned long)all.most,
			(unsigned long)remote.at);
	for (unsigned i = 0; i < count; i++)
		if (!is_apart(&local[i], &remote, all.most))
			return wrong(n, w, "%lu bytes of %s over themselves", (unsigned long)all.most,
				remote.in->name);
	if (f->scatters && all.is_const && decide(n, w, &remote, local, count))
		return true;
	for (unsigned i = 0; i < count && all.is_const; i++) {
		uint64_t len = local[i].len.most;

		if (!(f->scatters ? transfer(n, w, &remote, at, &local[i], 0, len)
				  : transfer(n, w, &local[i], 0, &remote, at, len)))
			return false;
		at += len;
	}
	return true;
}

/* Operand @i, turned to the order of bytes in memory */
static void operand(const struct nic_wqe *w, unsigned i, struct bytes to[WORD_BYTES])
{
	for (unsigned k = 0; k < WORD_BYTES; k++)
		to[k] = byte_of(w, WQE_ATOMIC + WORD_BYTES * i + WORD_BYTES - 1 - k);
}

static void change(struct nic *n, const struct nic_wqe *w, const struct form *f, const struct piece *p)
{
	struct word *word = &p->in->words[p->at / WORD_BYTES];
	const struct word_case *seen[2 * CASES];
	struct word_case out[4 * CASES];
	struct word_atomic a = {.again = p->in->shared};
	struct actor by = w->by;
	unsigned cases = word_seen(word, &by, seen), left = 0;
	bool cas = f->opcode == WQE_OP_CAS || f->opcode == WQE_OP_MASKED_CAS;

	for (unsigned k = 0; k < WORD_BYTES; k++) {
		a.swap_mask[k] = a.compare_mask[k] = bytes_one(0xff);
		a.boundary[k] = bytes_one(0);
	}
	operand(w, 0, cas ? a.swap : a.add);
	if (cas)
		operand(w, 1, a.compare);
	if (f->opcode == WQE_OP_MASKED_FETCH_ADD)
		operand(w, 1, a.boundary);
	if (f->opcode == WQE_OP_MASKED_CAS) {
		operand(w, 2, a.swap_mask);
		operand(w, 3, a.compare_mask);
	}
	for (unsigned c = 0; c < cases; c++) {
		if (cas)
			left += case_swap(seen[c], &a, &out[left]);
		else
			case_add(seen[c], &a, &out[left++]);
	}
	for (unsigned k = 0; k < WORD_BYTES; k++)
		if (cas ? !bytes_only(a.swap_mask[k], 0) : true)
			word->written |= (uint8_t)(1u << k);
	by.sure &= !p->in->shared;
	word_store(n->pool, word, &by, out, left, 0);
}

/* It is the CAS that the image names: it finds a word that a region had, leaves it where the image has it,
 * and brings the locator with the count of bytes, or a constant */
static bool check_publish(struct nic *n, const struct nic_wqe *w, const struct form *f,
	const struct piece *remote, const struct piece *old)
{
	struct bytes swap[WORD_BYTES], compare[WORD_BYTES];
	uint8_t v;

	if (f->opcode != WQE_OP_CAS || remote->in != w->publish->words)
		return wrong(n, w, "publishes by a %s, in %s", f->name, remote->in->name);
	if (old->in != w->publish->scratch || old->at != w->publish->was)
		return wrong(n, w, "what it finds is at %lu of %s", (unsigned long)old->at, old->in->name);
	operand(w, 0, swap);
	operand(w, 1, compare);
	for (unsigned k = 0; k < WORD_BYTES; k++) {
		const uint8_t from = w->publish->extent ? k < 3 ? FROM_COUNT : FROM_EXTENT : 0;

		/* what a READ should have brought is also what was there before it */
		if (bytes_from(swap[k]) & ~from || (from && !(bytes_from(swap[k]) & from)) ||
			(!from && !bytes_const(swap[k], &v)))
			return wrong(n, w, "byte %u of what it publishes", k);
		if (bytes_from(compare[k]) != FROM_REGION)
			return wrong(n, w, "byte %u of what it compares", k);
	}
	return true;
}

static bool atomic(struct nic *n, const struct nic_wqe *w, const struct form *f)
{
	struct field eight = {.is_const = true, .is_posted = true, .most = WORD_BYTES};
	struct piece remote, old;
	struct bytes was[WORD_BYTES], swapped;
	const struct data d = {.cases = 1, .from = {was}};

	if (!piece_at(n, w, WQE_RADDR, WQE_RKEY, eight, &remote) || !check_piece(n, w, &remote, true) ||
		!piece_at(n, w, f->sge + WQE_SGE_ADDR, f->sge + WQE_SGE_LKEY,
			field_of(w, f->sge + WQE_SGE_LEN, 4), &old) ||
		!check_piece(n, w, &old, true))
		return false;
	/* at a computed place in a region the device refuses what is not aligned */
	if (w->reply || remote.in->kind == SPACE_SLOT ||
		((remote.is_posted || !is_bounded(remote.in)) && remote.at % WORD_BYTES))
		return wrong(n, w, "an atomic in the wrong place");
	if (!old.len.is_const || old.len.most != WORD_BYTES || old.in->kind == SPACE_SLOT)
		return wrong(n, w, "an old value of other than 8 bytes");
	if (is_publish(w) && !check_publish(n, w, f, &remote, &old))
		return false;
	if (!take(n, w, &remote, 0, was, WORD_BYTES))
		return false;
	for (unsigned k = 0; n->swapped_old && k < WORD_BYTES / 2; k++) {
		swapped = was[k];
		was[k] = was[WORD_BYTES - 1 - k];
		was[WORD_BYTES - 1 - k] = swapped;
	}
	if (remote.in->kind == SPACE_OWN)
		change(n, w, f, &remote);
	if (old.in->kind == SPACE_OWN)
		store(n, old.in, old.at, &d, WORD_BYTES, w->by);
	return true;
}

/* What the 8 bytes of a number become that is in @result so far */
static void calculate(
	const struct form *f, struct bytes result[WORD_BYTES], const struct bytes operand[WORD_BYTES])
{
	uint8_t from = 0;

	for (unsigned k = WORD_BYTES; k-- > 0;) {
		from |= bytes_from(result[k]) | bytes_from(operand[k]);
		result[k] = f->opmod == WQE_CALC_ADD ? bytes_any(from)
						     : bytes_calc(f->opmod, result[k], operand[k]);
	}
}

/* Of whole operands in own memory. What is behind the result may be as it was, the id of an operand, or noise
 */
static bool calc(struct nic *n, const struct nic_wqe *w, const struct form *f)
{
	struct bytes result[WQE_CALC_OPERAND], operand[WQE_CALC_OPERAND];
	const struct data number = {.cases = 1, .from = {result}},
			  behind = {.cases = 1, .from = {result + WORD_BYTES}};
	struct field bytes = {.is_const = true, .is_posted = true, .most = WQE_CALC_OPERAND};
	struct piece local, remote;
	struct actor perhaps = w->by;
	bool first = true;

	for (unsigned k = WORD_BYTES; k < WQE_CALC_OPERAND; k++)
		result[k] = bytes_any(0);
	for (unsigned sge = f->sge; sge + WQE_DS <= w->ds * WQE_DS; sge += WQE_DS) {
		struct field len = field_of(w, sge + WQE_SGE_LEN, 4);

		if (!piece_at(n, w, sge + WQE_SGE_ADDR, sge + WQE_SGE_LKEY, len, &local) ||
			!check_piece(n, w, &local, false))
			return false;
		if (local.in->kind != SPACE_OWN || !len.most || len.most % WQE_CALC_OPERAND ||
			local.at % WQE_CALC_OPERAND)
			return wrong(n, w, "%lu bytes at %lu of %s as operands", (unsigned long)len.most,
				(unsigned long)local.at, local.in->name);
		for (uint64_t at = 0; at < len.most; at += WQE_CALC_OPERAND, first = false) {
			if (!take(n, w, &local, at, operand, WQE_CALC_OPERAND))
				return false;
			if (first)
				memcpy(result, operand, WORD_BYTES * sizeof(*result));
			else
				calculate(f, result, operand);
			for (unsigned k = WORD_BYTES; k < WQE_CALC_OPERAND; k++)
				result[k] = bytes_any(bytes_from(result[k]) | bytes_from(operand[k]));
		}
	}
	if (first)
		return wrong(n, w, "a %s of nothing", f->name);
	if (!piece_at(n, w, WQE_RADDR, WQE_RKEY, bytes, &remote) || !check_piece(n, w, &remote, true))
		return false;
	if (w->reply || remote.in->kind != SPACE_OWN || remote.at % WORD_BYTES)
		return wrong(n, w, "a result at %lu of %s", (unsigned long)remote.at, remote.in->name);
	store(n, remote.in, remote.at, &number, WORD_BYTES, w->by);
	perhaps.sure = false;
	store(n, remote.in, remote.at + WORD_BYTES, &behind, WORD_BYTES, perhaps);
	return true;
}

static bool synchronize(struct nic *n, const struct nic_wqe *w)
{
	struct field index = field_of(w, WQE_SYNC_INDEX, 4);

	if (is_written(w, WQE_SYNC_OBJECT, 4))
		return wrong(n, w, "the queue of a WAIT or an enable is written");
	if (index.from || (!w->renewed && is_written(w, WQE_SYNC_INDEX, 4)))
		return wrong(n, w, "the number of a WAIT or an enable is written");
	return true;
}

/* What it can be besides a NOP, or NULL; false if that is not one thing, with the opmod and size of it */
static bool find_form(struct nic *n, const struct nic_wqe *w, const struct form **f)
{
	const struct word_case *seen[2 * CASES];
	unsigned cases = word_seen(word_of(w, 0), &w->by, seen);
	unsigned sgl;

	*f = NULL;
	for (unsigned c = 0; c < cases; c++)
		for (unsigned op = bytes_next(seen[c]->b[WQE_OPCODE], 1); op < 256;
			op = bytes_next(seen[c]->b[WQE_OPCODE], op + 1)) {
			uint8_t opmod;

			if (*f && (*f)->opcode != op)
				return wrong(n, w, "can be a %s, and have the opcode %#x", (*f)->name, op);
			bytes_const(seen[c]->b[WQE_OPMOD], &opmod);
			*f = *f ? *f : form_of((uint8_t)op, opmod);
			if (!*f)
				return wrong(n, w, "can have the opcode %#x", op);
			if (!bytes_only(seen[c]->b[WQE_OPMOD], (*f)->opmod))
				return wrong(n, w, "a %s can have another opmod than %#x", (*f)->name,
					(*f)->opmod);
			if (!bytes_only(seen[c]->b[WQE_DSCOUNT], w->ds))
				return wrong(n, w, "a %s can have another size", (*f)->name);
		}
	if (!*f)
		return true;
	sgl = (*f)->sync ? 2u * WQE_DS : (*f)->sge;
	if (w->ds * WQE_DS < sgl + ((*f)->operands ? WQE_DS : 0) || ((*f)->sync && w->ds != 2) ||
		((*f)->scatters && w->ds * WQE_DS == sgl))
		return wrong(n, w, "can be a %s, with %u segments", (*f)->name, w->ds);
	return true;
}

/* The cases of one decision in which it is awake, if it is asleep in all others */
static struct guard guard_of(const struct nic_wqe *w, uint8_t opcode)
{
	const struct word_case *seen[2 * CASES];
	unsigned cases = word_seen(word_of(w, 0), &w->by, seen);
	struct guard g = {0};
	uint32_t asleep = 0;

	for (unsigned c = 0; c < cases; c++) {
		const struct guard *in = &seen[c]->in;

		if (!in->decision || (g.decision && g.decision != in->decision))
			return (struct guard){0};
		g.decision = in->decision;
		if (bytes_have(seen[c]->b[WQE_OPCODE], opcode))
			g.cases |= in->cases;
		if (!bytes_only(seen[c]->b[WQE_OPCODE], opcode))
			asleep |= in->cases;
	}
	return g.cases & asleep ? (struct guard){0} : g;
}

bool nic_execute(struct nic *n, const struct nic_wqe *w)
{
	struct bytes opcodes = nic_opcodes(w);
	struct nic_wqe awake = *w;
	const struct form *f;

	if (!find_form(n, w, &f))
		return false;
	if (!f)
		return true;
	awake.by.sure = bytes_only(opcodes, f->opcode);
	awake.by.guard = awake.by.sure ? (struct guard){0} : guard_of(w, f->opcode);
	if (f->sync)
		return synchronize(n, &awake);
	return f->operands ? atomic(n, &awake, f) : f->calc ? calc(n, &awake, f) : move(n, &awake, f);
}

bool nic_check(struct nic *n, const struct nic_wqe *w)
{
	struct bytes size = byte_of(w, WQE_DSCOUNT);
	struct field index = field_of(w, WQE_INDEX, 2);
	const struct form *f;

	if (is_written(w, FLAGS_FROM, FLAGS_TO - FLAGS_FROM))
		return wrong(n, w, "its flags are written");
	if (!n->ignores_index &&
		(is_written(w, WQE_QPN_DS, 3) || index.from || (!w->renewed && is_written(w, WQE_INDEX, 2))))
		return wrong(n, w, "its index or its queue is written");
	if (!bytes_only(size, w->ds))
		return wrong(n, w, "its size is written");
	for (unsigned at = WQE_DS; at < w->ds * WQE_DS; at++)
		if (word_of(w, at)->secret & word_of(w, at)->written)
			return wrong(n, w, "a key is written");
	return find_form(n, w, &f);
}
