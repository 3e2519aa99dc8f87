/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-probe/report.h"

#include "reddnd/rnic/device.h"
#include "util/json.h"

#include <inttypes.h>
#include <sys/utsname.h>

enum { WIDTH = 100 };

static const char *const verdicts[] = {[PROBE_NOT_TRIED] = "could not be tried",
	[PROBE_HOLDS] = "holds",
	[PROBE_DOES_NOT] = "does not hold"};

/* ---- for people ------------------------------------------------------------------------- */

/* Breaks @text at blanks, behind a first line that begins with @label */
static void wrap(FILE *f, const char *label, const char *text)
{
	unsigned column = (unsigned)fprintf(f, "      %-9s", label), margin = column;

	while (*text) {
		unsigned n = 0;

		while (text[n] && text[n] != ' ')
			n++;
		if (column > margin && column + 1 + n > WIDTH) {
			fprintf(f, "\n%*s", (int)margin, "");
			column = margin;
		}
		column += (unsigned)fprintf(f, "%s%.*s", column > margin ? " " : "", (int)n, text);
		text += n;
		while (*text == ' ')
			text++;
	}
	fputc('\n', f);
}

static void explain(const struct probe_check *check, FILE *f)
{
	wrap(f, "assumed:", check->assumes);
	wrap(f, "else:", check->breaks);
	wrap(f, "source:", check->source);
}

void report_list(const struct probe_check *const *checks, unsigned n, FILE *f)
{
	for (unsigned i = 0; i < n; i++) {
		fprintf(f, "%3u  %s%s\n", checks[i]->number, checks[i]->name,
			checks[i]->flags & PROBE_LONG ? " (takes long: with --thorough)" : "");
		explain(checks[i], f);
	}
}

static void print_device(const struct rnic_device *dev, FILE *f)
{
	struct rnic_identity id;
	char caps[512];

	if (!dev || rnic_identity_read(dev, &id) < 0)
		return;
	fprintf(f, "%s: %s (MT%u), firmware %s, board %s, port %s\n", rnic_device_name(dev), id.model,
		id.part, id.firmware, *id.board ? id.board : "unknown", id.state);
	rnic_caps_describe(rnic_device_caps(dev), caps, sizeof(caps));
	fprintf(f, "%s\n\n", caps);
}

static void print_row(const struct probe_check *check, const struct probe_result *r, FILE *f)
{
	fprintf(f, "%3u  %-20s %-18s ", check->number, check->name, verdicts[r->verdict]);
	if (check->flags & PROBE_RACE && r->tried)
		fprintf(f, "%9" PRIu64 " %9" PRIu64 "  ", r->tried, r->showed);
	else
		fprintf(f, "%9s %9s  ", "", "");
	fprintf(f, "%s\n", r->verdict == PROBE_HOLDS ? r->measured : r->words);
}

void report_text(const struct report *report, FILE *f)
{
	unsigned of[3] = {0};

	print_device(report->dev, f);
	fprintf(f, "%3s  %-20s %-18s %9s %9s  %s\n", "", "CHECK", "VERDICT", "TRIED", "TELLING", "SEEN");
	for (unsigned i = 0; i < report->n; i++) {
		print_row(report->checks[i], &report->results[i], f);
		of[report->results[i].verdict]++;
	}
	fprintf(f, "\n%u hold, %u do not, %u could not be tried\n", of[PROBE_HOLDS], of[PROBE_DOES_NOT],
		of[PROBE_NOT_TRIED]);
	for (unsigned i = 0; i < report->n; i++)
		if (report->results[i].verdict == PROBE_DOES_NOT) {
			fprintf(f, "\n%3u  %s does not hold: %s\n", report->checks[i]->number,
				report->checks[i]->name, report->results[i].words);
			explain(report->checks[i], f);
		}
}

/* ---- for programs ----------------------------------------------------------------------- */

static void put(struct json_object *o, FILE *f)
{
	fprintf(f, "%s\n",
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void add_flag(struct json_object *o, const char *name, bool value)
{
	json_object_object_add(o, name, json_object_new_boolean(value));
}

static struct json_object *check_json(const struct probe_check *check)
{
	struct json_object *o = json_object_new_object();

	json_add_count(o, "number", check->number);
	json_add_text(o, "name", check->name);
	json_add_text(o, "assumes", check->assumes);
	json_add_text(o, "else", check->breaks);
	json_add_text(o, "source", check->source);
	return o;
}

void report_list_json(const struct probe_check *const *checks, unsigned n, FILE *f)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < n; i++)
		json_object_array_add(list, check_json(checks[i]));
	put(list, f);
}

static struct json_object *result_json(const struct probe_check *check, const struct probe_result *r)
{
	static const char *const names[] = {
		[PROBE_NOT_TRIED] = "not tried", [PROBE_HOLDS] = "holds", [PROBE_DOES_NOT] = "does not"};
	struct json_object *o = check_json(check);

	json_add_text(o, "verdict", names[r->verdict]);
	json_add_text(o, "words", r->words);
	json_add_text(o, "measured", r->measured);
	json_add_count(o, "tried", r->tried);
	json_add_count(o, "telling", r->showed);
	json_object_object_add(o, "seconds", json_object_new_double(r->seconds));
	return o;
}

static struct json_object *caps_json(const struct rnic_caps *c)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "link", c->infiniband ? "InfiniBand" : "Ethernet");
	add_flag(o, "cross_channel", c->cross_channel);
	add_flag(o, "overrun_ignore", c->overrun_ignore);
	add_flag(o, "force_loopback", c->force_loopback);
	add_flag(o, "ts_formats", c->ts_formats);
	add_flag(o, "index_ignore", c->index_ignore);
	add_flag(o, "host_atomics", c->host_atomics);
	json_add_count(o, "atomic_ops", c->atomic_ops);
	json_add_count(o, "atomic_size", c->atomic_size);
	json_add_count(o, "log_max_qp_wqebbs", c->log_max_qp_wqebbs);
	json_add_count(o, "log_max_cqes", c->log_max_cqes);
	json_add_count(o, "max_sq_wqe", c->max_sq_wqe);
	json_add_count(o, "max_rq_wqe", c->max_rq_wqe);
	json_add_count(o, "log_rd_atomic", c->log_rd_atomic);
	json_add_count(o, "log_rd_dest", c->log_rd_dest);
	return o;
}

static struct json_object *device_json(const struct rnic_device *dev)
{
	struct rnic_identity id;
	struct json_object *o;

	if (!dev || rnic_identity_read(dev, &id) < 0)
		return NULL;
	o = json_object_new_object();
	json_add_text(o, "name", rnic_device_name(dev));
	json_add_text(o, "model", id.model);
	json_add_count(o, "vendor", id.vendor);
	json_add_count(o, "part", id.part);
	json_add_text(o, "firmware", id.firmware);
	json_add_text(o, "board_id", id.board);
	json_add_text(o, "port_state", id.state);
	json_add_count(o, "mtu", id.mtu);
	json_add_count(o, "gids", id.gids);
	json_object_object_add(o, "caps", caps_json(rnic_device_caps(dev)));
	return o;
}

void report_json(const struct report *report, FILE *f)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct utsname system;

	json_add_text(o, "version", REDDN_VERSION);
	if (uname(&system) == 0) {
		json_add_text(o, "kernel", system.release);
		json_add_text(o, "machine", system.machine);
	}
	json_object_object_add(o, "device", device_json(report->dev));
	add_flag(o, "thorough", report->thorough);
	for (unsigned i = 0; i < report->n; i++)
		json_object_array_add(list, result_json(report->checks[i], &report->results[i]));
	json_object_object_add(o, "checks", list);
	put(o, f);
}
