/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn.h"

#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARG_ROOM = 256, NAMES_MAX = 64 };

struct call {
	struct reddn *c;
	const char *offload;
	struct reddn_info info;
	bool described;
	struct reddn_arg *args;
	uint8_t *room; /* ARG_ROOM bytes for each argument */
	bool *given;
};

static void call_deinit(struct call *k)
{
	free(k->args);
	free(k->room);
	free(k->given);
}

const char *call_error(struct reddn *c, int error)
{
	reddn_end_reason(c);
	return *reddn_errmsg(c) ? reddn_errmsg(c) : strerror(-error);
}

/* ---- arguments -------------------------------------------------------------------------------- */

/* "key (argument 1)", or "argument 1" */
static const char *title(const struct call *k, unsigned i, char text[100])
{
	const char *name = reddn_arg_name(k->c, i);

	snprintf(text, 100, name ? "argument %u, %s" : "argument %u", i + 1, name);
	return text;
}

static int set_argument(struct call *k, unsigned i, const char *text)
{
	uint8_t *room = k->room + (size_t)ARG_ROOM * i;
	enum reddn_arg_kind kind;
	char what[100];
	uint32_t bytes;

	if (reddn_get_arg(k->c, i, &kind, &bytes) < 0)
		return tool_complain("%s has no argument %u", k->offload, i + 1);
	if (k->given[i])
		return tool_complain("%s is given twice", title(k, i, what));
	k->given[i] = true;
	if (kind == REDDN_BYTES) {
		k->args[i].bytes = room;
		if (tool_bytes(text, room, bytes))
			return 0;
		return tool_complain("%s: \"%s\" is no text of at most %u bytes, nor hex:00ff..",
			title(k, i, what), text, bytes);
	}
	if (number_parse(text, 0, bytes < 8 ? (1ull << 8 * bytes) - 1 : UINT64_MAX, &k->args[i].number) == 0)
		return 0;
	return tool_complain("%s: \"%s\" is no number of at most %u bytes", title(k, i, what), text, bytes);
}

/* Bytes of NAME of "NAME=VALUE", 0 if @text is none */
static size_t name_length(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.[]");

	return text[n] == '=' ? n : 0;
}

static int set_named(struct call *k, const char *text)
{
	const char *names[NAMES_MAX], *nearest;
	size_t len = name_length(text);
	char name[100];
	unsigned n = 0;

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	for (; n < k->info.nargs && n < NAMES_MAX; n++) {
		names[n] = reddn_arg_name(k->c, n);
		if (strcmp(names[n], name) == 0)
			return set_argument(k, n, text + len + 1);
	}
	nearest = text_nearest(name, names, n);
	return tool_complain("%s has no argument \"%s\"%s%s%s", k->offload, name,
		nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

/* "key (number, 6 bytes), text (12 bytes)": what the program takes */
static const char *takes(const struct call *k, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (unsigned i = 0; i < k->info.nargs && len < size; i++) {
		const char *name = reddn_arg_name(k->c, i);
		enum reddn_arg_kind kind;
		uint32_t bytes;

		reddn_get_arg(k->c, i, &kind, &bytes);
		len += (size_t)snprintf(text + len, size - len, "%s%s (%s%u bytes)", i ? ", " : ": ",
			name ? name : "?",
			kind == REDDN_NUMBER   ? "number, "
			: kind == REDDN_OFFSET ? "offset, "
					       : "",
			bytes);
	}
	return text;
}

static int set_arguments(struct call *k, char **texts)
{
	unsigned n = 0, named = 0, missing = 0;
	char list[600];
	int r = 0;

	for (; texts[n]; n++)
		named += k->described && name_length(texts[n]);
	if (named && named < n)
		return tool_complain("arguments are given by name or by place, not both: \"%s\"", *texts);
	if (!k->info.nargs && k->info.request_len)
		return tool_complain(
			"%s takes a request of %u bytes with more arguments, or longer ones, than a server "
			"describes; its applications compose that themselves (reddn_submit())",
			k->offload, k->info.request_len);
	if (n != k->info.nargs && !named)
		return tool_complain("%s takes %u arguments, not %u%s", k->offload, k->info.nargs, n,
			takes(k, list, sizeof(list)));
	for (unsigned i = 0; i < n && r == 0; i++)
		r = named ? set_named(k, texts[i]) : set_argument(k, i, texts[i]);
	while (r == 0 && missing < k->info.nargs && k->given[missing])
		missing++;
	if (r == 0 && missing < k->info.nargs)
		r = tool_complain("%s: argument \"%s\" is missing; it takes %u%s", k->offload,
			reddn_arg_name(k->c, missing), k->info.nargs, takes(k, list, sizeof(list)));
	return r;
}

/* ---- the reply -------------------------------------------------------------------------------- */

static size_t field_length(const struct reddn_reply_field *f, const uint8_t *reply)
{
	size_t len = f->bytes;

	while (f->kind == REDDN_REPLY_UP_TO && len && !reply[f->offset + len - 1])
		len--;
	return len;
}

static void print_bytes(const uint8_t *p, size_t len)
{
	size_t text = len;

	while (text && !p[text - 1])
		text--;
	if (records_is_text(p, text)) {
		fwrite(p, 1, text, stdout);
		return;
	}
	fputs("hex:", stdout);
	for (size_t i = 0; i < len; i++)
		printf("%02x", p[i]);
}

static bool is_number(const struct reddn_reply_field *f)
{
	return f->kind == REDDN_REPLY_BE || f->kind == REDDN_REPLY_LE;
}

static void print_fields(const struct call *k, const uint8_t *reply)
{
	struct reddn_reply_field f;
	int width = 0;

	for (unsigned i = 0; reddn_get_reply_field(k->c, i, &f) == 0; i++)
		width = (int)strlen(f.name) > width ? (int)strlen(f.name) : width;
	for (unsigned i = 0; reddn_get_reply_field(k->c, i, &f) == 0; i++) {
		printf("%-*s  ", width, f.name);
		if (is_number(&f))
			printf("%" PRIu64, reddn_reply_number(&f, reply));
		else
			print_bytes(reply + f.offset, field_length(&f, reply));
		putchar('\n');
	}
}

static void print_hex(const uint8_t *reply, size_t len, bool lines)
{
	for (size_t i = 0; i < len; i++)
		printf("%02x%s", reply[i], !lines ? "" : i % 16 == 15 || i + 1 == len ? "\n" : " ");
}

static void print_json(const struct call *k, const uint8_t *reply)
{
	struct reddn_reply_field f;

	fputs("{\"reply\": \"", stdout);
	print_hex(reply, k->info.reply_max, false);
	fputs("\"", stdout);
	for (unsigned i = 0; reddn_get_reply_field(k->c, i, &f) == 0; i++) {
		fputs(i ? ", " : ", \"fields\": {", stdout);
		if (is_number(&f))
			printf("\"%s\": %" PRIu64, f.name, reddn_reply_number(&f, reply));
		else
			records_write_member(stdout, f.name, reply + f.offset, field_length(&f, reply));
	}
	puts(reddn_get_reply_field(k->c, 0, &f) == 0 ? "}}" : "}");
}

static void print_reply(const struct call *k, enum call_output output, const uint8_t *reply)
{
	struct reddn_reply_field f;

	if (output == CALL_RAW)
		fwrite(reply, 1, k->info.reply_max, stdout);
	else if (output == CALL_JSON)
		print_json(k, reply);
	else if (output == CALL_FIELDS && reddn_get_reply_field(k->c, 0, &f) == 0)
		print_fields(k, reply);
	else
		print_hex(reply, k->info.reply_max, true);
}

int call_run(struct reddn *c, const char *offload, enum call_output output, char **texts)
{
	CLEANUP(call_deinit) struct call k = {.c = c, .offload = offload};
	CLEANUP(cleanup_free) uint8_t *reply = NULL;
	int r;

	reddn_get_info(c, &k.info);
	/* Without names, an argument has its place, and a reply is bytes */
	k.described = reddn_describe(c) == 0;
	k.args = calloc(k.info.nargs + 1ul, sizeof(*k.args));
	k.room = calloc(k.info.nargs + 1ul, ARG_ROOM);
	k.given = calloc(k.info.nargs + 1ul, sizeof(*k.given));
	reply = calloc(1, k.info.reply_max + 1ul);
	if (!k.args || !k.room || !k.given || !reply)
		return tool_complain("%s", strerror(ENOMEM));
	r = set_arguments(&k, texts);
	if (r)
		return r;
	r = reddn_call(c, k.args, k.info.nargs, reply, k.info.reply_max);
	if (r < 0)
		return tool_complain("%s", call_error(c, r));
	print_reply(&k, output, reply);
	return 0;
}
