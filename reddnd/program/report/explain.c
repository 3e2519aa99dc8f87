/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/report/explain.h"

#include "reddnd/chain/ir/line.h"
#include "reddnd/program/describe.h"
#include "reddnd/program/report/path.h"
#include "util/cleanup.h"
#include "util/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- one step
 * ------------------------------------------------------------------------------------------------ */

static void add_place(
	struct chain_line *t, const struct chain_desc *d, const struct chain_place *p, bool with_len)
{
	switch (p->kind) {
	case CHAIN_AT_REGION:
		chain_line_add(t, "%s", d->regions ? d->regions[p->index].name : "region");
		break;
	case CHAIN_AT_SLOT:
		chain_line_add(t, "slot");
		break;
	case CHAIN_AT_SCRATCH:
		chain_line_add(t, "%s", p->name);
		break;
	case CHAIN_AT_FIELD:
		chain_line_add(t, "%s.%s", p->name, chain_field_name((enum chain_field)p->field));
		if (p->sge)
			chain_line_add(t, "[%u]", p->sge);
		break;
	case CHAIN_AT_LENGTH:
		chain_line_add(t, "request.length");
		break;
	default:
		return;
	}
	if (p->from)
		chain_line_add(t, "+%u", p->from);
	if (with_len && p->len)
		chain_line_add(t, " (%u)", p->len);
}

static void add_locals(struct chain_line *t, const struct chain_desc *d, const struct chain_step *st)
{
	for (unsigned i = 0; i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++) {
		chain_line_add(t, i ? ", " : " ");
		add_place(t, d, &st->local[i], true);
	}
}

static void add_sync(struct chain_line *t, const struct chain_desc *d, const struct chain_step *st)
{
	if (st->verb == CHAIN_WAIT)
		chain_line_add(t, " for %s",
			st->until                           ? st->until
			: strcmp(d->queues[0].name, "loop") ? "the request"
							    : "a call");
	else
		chain_line_add(t, " %s %s%s",
			st->target < d->nqueues ? d->queues[st->target].name : "who called the loop",
			st->upto == CHAIN_UPTO_STEP  ? "through "
			: st->upto == CHAIN_UPTO_END ? "to its end"
						     : "to its end and the start of the next instance",
			st->upto == CHAIN_UPTO_STEP ? st->through : "");
}

void explain_step(const struct chain_desc *d, unsigned s, char *text, size_t size)
{
	const struct chain_step *st = &d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct chain_line t = {text, size, 0};

	chain_line_add(&t, "%s%s", st->flags & CHAIN_DORMANT ? "NOP or " : "", v->name);
	if (st->pad)
		chain_line_add(&t, " of %u bytes", st->pad * CHAIN_WQEBB);
	if (v->class == CHAIN_CLASS_SYNC) {
		add_sync(&t, d, st);
	} else if (v->scatters) {
		chain_line_add(&t, " ");
		add_place(&t, d, &st->remote, false);
		if (st->local[0].kind != CHAIN_AT_NONE)
			chain_line_add(&t, " ->");
		add_locals(&t, d, st);
	} else if (v->data) {
		add_locals(&t, d, st);
		if (v->remote) {
			chain_line_add(&t, " -> ");
			add_place(&t, d, &st->remote, false);
		}
	}
	if (st->flags & CHAIN_FENCE)
		chain_line_add(&t, ", fenced");
	if (st->flags & CHAIN_SIGNALLED)
		chain_line_add(&t, ", signalled");
}

/* ---- for people
 * ---------------------------------------------------------------------------------------------- */

static void print_line(FILE *f, const struct program_source *source, unsigned line)
{
	const char *at = source->text, *end = source->text + source->len, *stop;

	for (unsigned n = 1; n < line && at < end; n++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : end;
	}
	stop = memchr(at, '\n', (size_t)(end - at));
	stop = stop ? stop : end;
	fprintf(f, "%4u | %.*s\n", line, (int)(stop - at), at);
}

static unsigned next_line(const struct program *p, unsigned after)
{
	unsigned next = 0;

	for (unsigned s = 0; s < p->desc->nsteps; s++)
		if (p->desc->steps[s].line > after && (!next || p->desc->steps[s].line < next))
			next = p->desc->steps[s].line;
	return next;
}

static void print_step(FILE *f, const struct program *p, const struct path_time *t, unsigned s)
{
	const struct chain_step *st = &p->desc->steps[s];
	char text[400];

	explain_step(p->desc, s, text, sizeof(text));
	fprintf(f, "     %c %3u %5u.%02u us  %-8s %-12s %s\n", t[s].critical ? '*' : ' ', s,
		(unsigned)(t[s].start / 1000000), (unsigned)(t[s].start % 1000000 / 10000),
		p->desc->queues[st->queue].name, st->label ? st->label : "", text);
	if (st->why)
		fprintf(f, "     %c %24s %s\n", t[s].critical ? '*' : ' ', "because", st->why);
}

/* In the order of its ring, with a line before each that serves another one */
static void print_loop(FILE *f, const struct program *p, const struct program_source *source)
{
	const struct program_loop_size n = program_loop_size(p);
	unsigned line = 0;
	char text[900];

	fprintf(f,
		"for each iteration of the loop: %u work requests: %u copy, %u atomic, %u wait and enable; "
		"and to renew its ring of "
		"%u WQEBBs, for %u iterations: %u copy, %u atomic\n",
		n.copy + n.atomic + n.sync, n.copy, n.atomic, n.sync, p->loop_ring, p->loop_info.iterations,
		p->loop_info.lap.copies, p->loop_info.lap.adds + 2);
	for (unsigned s = 0; s < p->loop->nsteps; s++) {
		const struct chain_step *st = &p->loop->steps[s];

		if (st->line != line && st->line)
			print_line(f, source, st->line);
		line = st->line;
		explain_step(p->loop, s, text, sizeof(text));
		fprintf(f, "       %3u %-12s %s\n", s, st->label ? st->label : "", text);
		if (st->why)
			fprintf(f, "           %12s %s\n", "because", st->why);
	}
}

static void print_request(FILE *f, const struct program *p)
{
	unsigned at = 0;

	fprintf(f, "request: %u bytes\n", p->image->arg_len);
	for (unsigned i = 0; i < p->npieces; i++) {
		const struct program_piece *c = &p->pieces[i];

		fprintf(f, "  %3u..%-3u  %s", at, at + c->len - 1u, p->args[c->arg].name);
		if (c->len != p->args[c->arg].bytes)
			fprintf(f, " bytes %u..%u", c->first, c->first + c->len - 1u);
		fprintf(f, "%s%s\n", c->inverted ? ", inverted" : "",
			p->args[c->arg].kind == PROGRAM_STRING ? (c->reversed ? ", reversed" : "")
			: c->reversed                          ? ", little-endian"
							       : ", big-endian");
		at += c->len;
	}
	if (p->payload.max)
		fprintf(f, "  %3u..     %s, up to %u bytes in an extent of %s\n", at, p->payload.name,
			p->payload.max, p->regions[p->payload.region].name);
}

static void print_reply(FILE *f, const struct program *p)
{
	char type[24];

	fprintf(f, "reply: up to %u bytes of a slot\n", p->reply_max);
	for (unsigned i = 0; i < p->nfields; i++) {
		const struct program_field *c = &p->fields[i];

		program_describe_type(c, type, sizeof(type));
		fprintf(f, "  %3u..%-3u  %s, %s\n", c->at, c->at + c->bytes - 1, c->name, type);
	}
}

static struct path_time *model(const struct program *p, uint64_t *whole)
{
	struct path_time *t = calloc(p->desc->nsteps + 1, sizeof(*t));

	if (t)
		*whole = path_model(p->desc, t);
	return t;
}

static bool is_answer(const struct program *p, unsigned s)
{
	const struct chain_step *st = &p->desc->steps[s];

	return st->queue == 0 && (st->verb == CHAIN_WRITE_IMM || st->verb == CHAIN_SEND);
}

static double client_us(const struct program *p, uint64_t whole)
{
	return (double)path_model_client(whole, p->image->arg_len) / 1e6;
}

/* When there are several, each as if it were the one */
static void print_answers(FILE *f, const struct program *p, const struct path_time *t)
{
	unsigned n = 0, first = 0;

	for (unsigned s = 0; s < p->desc->nsteps; s++)
		if (is_answer(p, s)) {
			first = n++ ? first : s;
		}
	if (n > 1)
		fprintf(f,
			"that is the last of %u answers; the first: %.2f us to the client's memory, %.2f us "
			"as the client sees it\n",
			n, (double)t[first].done / 1e6, client_us(p, t[first].done));
}

static int print_calc(FILE *f, const struct explain_calc *calc)
{
	const struct program *p = calc->program;
	uint64_t whole = 0;
	CLEANUP(cleanup_free) struct path_time *t = p ? model(p, &whole) : NULL;

	if (p && !t)
		return -ENOMEM;
	fprintf(f, "on a device that %s on data in flight (CALC): ",
		calc->without ? "does not calculate" : "calculates");
	if (p)
		fprintf(f, "%u work requests: %u copy, %u atomic, %u wait and enable; %.2f us\n",
			p->image->n_copy + p->image->n_atomic + p->image->n_sync, p->image->n_copy,
			p->image->n_atomic, p->image->n_sync, (double)whole / 1e6);
	else
		fprintf(f, "the CPU executes it; %s\n", calc->refusal);
	return 0;
}

int explain_text(FILE *f, const struct program *p, const struct program_source *source, const char *nic,
	const struct explain_calc *calc)
{
	uint64_t whole = 0;
	CLEANUP(cleanup_free) struct path_time *t = model(p, &whole);

	if (!t)
		return -ENOMEM;
	fprintf(f,
		"%s: %u work requests for each request: %u copy, %u atomic, %u wait and enable\n"
		"modelled on %s, for a short reply: %.2f us to the client's memory, %.2f us as the "
		"client sees it; * marks the critical path\n",
		p->name, p->image->n_copy + p->image->n_atomic + p->image->n_sync, p->image->n_copy,
		p->image->n_atomic, p->image->n_sync, nic, (double)whole / 1e6, client_us(p, whole));
	if (p->image->n_pad)
		fprintf(f, "and %u NOPs, which fill groups of %u bytes that the device fetches together\n",
			p->image->n_pad, p->image->fetch_group * CHAIN_WQEBB);
	print_answers(f, p, t);
	if (calc && print_calc(f, calc))
		return -ENOMEM;
	for (unsigned i = 0; i < p->nparams; i++)
		fprintf(f, "param %s = %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")\n", p->params[i].name,
			p->params[i].value, p->params[i].lo, p->params[i].hi);
	print_request(f, p);
	print_reply(f, p);
	for (unsigned line = 0, next = 1; next; line = next) {
		if (line)
			print_line(f, source, line);
		for (unsigned s = 0; s < p->desc->nsteps; s++)
			if (p->desc->steps[s].line == line)
				print_step(f, p, t, s);
		next = next_line(p, line);
	}
	if (p->loop)
		print_loop(f, p, source);
	return 0;
}

/* ---- for programs
 * -------------------------------------------------------------------------------------------- */

static struct json_object *steps_json(const struct program *p, const struct path_time *t)
{
	static const char *const classes[] = {[CHAIN_CLASS_COPY] = "copy",
		[CHAIN_CLASS_ATOMIC] = "atomic",
		[CHAIN_CLASS_SYNC] = "wait_enable"};
	struct json_object *list = json_object_new_array();
	char text[400];

	for (unsigned s = 0; s < p->desc->nsteps; s++) {
		const struct chain_step *st = &p->desc->steps[s];
		struct json_object *o = json_object_new_object();

		explain_step(p->desc, s, text, sizeof(text));
		json_add_count(o, "line", st->line);
		json_add_text(o, "queue", p->desc->queues[st->queue].name);
		json_add_text(o, "label", st->label);
		json_add_text(o, "verb", chain_verb_info(st->verb)->name);
		json_add_text(o, "class", classes[chain_verb_info(st->verb)->class]);
		json_object_object_add(o, "dormant", json_object_new_boolean(st->flags & CHAIN_DORMANT));
		json_add_text(o, "text", text);
		json_add_text(o, "why", st->why);
		json_add_count(o, "start_ns", t[s].start / 1000);
		json_object_object_add(o, "critical", json_object_new_boolean(t[s].critical));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *answers_json(const struct program *p, const struct path_time *t)
{
	struct json_object *list = json_object_new_array();

	for (unsigned s = 0; s < p->desc->nsteps; s++) {
		struct json_object *o;

		if (!is_answer(p, s))
			continue;
		o = json_object_new_object();
		json_add_count(o, "line", p->desc->steps[s].line);
		json_add_text(o, "label", p->desc->steps[s].label);
		json_add_count(o, "modelled_ns", t[s].done / 1000);
		json_add_count(
			o, "modelled_client_ns", path_model_client(t[s].done, p->image->arg_len) / 1000);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *loop_json(const struct program *p)
{
	const struct program_loop_size n = program_loop_size(p);
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	char text[900];

	json_add_count(o, "copy", n.copy);
	json_add_count(o, "atomic", n.atomic);
	json_add_count(o, "wait_enable", n.sync);
	json_add_count(o, "ring_wqebbs", p->loop_ring);
	json_add_count(o, "iterations", p->loop_info.iterations);
	for (unsigned s = 0; s < p->loop->nsteps; s++) {
		const struct chain_step *st = &p->loop->steps[s];
		struct json_object *step = json_object_new_object();

		explain_step(p->loop, s, text, sizeof(text));
		json_add_count(step, "line", st->line);
		json_add_text(step, "label", st->label);
		json_add_text(step, "text", text);
		json_add_text(step, "why", st->why);
		json_object_array_add(list, step);
	}
	json_object_object_add(o, "steps", list);
	return o;
}

static struct json_object *request_json(const struct program *p)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < p->npieces; i++) {
		const struct program_piece *c = &p->pieces[i];
		struct json_object *o = json_object_new_object();

		json_add_text(o, "arg", p->args[c->arg].name);
		json_add_count(o, "first", c->first);
		json_add_count(o, "bytes", c->len);
		json_object_object_add(o, "reversed", json_object_new_boolean(c->reversed));
		json_object_object_add(o, "inverted", json_object_new_boolean(c->inverted));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *payload_json(const struct program *p)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "name", p->payload.name);
	json_add_text(o, "region", p->regions[p->payload.region].name);
	json_add_count(o, "max_bytes", p->payload.max);
	return o;
}

static struct json_object *reply_json(const struct program *p)
{
	struct json_object *list = json_object_new_array();
	char type[24];

	for (unsigned i = 0; i < p->nfields; i++) {
		struct json_object *o = json_object_new_object();

		program_describe_type(&p->fields[i], type, sizeof(type));
		json_add_text(o, "name", p->fields[i].name);
		json_add_count(o, "offset", p->fields[i].at);
		json_add_count(o, "bytes", p->fields[i].bytes);
		json_add_text(o, "type", type);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *params_json(const struct program *p)
{
	struct json_object *o = json_object_new_object();

	for (unsigned i = 0; i < p->nparams; i++)
		json_add_count(o, p->params[i].name, p->params[i].value);
	return o;
}

static void add_counts(struct json_object *o, const struct program *p)
{
	json_add_count(o, "copy", p->image->n_copy);
	json_add_count(o, "atomic", p->image->n_atomic);
	json_add_count(o, "wait_enable", p->image->n_sync);
}

static struct json_object *calc_json(const struct explain_calc *calc)
{
	struct json_object *o = json_object_new_object();

	if (calc->program)
		add_counts(o, calc->program);
	else
		json_add_text(o, "refusal", calc->refusal);
	return o;
}

int explain_json(FILE *f, const struct program *p, const struct explain_calc *calc)
{
	uint64_t whole = 0;
	CLEANUP(cleanup_free) struct path_time *t = model(p, &whole);
	struct json_object *o = t ? json_object_new_object() : NULL;

	if (!o)
		return -ENOMEM;
	json_add_text(o, "program", p->name);
	json_add_text(o, "shape", program_shape_name(p->shape));
	add_counts(o, p);
	if (calc)
		json_object_object_add(o, calc->without ? "without_calc" : "with_calc", calc_json(calc));
	json_add_count(o, "nops", p->image->n_pad);
	json_add_count(o, "modelled_ns", whole / 1000);
	json_add_count(o, "modelled_client_ns", path_model_client(whole, p->image->arg_len) / 1000);
	json_add_count(o, "request_bytes", p->image->arg_len);
	json_add_count(o, "reply_bytes", p->reply_max);
	json_object_object_add(o, "params", params_json(p));
	json_object_object_add(o, "request", request_json(p));
	if (p->payload.max)
		json_object_object_add(o, "payload", payload_json(p));
	json_object_object_add(o, "reply", reply_json(p));
	json_object_object_add(o, "answers", answers_json(p, t));
	json_object_object_add(o, "steps", steps_json(p, t));
	if (p->loop)
		json_object_object_add(o, "loop", loop_json(p));
	fprintf(f, "%s\n",
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return 0;
}
