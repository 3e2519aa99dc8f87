/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration files, to the catalog. Where a file says @programs@, the programs of the tree are. */
#include "reddnd/catalog/catalog.h"
#include "tests/fuzz/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const good[] = {
	"programs = \"@programs@\";\nregions = ( { name = \"users\"; kind = \"table\"; path = "
	"\"/dev/shm/users\"; } );\n"
	"offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"users\"; params = { probes = 2; "
	"};\n"
	"  mode = \"unrolled\"; depth_max = 64; instances = 128; } );\n",

	"programs = [ \"@programs@\" ];\nregions = ( { name = \"notes\"; kind = \"raw\"; path = "
	"\"/dev/shm/notes\"; "
	"writable = true; } );\n"
	"offloads = ( { name = \"tickets\"; program = \"counter\"; regions = { words = \"notes\"; };\n"
	"  mode = \"recycled\"; wqe_budget = 100; time_budget = \"250ms\"; on_error = \"ban:60s\"; } );\n",

	"listen = [ \"192.0.2.1:7471\", \"[::]:7471\" ];\ndevice = \"mlx5_0\";\ncontrol = "
	"\"/run/reddnd/control\";\n"
	"arena = \"256M\";\nmetrics = \"127.0.0.1:9471\";\n",

	"programs = \"@programs@\";\noffloads = ( { name = \"compare\"; program = \"compare\";\n"
	"  on_error = { step = \"terminate\"; request = \"ban:60s\"; time = \"log\"; }; } );\n"
	"tenants = ( { name = \"a\"; networks = [ \"10.0.0.0/8\", \"fd00::/8\" ]; offloads = [ \"compare\" "
	"];\n"
	"  sessions = 4; depth = 64; memory = \"16M\"; rate = 1000; burst = 50; session_rate = 10; },\n"
	"  { name = \"b\"; key = \"/etc/reddnd/b.key\"; } );\n",
};

static char path[] = "/tmp/fuzz-config-XXXXXX";

/* A string that does not end, or holds a syntax error behind it, is never freed by the lexer of libconfig */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig_yylex\nleak:strbuf_append\n";
}

static void begin(void)
{
	close(mkstemp(path));
}

static void end(void)
{
	unlink(path);
}

static void make(struct input *in)
{
	static const char *const words[] = {"(", "{", "[", ")", "}", "]", "=", ";", ",", "\"", "true", "-1",
		"0x7fffffffffffffff", "1e99", "0L", "99999999999999999999", "@include \"/dev/null\"\n",
		"@include \"absent\"\n", "/*", "//", "#", "\\x", "\"\\x00\"", "\"../../etc\"", "\"\"",
		"name = \"users\";", "instances", "depth_max", "params", "\"16E\"", "\"[::1\"", "\n",
		"\xff\xfe", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""};

	inputs_damage(
		in, good[inputs_pick(sizeof(good) / sizeof(*good))], words, sizeof(words) / sizeof(*words));
}

static void write_file(const struct input *in)
{
	static const char mark[] = "@programs@";
	const char *from = in->bytes, *last = in->bytes + in->len, *at;
	FILE *f = fopen(path, "w");

	inputs_need(f != NULL, "the file cannot be written");
	while ((at = memmem(from, (size_t)(last - from), mark, strlen(mark)))) {
		fwrite(from, 1, (size_t)(at - from), f);
		fputs(PROGRAMS, f);
		from = at + strlen(mark);
	}
	fwrite(from, 1, (size_t)(last - from), f);
	inputs_need(fclose(f) == 0, "the file cannot be written");
}

static void check_catalog(const struct catalog *c)
{
	inputs_need(c && c->nlisten <= CATALOG_LISTEN_MAX, "half a catalog");
	for (unsigned i = 0; i < c->noffloads; i++)
		inputs_need(*c->offloads[i].name && c->offloads[i].text &&
				    (!c->offloads[i].has_region || c->offloads[i].region < c->nregions),
			"half an offload");
}

static enum input_outcome use(const struct input *in)
{
	struct catalog *catalog = NULL;
	char *errors = NULL;
	int r;

	write_file(in);
	r = catalog_load(path, &catalog, &errors);
	inputs_need(r == 0 || r == -EINVAL, "neither accepted nor refused");
	if (r == 0) {
		check_catalog(catalog);
		catalog_free(catalog);
		free(errors);
		return INPUT_ACCEPTED;
	}
	inputs_need(errors && *errors, "refused without words");
	inputs_need(strncmp(errors, path, strlen(path)) == 0 || strchr(errors, ':'), errors);
	for (const char *c = errors; *c; c++) /* to a terminal, or a log; programs have tabs */
		inputs_need((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t', errors);
	free(errors);
	return INPUT_REFUSED;
}

const struct input_kind inputs_config = {
	.name = "config", .begin = begin, .end = end, .make = make, .use = use};
