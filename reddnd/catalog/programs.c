/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/programs.h"

#include "reddnd/catalog/kept.h"
#include "reddnd/program/program.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* 0; -ENOENT: no such file; other errors have been reported */
static int read_program(
	struct settings *l, const config_setting_t *s, const char *path, struct catalog_offload *o)
{
	CLEANUP(cleanup_close) int fd = file_open(path, O_RDONLY);
	CLEANUP(cleanup_free) char *text = malloc(PROGRAM_MAX_SOURCE + 1);
	long len;

	if (fd == -ENOENT)
		return -ENOENT;
	/* One byte more than a program may have: the compiler reports what is too long */
	len = fd < 0 ? fd : text ? file_read(fd, text, PROGRAM_MAX_SOURCE + 1) : -ENOMEM;
	if (len < 0) {
		settings_wrong(l, s, "program %s cannot be read: %s", path, file_error((int)len));
		return -EIO;
	}
	o->path = strdup(path);
	o->text = steal_ptr(&text);
	o->text_len = (size_t)len;
	return 0;
}

static void restore_program(struct settings *l, const config_setting_t *s, struct catalog_offload *o)
{
	const struct kept_program *p = l->kept->programs + l->catalog->noffloads;

	if (l->catalog->noffloads >= l->kept->nprograms || p->path.len == 0) {
		settings_wrong(l, s, "program %s was not kept", config_setting_get_string(s));
		return;
	}
	o->path = strndup((const char *)p->path.at, p->path.len);
	o->text = malloc(p->text.len + 1);
	if (!o->text)
		return;
	memcpy(o->text, p->text.at, p->text.len);
	o->text_len = p->text.len;
}

void programs_parse(struct settings *l, const config_setting_t *s, void *offload)
{
	const char *name = config_setting_get_string(s);
	const struct catalog *c = l->catalog;

	if (l->kept) {
		restore_program(l, s, offload);
		return;
	}
	if (name[0] == '/') {
		if (read_program(l, s, name, offload) == -ENOENT)
			settings_wrong(l, s, "there is no program %s", name);
		return;
	}
	if (!text_is_name(name, CATALOG_NAME_MAX)) {
		settings_wrong_value(l, s,
			"the name of a program in the directories of \"programs\", or an absolute path");
		return;
	}
	for (unsigned i = 0; i < c->nprograms; i++) {
		CLEANUP(cleanup_free) char *path = NULL;

		if (asprintf(&path, "%s/%s.rdn", c->programs[i], name) < 0 ||
			read_program(l, s, path, offload) != -ENOENT)
			return;
	}
	settings_wrong(l, s, "there is no program %s.rdn in %s%s; see \"programs\"", name, c->programs[0],
		c->nprograms > 1 ? ", nor in the other directories" : "");
}

/* That holds @s; "name" may stand behind it */
static const char *name_of(const config_setting_t *s)
{
	const char *name = "";

	config_setting_lookup_string(config_setting_parent(s), "name", &name);
	return name;
}

void programs_parse_params(struct settings *l, const config_setting_t *s, void *offload)
{
	struct catalog_offload *o = offload;

	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *p = config_setting_get_elem(s, (unsigned)i);
		const char *name = config_setting_name(p);
		struct catalog_setting *set = &o->params[o->nparams];

		if (o->nparams == CATALOG_PARAMS_MAX)
			settings_wrong(l, p, "a program has at most %d params", CATALOG_PARAMS_MAX);
		else if (strlen(name) > CATALOG_NAME_MAX || !settings_amount(p, &set->value))
			settings_wrong(l, p,
				"offload \"%s\": param \"%s\" must be set to a number, as in 4 or \"64K\"",
				name_of(s), name);
		else
			strcpy(o->params[o->nparams++].name, name);
	}
}

static bool sets(const struct catalog_offload *o, const char *param)
{
	return settings_index(o->params, o->nparams, sizeof(*o->params), param) < o->nparams;
}

int catalog_compile(const struct catalog_offload *o, const struct catalog_stored *in,
	const struct program_setting *more, unsigned nmore, const struct program_target *target,
	struct program **program, char **messages)
{
	const struct program_source source = {.name = o->path, .text = o->text, .len = o->text_len};
	struct program_setting set[2 * CATALOG_PARAMS_MAX];
	struct program_stored stored[CATALOG_BINDINGS_MAX];
	struct program_target there = *target;
	unsigned n = 0;

	there.stored = stored;
	for (; in && there.nstored < in->n; there.nstored++)
		stored[there.nstored] = (struct program_stored){
			in->region[there.nstored].name, in->region[there.nstored].stored};
	for (; n < o->nparams; n++)
		set[n] = (struct program_setting){.name = o->params[n].name, .value = o->params[n].value};
	for (unsigned i = 0; i < nmore && n < COUNT(set); i++)
		if (!sets(o, more[i].name))
			set[n++] = more[i];
	return program_compile(&source, set, n, &there, program, messages);
}
