/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-conf.h - configurations and programs of tests of the catalog, as files of a folder in which every test
 * runs. A failure fails the test. One thread.
 */
#ifndef CATALOG_TEST_CONF_H
#define CATALOG_TEST_CONF_H

#include "reddnd/catalog/catalog.h"

#include <stddef.h>

extern char conf_dir[];

/** Makes the folder, with programs in it, and enters it; removes it again. For cmocka_run_group_tests(). */
int conf_enter(void **state);
int conf_leave(void **state);

/** Writes file @name. File "c", the configuration, gets a line "programs" at its end unless it has one. */
void conf_put(const char *name, const char *text);

/** The catalog of a configuration without a mistake; catalog_free() it. */
struct catalog *conf_load(const char *text);

/** A region named "users", what an offload of it has at least, and what is right where a name is wrong. */
#define CONF_REGION "regions = ( { name = \"users\"; path = \"/d/users\"; kind = \"table\"; } );\n"
#define CONF_OFFLOAD "name = \"get\"; program = \"get\"; region = \"users\"; "
#define CONF_A_NAME "a name: 1 to 23 letters, digits, '.', '_' or '-', a letter or digit first"

/** A configuration with mistakes, and all that loading it prints. */
struct conf_mistake {
	const char *text, *errors;
};

/** Loads @text, which must be refused with @message. */
void conf_expect(const char *text, const char *message);
/** The same of @n texts. */
void conf_expect_each(const struct conf_mistake *m, size_t n);

#endif
