/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-conf.h - configurations and programs of tests of the catalog, as files of a folder in which every test
 * runs. A failure fails the test. One thread.
 */
#ifndef CATALOG_TEST_CONF_H
#define CATALOG_TEST_CONF_H

#include "reddnd/catalog/catalog.h"

extern char conf_dir[];

/** Makes the folder, with programs in it, and enters it; removes it again. For cmocka_run_group_tests(). */
int conf_enter(void **state);
int conf_leave(void **state);

/** Writes file @name. File "c", the configuration, gets a line "programs" at its end unless it has one. */
void conf_put(const char *name, const char *text);

/** The catalog of a configuration without a mistake; catalog_free() it. */
struct catalog *conf_load(const char *text);

#endif
