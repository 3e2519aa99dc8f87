/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/table-print.h"
#include "tools/common/tool.h"
#include "tools/common/units.h"
#include "tools/reddnctl/commands.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/text.h"

#include <json-c/json.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <termios.h>
#include <unistd.h>

/*
 * Service times as the daemon counts them: lists of { "to_ns": longest of the bucket, "requests": those in it
 * }.
 */

enum { TIMES_MAX = 512 };

/* All zero: none. */
struct times {
	unsigned n;
	struct {
		uint64_t ns, count;
	} at[TIMES_MAX]; /* in the order of .ns */
};

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

/* Adds a list of the daemon; NULL is fine. What is no such list, or too much, is left out. */
static void times_add(struct times *t, struct json_object *list)
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

/* Takes away what a list of the same counters had before. One that had more, of another daemon: nothing. */
static void times_take_away(struct times *t, struct json_object *before)
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

/* The time that the fraction @part of the requests did not exceed, in ns, exact to a sixteenth; 0 without
 * requests. */
static uint64_t times_at(const struct times *t, double part)
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

/* The last numbers of a counter as a line of small bars. */

enum { SPARK_MAX = 30, SPARK_TEXT = 3 * SPARK_MAX + 1 };

/* The last SPARK_MAX numbers, the oldest first. All zero: none. */
struct spark {
	uint64_t number[SPARK_MAX];
	unsigned n;
};

enum { HEIGHTS = 8 };

static void spark_add(struct spark *s, uint64_t number)
{
	if (s->n == SPARK_MAX)
		memmove(s->number, s->number + 1, (SPARK_MAX - 1) * sizeof(*s->number));
	else
		s->n++;
	s->number[s->n - 1] = number;
}

/* A bar for each of the last @most numbers, as high as it is beside the largest of them; 0 is the lowest
 * one.
 * @utf8: of block elements, else of ASCII. */
static void spark_draw(const struct spark *s, unsigned most, bool utf8, char text[SPARK_TEXT])
{
	static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[HEIGHTS] = {"_", ".", ",", "-", "=", "+", "*", "#"};
	unsigned first = s->n > most ? s->n - most : 0;
	uint64_t largest = 0;

	*text = '\0';
	for (unsigned i = first; i < s->n; i++)
		largest = s->number[i] > largest ? s->number[i] : largest;
	for (unsigned i = first; i < s->n; i++) {
		double part = largest ? (double)s->number[i] / (double)largest : 0;
		unsigned height = (unsigned)(part * (HEIGHTS - 1) + 0.5);

		/* what is not 0 is not drawn as 0 */
		height = !height && s->number[i] ? 1 : height;
		strcat(text, (utf8 ? blocks : ascii)[height]);
	}
}

/* ---- the terminal ------------------------------------------------------------------------------ */

/* It gets back what it was like on screen_close(), and on SIGINT and SIGTERM */
static struct termios terminal;
static bool screen_is_open;
static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
	(void)signal;
	ended = 1;
}

/* False: standard input or output is no terminal, and nothing has been changed */
static bool screen_open(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &terminal) < 0)
		return false;
	raw = terminal;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	screen_is_open = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	return screen_is_open;
}

/* Fine without screen_open() */
static void screen_close(void)
{
	if (screen_is_open)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
	screen_is_open = false;
}

static struct winsize screen_size(void)
{
	struct winsize w = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	return w;
}

static unsigned screen_columns(void)
{
	unsigned columns = screen_size().ws_col;

	return columns ? columns : 80;
}

static unsigned screen_lines(void)
{
	unsigned lines = screen_size().ws_row;

	return lines ? lines : 24;
}

/* The next key, as soon as there is one; 0 after @ms milliseconds without, 'q' when a signal ends it */
static int screen_key(int ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char key;
	int r = ended ? 0 : poll(&p, 1, ms);

	if (ended || (r > 0 && read(STDIN_FILENO, &key, 1) != 1))
		return 'q';
	return r > 0 ? key : 0;
}

/* ---- rows -------------------------------------------------------------------------------------- */

enum { ROW_SPARK = 12 };

#define RATE                                                                                                 \
	{                                                                                                    \
		"per_second", "REQUESTS/S", TABLE_COUNT                                                      \
	}
#define TIMES                                                                                                \
	{"p50_ns", "P50", TABLE_TIME},                                                                       \
	{                                                                                                    \
		"p99_ns", "P99", TABLE_TIME                                                                  \
	}
#define LAST                                                                                                 \
	{"last", "LAST", TABLE_TEXT},                                                                        \
	{                                                                                                    \
		"last_p99", "LAST P99", TABLE_TEXT                                                           \
	}

static const struct table_column session_columns[] = {
	{"session", "SESSION", TABLE_COUNT},
	{"peer", "CLIENT", TABLE_TEXT},
	{"tenant", "TENANT", TABLE_TEXT},
	{"offload", "OFFLOAD", TABLE_TEXT},
	RATE,
	TIMES,
	{"requests", "REQUESTS", TABLE_COUNT},
	{"hits", "HITS", TABLE_COUNT},
	{"misses", "MISSES", TABLE_COUNT},
	{"unseen", "UNSEEN", TABLE_COUNT},
	{"bytes_out", "REPLIED", TABLE_BYTES},
	{"wqes", "WQES", TABLE_COUNT},
	{"age_us", "AGE", TABLE_DURATION},
	LAST,
};
static const struct table_column offload_columns[] = {
	{"offload", "OFFLOAD", TABLE_TEXT},
	{"program", "PROGRAM", TABLE_TEXT},
	{"engine", "ENGINE", TABLE_TEXT},
	{"state", "STATE", TABLE_TEXT},
	{"sessions", "SESSIONS", TABLE_COUNT},
	RATE,
	TIMES,
	{"requests", "REQUESTS", TABLE_COUNT},
	{"hits", "HITS", TABLE_COUNT},
	{"misses", "MISSES", TABLE_COUNT},
	{"unseen", "UNSEEN", TABLE_COUNT},
	{"failed_sessions", "FAILED", TABLE_COUNT},
	LAST,
};
static const struct table_column tenant_columns[] = {
	{"tenant", "TENANT", TABLE_TEXT},
	{"sessions", "SESSIONS", TABLE_COUNT},
	RATE,
	TIMES,
	{"requests", "REQUESTS", TABLE_COUNT},
	{"refused", "REFUSED", TABLE_COUNT},
	LAST,
};

/* What top lists: the answer to a request, whose objects differ in a member */
struct view {
	char key;
	const char *name, *member;
	const struct table_column *columns;
	unsigned ncolumns;
};
static const struct view views[] = {
	{'s', "sessions", "session", session_columns, COUNT(session_columns)},
	{'o', "offloads", "offload", offload_columns, COUNT(offload_columns)},
	{'t', "tenants", "tenant", tenant_columns, COUNT(tenant_columns)},
};

struct row {
	char name[64];
	uint64_t requests;
	struct json_object *service; /* service times, since ever */
	struct spark rates, p99;
};

struct top {
	const struct view *view;
	unsigned sort; /* column */
	bool ascending, paused;
	bool bars, utf8;  /* drawn at all, and with block elements */
	struct row *rows; /* of the round before */
	unsigned nrows;
	struct spark all, all_p99; /* of all rows: requests per second, and service times */
	uint64_t then;             /* us: time of that round; 0: there was none */
};

static struct top sorting; /* of compare(), for which qsort() has no argument */

static int compare(const void *a, const void *b)
{
	struct json_object *x, *y;
	const struct table_column *c = &sorting.view->columns[sorting.sort];
	int order;

	json_object_object_get_ex(*(struct json_object *const *)a, c->member, &x);
	json_object_object_get_ex(*(struct json_object *const *)b, c->member, &y);
	if (c->format == TABLE_TEXT) {
		const char *s = json_object_get_string(x), *t = json_object_get_string(y);

		order = strcmp(s ? s : "", t ? t : "");
		return sorting.ascending ? -order : order;
	}
	order = json_object_get_uint64(x) < json_object_get_uint64(y) ? 1 : -1;
	order = json_object_get_uint64(x) == json_object_get_uint64(y) ? 0 : order;
	return sorting.ascending ? -order : order;
}

static unsigned rate_column(const struct view *v)
{
	unsigned c = 0;

	while (strcmp(v->columns[c].member, "per_second") != 0)
		c++;
	return c;
}

static const struct row *row_before(const struct top *t, const char *name)
{
	for (unsigned i = 0; i < t->nrows; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

/* Requests of @o per second: since the round before, or else since the session began */
static uint64_t rate_of(const struct top *t, struct json_object *o, const struct row *before, uint64_t now)
{
	uint64_t requests = control_member(o, "requests"), us = control_member(o, "age_us");

	if (before && t->then) {
		requests = requests > before->requests ? requests - before->requests : 0;
		us = now - t->then;
	}
	return us ? (uint64_t)((double)requests * 1e6 / (double)us + 0.5) : 0;
}

static void free_rows(struct row *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		json_object_put(rows[i].service);
	free(rows);
}

static void add_bars(struct top *t, struct json_object *o, const char *member, const struct spark *s)
{
	char bars[SPARK_TEXT];

	spark_draw(s, ROW_SPARK, t->utf8, bars);
	if (t->bars)
		json_object_object_add(o, member, json_object_new_string(bars));
}

/* Service times of the requests that @o has had since the round before: into @o, into @row, and to @all */
static void add_times(struct json_object *o, struct row *row, const struct row *before, struct times *all)
{
	struct json_object *service = NULL;
	struct times t = {0};
	uint64_t p50, p99;

	json_object_object_get_ex(o, "service", &service);
	times_add(&t, service);
	times_add(all, service);
	if (before) {
		times_take_away(&t, before->service);
		times_take_away(all, before->service);
	}
	row->service = json_object_get(service);
	p50 = times_at(&t, 0.5);
	p99 = times_at(&t, 0.99);
	spark_add(&row->p99, p99);
	json_object_object_add(o, "p50_ns", json_object_new_uint64(p50));
	json_object_object_add(o, "p99_ns", json_object_new_uint64(p99));
}

/* Adds what is of the last round to each object of @now, and keeps what the next round needs */
static void add_rates(struct top *t, struct json_object *now)
{
	size_t n = json_object_array_length(now);
	struct row *rows = calloc(n + 1, sizeof(*rows));
	uint64_t time = clock_ns() / 1000, sum = 0;
	struct times all = {0};

	for (size_t i = 0; rows && i < n; i++) {
		struct json_object *o = json_object_array_get_idx(now, i), *name = NULL;
		const struct row *before;
		struct row *row = &rows[i];
		uint64_t rate;

		json_object_object_get_ex(o, t->view->member, &name);
		snprintf(row->name, sizeof(row->name), "%s", name ? json_object_get_string(name) : "");
		before = row_before(t, row->name);
		rate = rate_of(t, o, before, time);
		if (before) {
			row->rates = before->rates;
			row->p99 = before->p99;
		}
		row->requests = control_member(o, "requests");
		spark_add(&row->rates, rate);
		sum += rate;
		json_object_object_add(o, "per_second", json_object_new_uint64(rate));
		add_times(o, row, before, &all);
		add_bars(t, o, "last", &row->rates);
		add_bars(t, o, "last_p99", &row->p99);
	}
	spark_add(&t->all, sum);
	spark_add(&t->all_p99, times_at(&all, 0.99));
	free_rows(t->rows, t->nrows);
	t->rows = rows;
	t->nrows = rows ? (unsigned)n : 0;
	t->then = time;
}

static void choose(struct top *t, const struct view *v)
{
	free_rows(t->rows, t->nrows);
	*t = (struct top){.view = v, .sort = rate_column(v), .bars = t->bars, .utf8 = t->utf8};
}

/* False: the user wants to go */
static bool pressed(struct top *t, int key)
{
	for (unsigned i = 0; i < COUNT(views); i++)
		if (key == views[i].key && t->view != &views[i])
			choose(t, &views[i]);
	if (key == '>' || key == '<')
		t->sort = (t->sort + (key == '>' ? 1 : t->view->ncolumns - 1)) % t->view->ncolumns;
	if (key == 'r')
		t->ascending = !t->ascending;
	if (key == 'p')
		t->paused = !t->paused;
	return key != 'q';
}

/* Prints the first columns of the table, as many as fit into @width characters: a number that is cut reads as
 * another one. */
static void print_fitting(FILE *f, const struct view *v, struct json_object *now, unsigned width)
{
	unsigned n = v->ncolumns;

	while (n > 1 && table_width(now, v->columns, n) > width)
		n--;
	table_print_list(f, now, v->columns, n);
}

/* No longer than the screen is wide, and no more lines than it has; the rest of each line is cleared */
static void show_screen(const struct top *t, struct json_object *now)
{
	CLEANUP(cleanup_free) char *text = NULL;
	unsigned columns = screen_columns(), lines = screen_lines();
	char bars[SPARK_TEXT], p99_bars[SPARK_TEXT], p99[UNITS_TEXT];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	spark_draw(&t->all, SPARK_MAX, t->utf8, bars);
	spark_draw(&t->all_p99, SPARK_MAX, t->utf8, p99_bars);
	units_time(p99, t->all_p99.n ? t->all_p99.number[t->all_p99.n - 1] : 0);
	fprintf(f, "%s  %zu%s\nrequests/s  %-10llu  %s\np99         %-10s  %s\n", t->view->name,
		json_object_array_length(now), t->paused ? "  paused" : "",
		(unsigned long long)(t->all.n ? t->all.number[t->all.n - 1] : 0), bars, p99, p99_bars);
	fprintf(f, "by %s%s   c o t lists  < > column  r reverse  p pause  q quit\n",
		t->view->columns[t->sort].heading, t->ascending ? ", reversed" : "");
	print_fitting(f, t->view, now, columns);
	if (fclose(f) != 0)
		return;
	fputs("\033[H", stdout);
	for (char *line = text; *line && --lines; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n"), width = 0, end = 0;

		for (; end < len && width < columns; end++)
			width += ((unsigned char)line[end] & 0xc0) != 0x80; /* characters, not bytes */
		while (end < len && ((unsigned char)line[end] & 0xc0) == 0x80)
			end++;
		printf("%.*s\033[K\n", (int)end, line);
	}
	fputs("\033[J", stdout);
}

static int set_view(struct top *t, const struct ctl_options *o)
{
	const struct view *v = NULL;

	for (unsigned i = 0; i < COUNT(views); i++)
		if (!o->by || strcmp(o->by, views[i].name) == 0)
			v = v ? v : &views[i];
	if (!v)
		return TOOL_FAIL(EX_USAGE, "--by \"%s\": sessions, offloads or tenants", o->by);
	choose(t, v);
	for (unsigned c = 0; o->sort && c <= v->ncolumns; c++) {
		if (c == v->ncolumns)
			return TOOL_FAIL(EX_USAGE, "--sort \"%s\": there is no such column", o->sort);
		if (strcasecmp(o->sort, v->columns[c].heading) == 0) {
			t->sort = c;
			break;
		}
	}
	return 0;
}

/* Waits for the next round. False: the user wants to go */
static bool wait_for_round(struct top *t, unsigned seconds, bool screen)
{
	uint64_t until = clock_ms() + 1000ull * seconds, now;

	if (!screen) {
		sleep(seconds);
		return true;
	}
	while ((now = clock_ms()) < until || t->paused) {
		int key = screen_key(t->paused ? 200 : (int)(until - now));

		if (!pressed(t, key))
			return false;
		if (key)
			return true;
	}
	return true;
}

static int show(struct top *t, struct json_object *now, const struct ctl_options *o, bool screen)
{
	sorting = *t;
	json_object_array_sort(now, compare);
	if (o->json)
		puts(json_object_to_json_string_ext(now, JSON_C_TO_STRING_NOSLASHESCAPE));
	else if (screen)
		show_screen(t, now);
	else
		table_print_list(stdout, now, t->view->columns, t->view->ncolumns);
	return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

int ctl_top(struct control *l, const struct ctl_options *o, const char *arg)
{
	struct top t = {.bars = !o->json};
	int r = set_view(&t, o);
	bool screen = r == 0 && !o->json && screen_open();

	(void)arg;
	setlocale(LC_CTYPE, "");
	t.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	for (unsigned round = 1; r == 0; round++) {
		CLEANUP(json_object_putp)
		struct json_object *now = control_call(l, control_request(t.view->name));

		if (!now) {
			r = EXIT_FAILURE;
			break;
		}
		add_rates(&t, now);
		r = show(&t, now, o, screen);
		if (round == o->count || !wait_for_round(&t, o->interval, screen))
			break;
	}
	screen_close();
	free_rows(t.rows, t.nrows);
	return r;
}
