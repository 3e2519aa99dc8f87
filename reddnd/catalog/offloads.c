/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/wire.h"
#include "reddnd/catalog/bindings.h"
#include "reddnd/catalog/entries.h"
#include "reddnd/catalog/programs.h"
#include "reddnd/program/program.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOOP_BUDGET_MAX (UINT64_C(1) << 40)

enum { DEPTH_DEFAULT = 64, INSTANCES_MIN = 4, INSTANCES_MAX = 32768, BUDGET_MIN_US = 10000 };

static void parse_instances(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;
	long long n = settings_integer(s);

	if (n == 0 || (n >= INSTANCES_MIN && n <= INSTANCES_MAX && (n & (n - 1)) == 0))
		o->instances = (uint32_t)n;
	else
		settings_wrong_value(l, s, "0 or a power of two from 4 to 32768");
}

static void parse_policy(struct settings *l, const config_setting_t *s, struct verdict_policy *policy)
{
	if (config_setting_type(s) != CONFIG_TYPE_STRING ||
		verdict_policy_parse(config_setting_get_string(s), policy) < 0)
		settings_wrong(l, s,
			"\"%s\" must be \"log\", \"throttle:RATE:TIME\", \"terminate\" or \"ban:TIME\", as "
			"in \"throttle:100:60s\" or \"ban:60s\"",
			config_setting_name(s));
}

const char entries_engines[] = "\"nic\", \"cpu\" or \"auto\"";

void entries_parse_engine(struct settings *l, const config_setting_t *s, uint8_t *engine)
{
	static const char *const names[] = {
		[CATALOG_NIC] = "nic", [CATALOG_CPU] = "cpu", [CATALOG_AUTO] = "auto"};
	const char *name = config_setting_get_string(s);

	for (uint8_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0) {
			*engine = i;
			return;
		}
	settings_wrong_value(l, s, entries_engines);
}

static void parse_engine(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	entries_parse_engine(l, s, &o->engine);
}

/* One for all kinds of verdicts, or a group of some kinds */
static void parse_on_error(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		parse_policy(l, s, &o->on_error[0]);
		for (unsigned k = 1; k < VERDICT_KINDS; k++)
			o->on_error[k] = o->on_error[0];
		return;
	}
	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *p = config_setting_get_elem(s, (unsigned)i);
		enum verdict_kind kind = verdict_kind_named(config_setting_name(p));

		if (kind == VERDICT_KINDS)
			settings_wrong(l, p,
				"there is no verdict \"%s\"; there are step, queue, request, rnr, "
				"unreachable, time and loop",
				config_setting_name(p));
		else
			parse_policy(l, p, &o->on_error[kind]);
	}
}

enum { LOOP_RATE_MIN = 1000, LOOP_RATE_DEFAULT = 1000000, LOOP_RATE_MAX = 100000000 };

#define OFFLOAD(member) SETTINGS_FIELD(struct catalog_offload, member)

static const struct settings_rule offload_rules[] = {
	{"name", SETTINGS_A_NAME, SETTINGS_NAME, OFFLOAD(name), .required = true},
	{"program", "the name of a program", SETTINGS_PARSE(SETTINGS_STRING, programs_parse),
		.required = true},
	{"params", "a group: { probes = 2; }", SETTINGS_PARSE(SETTINGS_GROUP, programs_parse_params)},
	{"region", "the name of a region", SETTINGS_PARSE(SETTINGS_STRING, bindings_parse_region)},
	{"regions", "a group: { nodes = \"users\"; }", SETTINGS_PARSE(SETTINGS_GROUP, bindings_parse)},
	{"mode", "\"unrolled\" or \"recycled\"", SETTINGS_CHOICE, OFFLOAD(recycled),
		.words = {"unrolled", "recycled"}},
	{"engine", entries_engines, SETTINGS_PARSE(SETTINGS_STRING, parse_engine)},
	{"depth_max", "a number of requests", SETTINGS_NUMBER, OFFLOAD(depth_max), 1, REDDN_WIRE_MAX_DEPTH},
	{"instances", "a power of two, or 0", SETTINGS_PARSE(SETTINGS_INT, parse_instances)},
	{"wqe_budget", "a number of WQEs", SETTINGS_NUMBER, OFFLOAD(wqe_budget), 1, UINT16_MAX},
	{"time_budget", "a time of at least 10 ms, as in \"250ms\" or \"2s\"", SETTINGS_TIME,
		OFFLOAD(time_budget), BUDGET_MIN_US},
	{"loop_budget", "a number of iterations from 1 to \"1024G\", as in 10000 or \"1M\"", SETTINGS_SIZE,
		OFFLOAD(loop_budget), 1, LOOP_BUDGET_MAX},
	{"loop_rate", "a number of WQEs per second", SETTINGS_NUMBER, OFFLOAD(loop_rate), LOOP_RATE_MIN,
		LOOP_RATE_MAX},
	{"on_error", "\"terminate\", or a group: { time = \"log\"; }",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_GROUP, parse_on_error)},
};

static void check_loop(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p)
{
	if (p->loop && !o->loop_budget && !o->time_budget)
		settings_wrong(l, group,
			"offload \"%s\": its program has a loop without a bound; set \"time_budget\" or "
			"\"loop_budget\", after which the daemon ends it",
			o->name);
	if (!p->loop && o->loop_budget)
		settings_wrong(l, group,
			"offload \"%s\": all loops of its program have bounds; \"loop_budget\" is for others",
			o->name);
}

/* Loops have bounds, in the program or in the catalog, so the WQEs of a request are known before it comes */
int catalog_check_budget(const struct catalog_offload *o, const struct program *p, char *why, size_t size)
{
	uint64_t wqes = program_wqes(p) + program_loop_wqes(p, o->loop_budget);

	if (!o->wqe_budget)
		return 0;
	if (p->loop && !o->loop_budget) {
		snprintf(why, size, "its loop has no bound, so a \"wqe_budget\" needs a \"loop_budget\"");
		return -EINVAL;
	}
	if (wqes <= o->wqe_budget)
		return 0;
	snprintf(why, size, "a request takes %" PRIu64 " WQEs, \"wqe_budget\" is %u", wqes, o->wqe_budget);
	return -E2BIG;
}

DEFINE_CLEANUP(struct program *, program_free)

/* With the program for a device that needs the fewest WQEs, @target or one that also trusts fences, where the
 * configuration does or the CPU may execute it, and checks no indices: every other device needs as many */
static void check_budget(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program_target *target)
{
	struct program_target fewest = *target;
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;
	char why[200];
	int r = 0;

	fewest.fenced_enables = l->catalog->fenced_enables || o->engine != CATALOG_NIC;
	fewest.ignores_index = !o->recycled;
	if (o->wqe_budget && catalog_compile(o, NULL, NULL, 0, &fewest, &p, &messages) == 0)
		r = catalog_check_budget(o, p, why, sizeof(why));
	if (r < 0)
		settings_wrong(l, group, "offload \"%s\": %s%s", o->name, why,
			r == -E2BIG ? ", on the device that needs the fewest" : "");
}

/* Compiles for a device that has everything: what a real one lacks is found when it is opened */
static void check_program(struct settings *l, const config_setting_t *group, const struct catalog_offload *o)
{
	const struct program_target any = {.masked_atomics = true};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;

	if (catalog_compile(o, NULL, NULL, 0, &any, &p, &messages)) {
		settings_wrong(l, group, "offload \"%s\": its program has mistakes", o->name);
		if (messages)
			fputs(messages, l->errors);
		return;
	}
	check_loop(l, group, o, p);
	check_budget(l, group, o, &any);
	bindings_check(l, group, o, p);
}

void entries_parse_offload(struct settings *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_offload *o = &c->offloads[c->noffloads];
	unsigned before = l->nerrors, other;

	o->where = settings_where(l, group);
	o->engine = c->engine;
	o->depth_max = DEPTH_DEFAULT;
	o->loop_rate = LOOP_RATE_DEFAULT;
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		o->on_error[k].action = VERDICT_TERMINATE;
	settings_group(l, group, "in an offload", offload_rules, COUNT(offload_rules), o);
	if (o->instances && o->instances < 2u * o->depth_max)
		settings_wrong(l, group, "\"instances\" is %u; it must be at least twice \"depth_max\" (%u)",
			o->instances, o->depth_max);
	other = settings_index(c->offloads, c->noffloads, sizeof(*o), o->name);
	if (*o->name && other < c->noffloads)
		settings_wrong(l, group, "offload \"%s\" is already declared at %s; names must differ",
			o->name, c->offloads[other].where);
	if (l->nerrors == before)
		check_program(l, group, o);
	c->noffloads++;
}
