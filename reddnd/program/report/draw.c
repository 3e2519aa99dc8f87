/* SPDX-License-Identifier: BSD-2-Clause */

#include "reddnd/program/report/explain.h"
#include "reddnd/program/report/path.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
	MARGIN = 24,
	TITLE = 64,
	COLUMN = 300, /* from one queue to the next */
	BOX_W = 200,
	BOX_H = 34,
	ROW = 46,
	LEGEND = 40, /* its height */
	LEGEND_W = 720,
	BEND = 44, /* of arrows from column to column, */
	BACK = 80, /* and of the one that goes back to the beginning of the loop */
};

struct picture {
	FILE *f;
	const struct program *p;
	const struct chain_desc *d;
	const struct path_time *t; /* NULL: of the loop, which is not modelled */
	unsigned *row;             /* of each step */
	unsigned rows;
	unsigned first; /* column; the loop stands on the right of the chain */
};

/* Rows: a step is below everything that decides when it starts, and below the step before it in its queue */
static void place_steps(struct picture *pic)
{
	const struct path_time *t = pic->t;
	const struct chain_desc *d = pic->d;
	bool changed = true;

	for (unsigned round = 0; changed && round <= d->nsteps; round++) {
		changed = false;
		for (unsigned s = 0; s < d->nsteps; s++) {
			unsigned row = t[s].after == PATH_REQUEST ? 0 : pic->row[t[s].after] + 1;

			for (unsigned k = 0; k < s; k++)
				if (d->steps[k].queue == d->steps[s].queue && pic->row[k] + 1 > row)
					row = pic->row[k] + 1;
			changed |= pic->row[s] != row;
			pic->row[s] = row;
		}
	}
	for (unsigned s = 0; s < d->nsteps; s++)
		if (pic->row[s] + 1 > pic->rows)
			pic->rows = pic->row[s] + 1;
}

/* The reply queue, number 0, is the last column: replies leave to the right */
static unsigned column(const struct picture *pic, unsigned queue)
{
	if (!pic->t)
		return pic->first;
	return queue ? queue - 1 : pic->d->nqueues - 1;
}

static int left(const struct picture *pic, unsigned s)
{
	return MARGIN + (int)column(pic, pic->d->steps[s].queue) * COLUMN;
}

static int top(const struct picture *pic, unsigned s)
{
	return TITLE + (int)pic->row[s] * ROW;
}

static void escaped(FILE *f, const char *text, size_t max)
{
	for (size_t i = 0; text[i] && i < max; i++)
		switch (text[i]) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		default:
			fputc(text[i], f);
		}
	if (strlen(text) > max)
		fputs("&#8230;", f);
}

static void box(const struct picture *pic, unsigned s)
{
	static const char *const fill[] = {[CHAIN_CLASS_COPY] = "#dbeafe",
		[CHAIN_CLASS_ATOMIC] = "#fde68a",
		[CHAIN_CLASS_SYNC] = "#e5e7eb"};
	const struct chain_step *st = &pic->d->steps[s];
	const struct path_time *t = pic->t ? &pic->t[s] : NULL;
	int x = left(pic, s), y = top(pic, s);
	char text[400];

	explain_step(pic->d, s, text, sizeof(text));
	fputs("<g><title>", pic->f);
	escaped(pic->f, text, sizeof(text));
	fprintf(pic->f,
		"</title><rect x='%d' y='%d' width='%d' height='%d' rx='4' fill='%s' stroke='%s'%s%s/>", x, y,
		BOX_W, BOX_H, fill[chain_verb_info(st->verb)->class],
		t && t->critical ? "#b91c1c" : "#6b7280", t && t->critical ? " stroke-width='2'" : "",
		st->flags & CHAIN_DORMANT ? " stroke-dasharray='5 3'" : "");
	fprintf(pic->f, "<text x='%d' y='%d' class='l'>", x + 6, y + 14);
	escaped(pic->f, st->label ? st->label : chain_verb_info(st->verb)->name, 30);
	fprintf(pic->f, "</text><text x='%d' y='%d' class='s'>", x + 6, y + 28);
	escaped(pic->f, text, 38);
	if (t)
		fprintf(pic->f, "</text><text x='%d' y='%d' class='n'>%u.%02u", x + BOX_W - 6, y + 14,
			(unsigned)(t->start / 1000000), (unsigned)(t->start % 1000000 / 10000));
	fputs("</text></g>\n", pic->f);
}

/* To the left or right of its ends by @bend1, @bend2 */
static void curve(FILE *f, int x1, int y1, int bend1, int x2, int y2, int bend2, const char *class)
{
	fprintf(f, "<path class='%s' d='M%d %d C%d %d %d %d %d %d' marker-end='url(#%s)'/>\n", class, x1, y1,
		x1 + bend1, y1, x2 + bend2, y2, x2, y2, class);
}

/* A curve from the side of one box to the side of another */
static void arrow(const struct picture *pic, unsigned from, unsigned to, const char *class)
{
	bool same = pic->d->steps[from].queue == pic->d->steps[to].queue;
	bool right = same || left(pic, from) < left(pic, to);
	int x1 = left(pic, from) + (right ? BOX_W : 0), y1 = top(pic, from) + BOX_H / 2;
	int x2 = left(pic, to) + (same ? BOX_W : right ? 0 : BOX_W), y2 = top(pic, to) + BOX_H / 2;
	int bend = same ? 24 + (int)(pic->row[to] > pic->row[from] ? pic->row[to] - pic->row[from]
								   : pic->row[from] - pic->row[to]) *
					   5
			: 44;

	if (bend > COLUMN - BOX_W)
		bend = COLUMN - BOX_W;
	curve(pic->f, x1, y1, right ? bend : -bend, x2, y2, same || !right ? bend : -bend, class);
}

static void arrows_of(const struct picture *pic, unsigned s)
{
	const struct chain_desc *d = pic->d;
	const struct chain_step *st = &d->steps[s];

	if (chain_verb_info(st->verb)->scatters)
		for (unsigned i = 0; i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
			if (st->local[i].kind == CHAIN_AT_FIELD &&
				chain_step_named(d, st->local[i].name) < d->nsteps)
				arrow(pic, s, chain_step_named(d, st->local[i].name), "patch");
	if (st->verb != CHAIN_READ && st->remote.kind == CHAIN_AT_FIELD &&
		chain_step_named(d, st->remote.name) < d->nsteps)
		arrow(pic, s, chain_step_named(d, st->remote.name), "patch");
	if (st->verb == CHAIN_WAIT && st->until && chain_step_named(d, st->until) < d->nsteps)
		arrow(pic, chain_step_named(d, st->until), s, "wait");
	if (st->verb != CHAIN_SEND_EN)
		return;
	for (unsigned k = 0; k < d->nsteps; k++) /* to the first that starts after it */
		if (d->steps[k].queue == st->target && (st->target != st->queue || k > s)) {
			arrow(pic, s, k, "enable");
			return;
		}
}

static int middle(const struct picture *pic, unsigned s)
{
	return top(pic, s) + BOX_H / 2;
}

/* How the loop is called, goes round, and is left; the chain has a step for either, as endless.h wants them
 */
static void arrows_of_loop(const struct picture *chain, const struct picture *loop)
{
	const unsigned last = loop->d->nsteps - 1;
	const int x = left(loop, 0);
	bool called = false;

	for (unsigned s = 0; s < chain->d->nsteps; s++) {
		int right = left(chain, s) + BOX_W;

		if (!(chain->d->steps[s].flags & CHAIN_CALL))
			continue;
		if (!called)
			curve(loop->f, right, middle(chain, s), BEND, x, middle(loop, 0), -BEND, "wait");
		else
			curve(loop->f, x, middle(loop, last), -BEND, right, middle(chain, s), BEND, "enable");
		called = true;
	}
	for (unsigned s = 0; s < loop->d->nsteps; s++) {
		const struct chain_step *st = &loop->d->steps[s];

		if (st->verb == CHAIN_SEND_EN && st->through && chain_step_named(loop->d, st->through) <= s)
			curve(loop->f, x, middle(loop, s), -BACK, x, middle(loop, 0), -BACK, "enable");
	}
}

static void frame(const struct picture *pic, const struct picture *loop, uint64_t whole)
{
	int columns = 2 * MARGIN + (int)(pic->d->nqueues + (loop != NULL)) * COLUMN,
	    width = columns < LEGEND_W ? LEGEND_W : columns;
	unsigned rows = loop && loop->rows > pic->rows ? loop->rows : pic->rows;
	int height = TITLE + (int)rows * ROW + LEGEND;
	const struct program_loop_size size = program_loop_size(pic->p);
	static const char *const classes[][2] = {
		{"patch", "#b45309"}, {"wait", "#1d4ed8"}, {"enable", "#047857"}};

	fprintf(pic->f,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
		"font-family='sans-serif'>\n<style>.l{font-size:12px;font-weight:bold}.s{font-size:9px;fill:#"
		"374151}"
		".n{font-size:9px;fill:#6b7280;text-anchor:end}.h{font-size:13px;font-weight:bold}"
		"path{fill:none;stroke-width:1.4}.patch{stroke:#b45309}.wait{stroke:#1d4ed8;stroke-dasharray:"
		"4 3}"
		".enable{stroke:#047857}</style>\n<rect width='100%%' height='100%%' fill='white'/>\n<defs>",
		width, height, width, height);
	for (unsigned i = 0; i < 3; i++)
		fprintf(pic->f,
			"<marker id='%s' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' "
			"markerHeight='7' orient='auto'>"
			"<path d='M0 0L8 4L0 8z' style='fill:%s;stroke:none'/></marker>",
			classes[i][0], classes[i][1]);
	fprintf(pic->f,
		"</defs>\n<text x='%d' y='22' class='h'>%s: %u copy, %u atomic, %u wait and enable; modelled "
		"%u.%02u us"
		"</text>\n",
		MARGIN, pic->p->name, pic->p->image->n_copy, pic->p->image->n_atomic, pic->p->image->n_sync,
		(unsigned)(whole / 1000000), (unsigned)(whole % 1000000 / 10000));
	for (unsigned q = 0; q < pic->d->nqueues; q++)
		fprintf(pic->f, "<text x='%d' y='48' class='h'>%s</text>\n",
			MARGIN + (int)column(pic, q) * COLUMN, pic->d->queues[q].name);
	if (loop)
		fprintf(pic->f,
			"<text x='%d' y='48' class='h'>loop: %u copy, %u atomic, %u wait and enable</text>\n",
			left(loop, 0), size.copy, size.atomic, size.sync);
	for (unsigned i = 0; i < 3; i++)
		fprintf(pic->f,
			"<path class='%s' d='M%d %d h30' marker-end='url(#%s)'/><text x='%d' y='%d' "
			"class='s'>%s</text>\n",
			classes[i][0], MARGIN + (int)i * 120, height - 18, classes[i][0],
			MARGIN + (int)i * 120 + 36, height - 15,
			i == 0   ? "patches"
			: i == 1 ? "is waited for"
				 : "enables");
	fprintf(pic->f,
		"<text x='%d' y='%d' class='s'>dashed box: a NOP until it is patched; red: critical path; us "
		"at the right</text>\n",
		MARGIN + 360, height - 15);
}

static void draw_steps(const struct picture *pic)
{
	for (unsigned s = 0; s < pic->d->nsteps; s++)
		box(pic, s);
	for (unsigned s = 0; s < pic->d->nsteps; s++)
		arrows_of(pic, s);
}

int draw_svg(FILE *f, const struct program *p)
{
	CLEANUP(cleanup_free) struct path_time *t = calloc(p->desc->nsteps + 1, sizeof(*t));
	CLEANUP(cleanup_free) unsigned *row = calloc(p->desc->nsteps + 1, sizeof(*row));
	CLEANUP(cleanup_free) unsigned *loop_row = calloc(CHAIN_MAX_STEPS, sizeof(*loop_row));
	struct picture pic = {.f = f, .p = p, .d = p->desc, .t = t, .row = row};
	struct picture loop = {.f = f, .p = p, .d = p->loop, .row = loop_row, .first = p->desc->nqueues};
	uint64_t whole;

	if (!t || !row || !loop_row)
		return -ENOMEM;
	whole = path_model(p->desc, t);
	place_steps(&pic);
	for (; p->loop && loop.rows < p->loop->nsteps; loop.rows++)
		loop_row[loop.rows] = loop.rows;
	frame(&pic, p->loop ? &loop : NULL, whole);
	draw_steps(&pic);
	if (p->loop) {
		draw_steps(&loop);
		arrows_of_loop(&pic, &loop);
	}
	fputs("</svg>\n", f);
	return 0;
}
