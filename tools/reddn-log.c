/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn.h"

#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* WAIT_MS: so long is the output of nothing new buffered at most */
enum { VALUE_MAX = 256, WAIT_MS = 100 };

static int log_is_none(const char *program)
{
	return tool_complain("it takes the address of one host, and an offload of %s.rdn", program);
}

static int append_failed(struct reddn *c, int error, size_t len)
{
	enum reddn_arg_kind kind;
	uint32_t room = 0;

	switch (error) {
	case -EINVAL:
		return log_is_none("log-append");
	case -EMSGSIZE:
		reddn_get_arg(c, 1, &kind, &room);
		return tool_complain(
			"an entry of the log has room for %u bytes, and the value has %zu", room, len);
	case -EAGAIN:
		return tool_complain("nothing was appended: the entries of a lap ago are not complete");
	default:
		return tool_complain("it is not known whether it was appended: %s", call_error(c, error));
	}
}

static int append_one(struct reddn *c, bool json, const char *value, size_t len)
{
	uint64_t number;
	int r = reddn_append(c, value, len, &number);

	if (r < 0)
		return append_failed(c, r, len);
	printf(json ? "{\"number\": %" PRIu64 "}\n" : "%" PRIu64 "\n", number);
	return fflush(stdout) == 0 ? 0 : 2;
}

int log_append(struct reddn *c, bool json, char **texts)
{
	CLEANUP(cleanup_free) char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int r = 0;

	if (*texts && strcmp(*texts, "-") != 0)
		return append_one(c, json, *texts, strlen(*texts));
	while (r == 0 && (len = getline(&line, &room, stdin)) >= 0)
		r = append_one(c, json, line, (size_t)len - (len && line[len - 1] == '\n'));
	return r;
}

static void print_entry(const struct log_output *o, uint64_t number, const uint8_t *value, size_t len)
{
	char text[24];
	const struct record_text rec = {.key = (const uint8_t *)text,
		.key_len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, number),
		.val = value,
		.val_len = len};

	if (o->json) {
		printf("{\"number\": %s, ", text);
		records_write_member(stdout, "value", value, len);
		puts("}");
	} else if (o->escape) {
		records_write(stdout, RECORDS_TSV, &rec);
	} else {
		fwrite(value, 1, len, stdout);
		putchar('\n');
	}
}

/* What was missing from entry @before->next on: 1 if anything was */
static int print_missing(
	const struct log_output *o, const struct reddn_log *before, const struct reddn_log *l)
{
	const uint64_t lost = l->lost - before->lost, skipped = l->skipped - before->skipped;

	if (!lost && !skipped)
		return 0;
	if (o->json)
		printf("{\"from\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"skipped\": %" PRIu64 "}\n",
			before->next, lost, skipped);
	fflush(stdout);
	if (lost)
		fprintf(stderr,
			"reddn: entries overwritten before they were read, from %" PRIu64 " on: %" PRIu64
			"\n",
			before->next, lost);
	if (skipped)
		fprintf(stderr, "reddn: numbers without an entry, from %" PRIu64 " on: %" PRIu64 "\n",
			before->next, skipped);
	return 1;
}

static int log_failed(struct reddn *c, int error)
{
	if (error == -EINVAL)
		return log_is_none("log-read");
	if (error == -ESTALE && !*reddn_errmsg(c))
		return tool_complain("the log has fewer entries than that: is it another one now?");
	return tool_complain("%s", call_error(c, error));
}

int log_print(struct reddn *c, struct reddn_log *l, const struct log_output *o)
{
	uint8_t value[VALUE_MAX];
	int ret = 0, r;
	size_t len;

	while (!ferror(stdout)) {
		const struct reddn_log before = *l;

		r = reddn_log_next(c, l, value, sizeof(value), &len, o->follow || l->since ? WAIT_MS : 0);
		ret |= print_missing(o, &before, l);
		if (r == 0)
			print_entry(o, l->next - 1, value, len);
		else if (r == -EBADMSG)
			ret = tool_complain(
				"entry %" PRIu64 " has a length that it cannot have", l->next - 1);
		else if (r == -EAGAIN && !o->follow && !l->since)
			break;
		else if (r == -EAGAIN)
			fflush(stdout);
		else if (!o->lasting || (r != -EINPROGRESS && r != -ETIMEDOUT))
			return log_failed(c, r);
	}
	return ret;
}
