/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/records.h"

#include "util/cleanup.h"
#include "util/text.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct json_object *, json_object_put)
DEFINE_CLEANUP(struct json_tokener *, json_tokener_free)

/* WRITTEN: of a byte, as \u00ff. MEMBERS: of a line of JSON besides its strings, others that are ignored too
 */
enum { WRITTEN = 6, MEMBERS = 4096 };

void records_init(struct records_reader *r, FILE *file, enum records_format format, size_t most)
{
	*r = (struct records_reader){.file = file, .format = format, .most = most * WRITTEN + MEMBERS};
}

void records_deinit(struct records_reader *r)
{
	free(r->text);
	free(r->decoded);
}

/* Decode the escapes of TSV in place. False: a wrong escape. */
static bool records_unescape(char *text, size_t len, size_t *out_len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		static const char names[] = "tnr0\\", bytes[] = "\t\n\r\0\\";
		const char *name;

		if (text[i] != '\\') {
			text[n++] = text[i];
			continue;
		}
		if (++i == len)
			return false;
		if (text[i] == 'x') {
			if (len - i < 3 || text_hex_digit(text[i + 1]) < 0 || text_hex_digit(text[i + 2]) < 0)
				return false;
			text[n++] = (char)(text_hex_digit(text[i + 1]) << 4 | text_hex_digit(text[i + 2]));
			i += 2;
			continue;
		}
		name = text[i] ? strchr(names, text[i]) : NULL;
		if (!name)
			return false;
		text[n++] = bytes[name - names];
	}
	*out_len = n;
	return true;
}

static int wrong(struct records_reader *r, const char *what)
{
	snprintf(r->why, sizeof(r->why), "%s", what);
	return -EBADMSG;
}

/* Bytes of the mark that a text in UTF-8 or UTF-16 may begin with */
static size_t mark_len(const uint8_t *p, size_t len)
{
	if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		return 3;
	return len >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0) ? 2 : 0;
}

static int wrong_mark(struct records_reader *r, size_t len)
{
	if (len == 2)
		return wrong(r,
			"the file begins with a byte order mark of UTF-16; convert it to UTF-8, as by "
			"iconv -f UTF-16 -t UTF-8");
	return wrong(r, "the file begins with a byte order mark (ef bb bf); remove it, as by "
			"sed '1s/^\\xef\\xbb\\xbf//'; in a key it is written \\xef\\xbb\\xbf");
}

static int next_tsv(struct records_reader *r, size_t len, struct record_text *rec)
{
	char *tab = memchr(r->text, '\t', len);
	size_t key_len = tab ? (size_t)(tab - r->text) : len;

	if (r->text[len - 1] == '\r')
		return wrong(r,
			"the line ends with a carriage return; remove it, as by tr -d '\\r'; in a key or a "
			"value it is written \\r");
	*rec = (struct record_text){.key = (uint8_t *)r->text};
	if (!records_unescape(r->text, key_len, &rec->key_len))
		return wrong(r, "unknown escape in the key: \\t \\n \\r \\0 \\\\ and \\xHH are known");
	if (!tab)
		return 0;
	if (memchr(tab + 1, '\t', len - key_len - 1))
		return wrong(r, "more than one tab: a tab in the value is written \\t");
	rec->val = (uint8_t *)tab + 1;
	if (!records_unescape(tab + 1, len - key_len - 1, &rec->val_len))
		return wrong(r, "unknown escape in the value: \\t \\n \\r \\0 \\\\ and \\xHH are known");
	return 0;
}

/* 4 hexadecimal digits of \uHHHH at @p, or -1 */
static int unit_at(const char *p)
{
	int unit = 0;

	if (p[0] != '\\' || p[1] != 'u')
		return -1;
	for (unsigned i = 2; i < 6 && unit >= 0; i++)
		unit = text_hex_digit(p[i]) < 0 ? -1 : unit << 4 | text_hex_digit(p[i]);
	return unit;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* What json-c 0.16 takes in the string at *@text, behind whose end *@text is then: control characters, and
 * half a surrogate pair, which it makes U+FFFD. A zero ends the text */
static int check_string(struct records_reader *r, const char **text)
{
	const char *p = *text + 1;

	for (; *p && *p != '"'; p++) {
		int unit;

		if ((unsigned char)*p < 0x20)
			return wrong(
				r, "a control character in a string; JSON has it as \\t, \\n or \\u00HH");
		if (*p != '\\')
			continue;
		unit = unit_at(p);
		if (is_low(unit) || (is_high(unit) && !is_low(unit_at(p + 6)))) {
			snprintf(r->why, sizeof(r->why),
				"%.6s is half a surrogate pair, and no character; bytes that are not UTF-8 "
				"are in \"key_hex\" or \"value_hex\"",
				p);
			return -EBADMSG;
		}
		p += is_high(unit) ? 11 : p[1] != '\0';
	}
	*text = *p ? p + 1 : p;
	return 0;
}

/* *@members: of the outermost object, each as often as it is there; json-c keeps the last of a name */
static int check_strings(struct records_reader *r, int *members)
{
	const char *p = r->text;
	int ret = 0, depth = 0;

	*members = 0;
	while (*p && ret == 0) {
		if (*p == '"') {
			ret = check_string(r, &p);
			continue;
		}
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		*members += *p == ':' && depth == 1;
		p++;
	}
	return ret;
}

/* Append the bytes of member `name` or `name`_hex to r->decoded at *used. 0, 1: there is none, or -errno. */
static int json_bytes(
	struct records_reader *r, struct json_object *o, const char *name, size_t *used, size_t *len)
{
	struct json_object *text = NULL, *digits = NULL;
	char hex_name[16];
	const char *s;

	snprintf(hex_name, sizeof(hex_name), "%s_hex", name);
	json_object_object_get_ex(o, name, &text);
	json_object_object_get_ex(o, hex_name, &digits);
	if (text && digits)
		return wrong(r, "a member is given both as text and as hex");
	if (!text && !digits)
		return 1;
	if (!json_object_is_type(text ? text : digits, json_type_string)) {
		snprintf(r->why, sizeof(r->why), "\"%s\" must be a string", text ? name : hex_name);
		return -EBADMSG;
	}
	s = json_object_get_string(text ? text : digits);
	*len = (size_t)json_object_get_string_len(text ? text : digits);
	if (text) {
		memcpy(r->decoded + *used, s, *len);
		*used += *len;
		return 0;
	}
	if (*len % 2)
		return wrong(r, "an odd number of hex digits");
	*len /= 2;
	for (size_t i = 0; i < *len; i++) {
		if (text_hex_digit(s[2 * i]) < 0 || text_hex_digit(s[2 * i + 1]) < 0)
			return wrong(r, "not a hex digit");
		r->decoded[(*used)++] =
			(uint8_t)(text_hex_digit(s[2 * i]) << 4 | text_hex_digit(s[2 * i + 1]));
	}
	return 0;
}

static int next_json(struct records_reader *r, size_t len, struct record_text *rec)
{
	CLEANUP(json_tokener_freep) struct json_tokener *tok = json_tokener_new();
	CLEANUP(json_object_putp) struct json_object *o = NULL;
	enum json_tokener_error error;
	size_t used = 0, key_len;
	int members, ret = check_strings(r, &members);

	if (ret < 0)
		return ret;
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, r->text, (int)len + 1);
	error = json_tokener_get_error(tok);
	if (error == json_tokener_success && json_tokener_get_parse_end(tok) < len)
		error = json_tokener_error_parse_unexpected;
	if (error != json_tokener_success)
		return wrong(r, json_tokener_error_desc(error));
	if (!json_object_is_type(o, json_type_object))
		return wrong(r, "not a JSON object");
	if (json_object_object_length(o) != members)
		return wrong(r, "a member is there twice");
	/* A decoded member is not longer than the line. */
	if (len > r->decoded_room) {
		uint8_t *p = realloc(r->decoded, len * 2);

		if (!p)
			return -ENOMEM;
		r->decoded = p;
		r->decoded_room = len * 2;
	}
	*rec = (struct record_text){0};
	ret = json_bytes(r, o, "key", &used, &rec->key_len);
	if (ret)
		return ret < 0 ? ret : wrong(r, "no \"key\"");
	key_len = used;
	ret = json_bytes(r, o, "value", &used, &rec->val_len);
	if (ret < 0)
		return ret;
	rec->key = r->decoded;
	rec->val = ret == 0 ? r->decoded + key_len : NULL;
	return 0;
}

static int grow(struct records_reader *r)
{
	size_t room = r->text_room ? 2 * r->text_room : 256;
	char *text = realloc(r->text, room);

	if (!text)
		return -ENOMEM;
	r->text = text;
	r->text_room = room;
	return 0;
}

/* Reads a line of *@len bytes to r->text, without its line feed, and with a zero behind it */
static int next_line(struct records_reader *r, size_t *len)
{
	size_t n = 0;
	int c;

	errno = 0;
	while ((c = getc_unlocked(r->file)) != EOF && c != '\n' && n < r->most) {
		if (n + 1 >= r->text_room && grow(r) < 0)
			return -ENOMEM;
		r->text[n++] = (char)c;
	}
	if (c == EOF && ferror(r->file))
		return errno ? -errno : -EIO;
	if (c == EOF && !n)
		return RECORDS_END;
	r->line++;
	r->bytes += n + (c != EOF);
	if (c != EOF && c != '\n') {
		snprintf(r->why, sizeof(r->why), "the line has more than %zu bytes, longer than any record",
			r->most);
		return -EBADMSG;
	}
	*len = n;
	if (n)
		r->text[n] = '\0';
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

int records_next(struct records_reader *r, struct record_text *rec)
{
	size_t len, mark;
	int ret;

	while ((ret = next_line(r, &len)) == 0) {
		mark = r->line == 1 ? mark_len((const uint8_t *)r->text, len) : 0;
		if (mark)
			return wrong_mark(r, mark);
		while (r->format == RECORDS_JSON && len && is_blank(r->text[len - 1]))
			r->text[--len] = '\0';
		if (len)
			return r->format == RECORDS_JSON ? next_json(r, len, rec) : next_tsv(r, len, rec);
	}
	return ret;
}

static void write_escaped(FILE *f, const uint8_t *p, size_t len)
{
	size_t control;

	for (size_t i = 0; i < len; i++) {
		switch (p[i]) {
		case '\t':
			fputs("\\t", f);
			break;
		case '\n':
			fputs("\\n", f);
			break;
		case '\r':
			fputs("\\r", f);
			break;
		case '\0':
			fputs("\\0", f);
			break;
		case '\\':
			fputs("\\\\", f);
			break;
		default:
			control = text_control(p + i, len - i);
			if (control == 0)
				putc(p[i], f);
			for (; control > 0; control--, i += control > 0)
				fprintf(f, "\\x%02x", p[i]);
		}
	}
}

/* UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool is_utf8(const uint8_t *p, size_t len)
{
	size_t at = 0, bytes = 1;

	for (; at < len && bytes; at += bytes)
		bytes = text_utf8(p + at, len - at);
	return bytes != 0;
}

bool records_is_text(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text_control(p + i, len - i))
			return false;
	return is_utf8(p, len);
}

void records_write_member(FILE *f, const char *name, const uint8_t *p, size_t len)
{
	if (!is_utf8(p, len)) {
		fprintf(f, "\"%s_hex\": \"", name);
		for (size_t i = 0; i < len; i++)
			fprintf(f, "%02x", p[i]);
		putc('"', f);
		return;
	}
	fprintf(f, "\"%s\": \"", name);
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '"' || p[i] == '\\')
			fprintf(f, "\\%c", p[i]);
		else if (p[i] == '\n')
			fputs("\\n", f);
		else if (p[i] == '\t')
			fputs("\\t", f);
		else if (text_control(p + i, len - i) == 2)
			fprintf(f, "\\u%04x", p[++i]);
		else if (text_control(p + i, len - i))
			fprintf(f, "\\u%04x", p[i]);
		else
			putc(p[i], f);
	}
	putc('"', f);
}

void records_write(FILE *f, enum records_format format, const struct record_text *rec)
{
	size_t mark;

	if (format == RECORDS_JSON) {
		putc('{', f);
		records_write_member(f, "key", rec->key, rec->key_len);
		if (rec->val) {
			fputs(", ", f);
			records_write_member(f, "value", rec->val, rec->val_len);
		}
		fputs("}\n", f);
		return;
	}
	mark = mark_len(rec->key, rec->key_len);
	for (size_t i = 0; i < mark; i++)
		fprintf(f, "\\x%02x", rec->key[i]);
	write_escaped(f, rec->key + mark, rec->key_len - mark);
	if (rec->val) {
		putc('\t', f);
		write_escaped(f, rec->val, rec->val_len);
	}
	putc('\n', f);
}
