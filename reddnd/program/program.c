/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/program.h"

#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/endless.h"
#include "reddnd/chain/schedule/derive.h"
#include "reddnd/chain/schedule/loop-order.h"
#include "reddnd/chain/verify/bounds.h"
#include "reddnd/program/front/front.h"
#include "reddnd/program/front/pool.h"
#include "reddnd/program/lower/lower.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a program_free() frees: the program is its first member */
struct compiled {
	struct program program;
	struct lowered *lowered;
	struct chain_desc *desc, *loop;
	struct pool *pool;
};

static void free_ast(struct ast_program **p)
{
	ast_free(*p);
}

static void free_diag(struct diag **d)
{
	diag_free(*d);
}

void program_free(struct program *p)
{
	struct compiled *c = (struct compiled *)p;

	if (!c)
		return;
	chain_writer_free(c->program.writer);
	chain_free(c->program.image);
	ring_free(c->program.loop_image);
	chain_derive_free(c->desc);
	chain_loop_order_free(c->loop);
	lower_free(c->lowered);
	pool_free(c->pool);
	free(c);
}

static void free_compiled(struct compiled **c)
{
	program_free((struct program *)*c);
}

static void copy_params(struct compiled *c, const struct ast_program *ast)
{
	struct program *p = &c->program;

	p->params = pool_alloc(c->pool, ast->nparams * sizeof(*p->params));
	for (; p->nparams < ast->nparams; p->nparams++) {
		const struct ast_param *from = &ast->param[p->nparams];
		struct program_param *to = &p->params[p->nparams];

		*to = (struct program_param){
			.value = from->value, .lo = from->lo, .hi = from->hi, .by_default = from->by_default};
		snprintf(to->name, sizeof(to->name), "%s", from->name);
	}
}

static void copy_regions(struct compiled *c, const struct ast_program *ast, const struct chain_bounds *bounds)
{
	struct program *p = &c->program;

	p->regions = pool_alloc(c->pool, ast->nregions * sizeof(*p->regions));
	for (; p->nregions < ast->nregions; p->nregions++) {
		const struct ast_region *from = ast->region[p->nregions];
		struct program_region *to = &p->regions[p->nregions];

		*to = (struct program_region){.writable = from->writable,
			.steered = from->steered,
			.stored = bounds->stored[p->nregions],
			.size = from->size > bounds->region[p->nregions] ? from->size
									 : bounds->region[p->nregions]};
		snprintf(to->name, sizeof(to->name), "%s", from->name);
	}
}

static void copy_args(struct compiled *c, const struct ast_program *ast)
{
	struct program *p = &c->program;

	p->args = pool_alloc(c->pool, ast->nargs * sizeof(*p->args));
	for (; p->nargs < ast->nargs; p->nargs++) {
		const struct ast_arg *from = ast->arg[p->nargs];
		struct program_arg *to = &p->args[p->nargs];

		*to = (struct program_arg){.kind = PROGRAM_NUMBER, .bytes = (uint16_t)from->type.bytes};
		if (from->type.kind == AST_BYTES)
			to->kind = PROGRAM_STRING;
		if (from->type.kind == AST_OFFSET) {
			to->kind = PROGRAM_WINDOW;
			to->region = (uint8_t)from->type.window->index;
		}
		snprintf(to->name, sizeof(to->name), "%s", from->name);
	}
}

static void copy_payload(struct compiled *c, const struct ast_program *ast)
{
	struct program_payload *to = &c->program.payload;

	if (!ast->payload)
		return;
	to->region = (uint8_t)ast->payload->region->index;
	to->max = ast->payload->max;
	snprintf(to->name, sizeof(to->name), "%s", ast->payload->name);
}

static uint8_t field_kind(const struct ast_reply *r)
{
	if (r->type.kind == AST_BYTES)
		return r->up_to ? PROGRAM_FIELD_UP_TO : PROGRAM_FIELD_BYTES;
	return r->type.order == AST_LE ? PROGRAM_FIELD_LE : PROGRAM_FIELD_BE;
}

/* Without those that no step is left to write */
static void copy_fields(struct compiled *c, const struct ast_program *ast)
{
	struct program *p = &c->program;

	p->fields = pool_alloc(c->pool, ast->nreplies * sizeof(*p->fields));
	for (unsigned n = 0; n < ast->nreplies; n++) {
		const struct ast_reply *from = &ast->reply[n];
		uint32_t left = from->at < p->reply_max ? p->reply_max - from->at : 0;
		unsigned i = p->nfields;

		if (left < (from->type.kind == AST_BYTES ? 1 : from->type.bytes))
			continue;
		for (; i && p->fields[i - 1].at > from->at; i--)
			p->fields[i] = p->fields[i - 1];
		p->fields[i] = (struct program_field){.kind = field_kind(from),
			.at = from->at,
			.bytes = left < from->type.bytes ? left : from->type.bytes};
		snprintf(p->fields[i].name, sizeof(p->fields[i].name), "%s", from->name);
		p->nfields++;
	}
}

/* Shows the error at the line of the step that it names; what names none is about the whole program */
static int refused(struct diag *d, const struct ast_program *ast, const struct chain_error *e)
{
	unsigned line = e->at.line ? e->at.line : e->other.line;
	struct diag_pos at = line ? diag_line(d, line) : ast->pos;
	char text[CHAIN_ERROR_TEXT];

	diag_report(d, chain_error_name(e->code), at, "%s", chain_error_text(e, text, sizeof(text)));
	return PROGRAM_REFUSED;
}

static int too_long(struct diag *d, const struct ast_program *ast, const struct chain_desc *loop)
{
	diag_error(d, LIMIT, ast->pos,
		"an iteration of the loop has %u work requests, and two do not fit a queue; do less in it",
		loop->nsteps);
	return PROGRAM_REFUSED;
}

static int make_loop(struct compiled *c, struct chain_error *err)
{
	struct program *p = &c->program;
	int r = chain_loop_size(c->loop, CHAIN_MAX_RING, &p->loop_ring, &p->loop_info, err);

	if (r)
		return r;
	return chain_loop_new(
		&p->loop_image, c->loop, p->loop_ring, c->lowered->desc.shared, &p->loop_info, err);
}

/* Orders, proves and builds what lowering made. 0, CHAIN_REFUSED, -E2BIG: the loop is too long; -ENOMEM */
static int make_chain(struct compiled *c, struct chain_bounds *bounds, struct chain_error *err)
{
	int r = 0;

	if (c->lowered->endless) {
		r = chain_loop_order(&c->lowered->loop, &c->loop, err);
		if (r == 0)
			r = make_loop(c, err);
		c->lowered->desc.loop = c->loop;
	}
	if (r == 0)
		r = chain_derive(&c->lowered->desc, &c->desc, err);
	if (r == 0)
		r = chain_check_bounds(c->desc, bounds, err);
	if (r == 0)
		r = chain_build(c->desc, &c->program.image, err);
	if (r == 0)
		r = chain_writer_new(&c->program.writer, c->program.image);
	return r;
}

/* First as if each queue could learn of failures of the others by what they enable */
static int lower_and_make(struct compiled *c, const struct ast_program *ast,
	const struct program_target *target, struct diag *d, struct chain_bounds *bounds,
	struct chain_error *err)
{
	int r;

	for (bool dormant_end = false;; dormant_end = true) {
		r = lower_program(ast, target, dormant_end, d, &c->lowered);
		if (r)
			return r;
		*err = (struct chain_error){0};
		r = make_chain(c, bounds, err);
		if (r != CHAIN_REFUSED || dormant_end || c->lowered->endless || c->lowered->desc.nqueues <= 2)
			break;
		chain_derive_free(c->desc);
		lower_free(c->lowered);
		c->desc = NULL;
		c->lowered = NULL;
	}
	return r == -E2BIG ? too_long(d, ast, c->loop) : r > 0 ? refused(d, ast, err) : r;
}

static int compile(const struct program_source *src, const struct program_setting *settings,
	unsigned nsettings, const struct program_target *target, struct diag *d, struct compiled *c)
{
	CLEANUP(free_ast) struct ast_program *ast = NULL;
	struct chain_bounds bounds;
	struct chain_error err;
	int r = front_parse(src, settings, nsettings, d, &ast);

	if (r)
		return r;
	r = lower_and_make(c, ast, target, d, &bounds, &err);
	if (r)
		return r;
	snprintf(c->program.name, sizeof(c->program.name), "%s", ast->name);
	c->program.shape = ast->shape;
	c->program.loop = c->loop;
	c->program.shared_init = c->lowered->shared_init;
	c->program.shared_bytes = c->lowered->shared_bytes;
	c->program.reply_max = bounds.reply;
	c->program.pieces = c->lowered->pieces;
	c->program.npieces = c->lowered->npieces;
	copy_params(c, ast);
	copy_regions(c, ast, &bounds);
	copy_args(c, ast);
	copy_payload(c, ast);
	copy_fields(c, ast);
	c->program.desc = c->desc;
	return 0;
}

static int copy_errors(const struct diag *d, struct program_errors *errors)
{
	errors->error = calloc(diag_errors(d), sizeof(*errors->error));
	if (!errors->error)
		return -ENOMEM;
	for (; errors->n < diag_errors(d); errors->n++) {
		struct diag_entry e = diag_entry(d, errors->n);

		errors->error[errors->n] =
			(struct program_error){e.code, e.at.line, e.at.col, strdup(e.text)};
		if (!errors->error[errors->n].text)
			return -ENOMEM;
	}
	errors->text = diag_text(d);
	return errors->text ? PROGRAM_REFUSED : -ENOMEM;
}

void program_errors_free(struct program_errors *errors)
{
	for (unsigned i = 0; i < errors->n; i++)
		free(errors->error[i].text);
	free(errors->error);
	free(errors->text);
	*errors = (struct program_errors){0};
}

int program_diagnose(const struct program_source *src, const struct program_setting *settings,
	unsigned nsettings, const struct program_target *target, struct program **out,
	struct program_errors *errors)
{
	CLEANUP(free_diag) struct diag *d = diag_new(src->name, src->text, src->len);
	CLEANUP(free_compiled) struct compiled *c = calloc(1, sizeof(*c));
	int r;

	*out = NULL;
	*errors = (struct program_errors){0};
	if (!d || !c)
		return -ENOMEM;
	c->pool = pool_new();
	if (!c->pool)
		return -ENOMEM;
	r = compile(src, settings, nsettings, target, d, c);
	if (r == PROGRAM_REFUSED) {
		r = copy_errors(d, errors);
		if (r < 0)
			program_errors_free(errors);
	}
	if (r)
		return r;
	*out = &steal_ptr(&c)->program;
	return 0;
}

int program_compile(const struct program_source *src, const struct program_setting *settings,
	unsigned nsettings, const struct program_target *target, struct program **out, char **messages)
{
	CLEANUP(program_errors_free) struct program_errors errors;
	int r = program_diagnose(src, settings, nsettings, target, out, &errors);

	*messages = steal_ptr(&errors.text);
	return r;
}

void program_complete(const struct program *p, uint8_t *request, uint32_t bytes)
{
	uint32_t end = 0;

	for (unsigned i = 0; i < p->npieces; i++) {
		const struct program_piece *piece = &p->pieces[i];
		const uint32_t from = end > bytes ? end : bytes;

		end += piece->len;
		if (from < end)
			memset(request + from, piece->inverted ? 0xff : 0, end - from);
	}
}

/* The steps of a queue are its WQEs, in their order */
unsigned program_step_at(const struct program *p, unsigned queue, uint32_t wqebb)
{
	const struct chain_queue *q = &p->image->queue[queue];
	unsigned nth = 0, s = 0;

	if (queue >= p->image->nqueues || wqebb >= q->wqebbs)
		return p->desc->nsteps;
	for (uint32_t w = 0; w <= wqebb; w++)
		nth += q->starts[w];
	for (; s < p->desc->nsteps; s++)
		if (p->desc->steps[s].queue == queue && --nth == 0)
			break;
	return s;
}

struct program_loop_size program_loop_size(const struct program *p)
{
	struct program_loop_size n = {0};

	for (unsigned s = 0; p->loop && s < p->loop->nsteps; s++)
		switch (chain_verb_info(p->loop->steps[s].verb)->class) {
		case CHAIN_CLASS_COPY:
			n.copy++;
			break;
		case CHAIN_CLASS_ATOMIC:
			n.atomic++;
			break;
		default:
			n.sync++;
		}
	return n;
}

unsigned program_wqes(const struct program *p)
{
	const struct chain_image *img = p->image;
	unsigned n = 0;

	for (unsigned q = 0; q < img->nqueues; q++)
		for (uint32_t w = 0; w < img->queue[q].wqebbs; w++)
			n += img->queue[q].starts[w];
	return n;
}

uint64_t program_loop_wqes(const struct program *p, uint64_t iterations)
{
	return p->loop ? iterations * p->loop_info.lap.wqes / p->loop_info.iterations : 0;
}
