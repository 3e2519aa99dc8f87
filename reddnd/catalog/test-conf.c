/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/test-conf.h"

#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

char conf_dir[] = "/tmp/test-catalog-XXXXXX";

static const char *const files[] = {"c", "more", "get.rdn", "wrong.rdn", "raw.rdn", "key", "store.rdn",
	"hop.rdn", "use.rdn", "vouched.rdn", "steer.rdn", "look.rdn", "publish.rdn", "retire.rdn",
	"hash-get.rdn", "hash-mget.rdn", "hash-exists.rdn", "hash-exists-exact.rdn", "store-put.rdn",
	"store-put-if.rdn", "change.rdn", "put.rdn", "no-put.rdn", "nowhere.rdn", "which.rdn", "long.rdn",
	"short.rdn"};

void conf_put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	/* Behind what is tested, whose lines keep their numbers */
	if (strcmp(name, "c") == 0 && !strstr(text, "programs ="))
		fprintf(f, "\nprograms = \"%s\";\n", conf_dir);
	fclose(f);
}

static void put_publishing(const char *file, const char *name)
{
	char text[640];

	snprintf(text, sizeof(text),
		"program %s\nshape put\nparam most = 1K from 64 to 1M\nregion buckets writable\n"
		"region heap\npayload record : max most in heap\nvar was : le64\n"
		"struct bucket { loc : le64, mark : le56 }\n"
		"read buckets as bucket { loc -> pub.compare, mark -> mark }\n"
		"if mark == 0xa5 << 48 {\n pub: cas buckets as le64 : 0 -> record, was -> was\n}\n"
		"write_imm was -> slot\n",
		name);
	conf_put(file, text);
}

int conf_enter(void **state)
{
	if (!mkdtemp(conf_dir) || chdir(conf_dir) < 0)
		return -1;
	conf_put("get.rdn", "program get\nparam width = 4 from 1 to 7\nregion buckets, heap\n"
			    "struct bucket { len : be24, off : be40 }\n"
			    "arg at : offset(width) in buckets\n"
			    "read buckets @ at as bucket { len -> hit.length, off -> hit.addr }\n"
			    "hit: write heap -> slot @ 64, max 64\n"
			    "write_imm 0 as u8 -> slot @ 0\n");
	conf_put("hash-get.rdn",
		"program hash_get\nshape table\nparam probes = 2 from 1 to 2\n"
		"region buckets, heap, live\narg probe[probes] { fp : u48, at : offset(4) in buckets "
		"}\nwrite_imm live -> slot @ 0, 64 bytes\n");
	conf_put("hash-mget.rdn",
		"program hash_mget\nshape table\nparam keys = 4 from 2 to 16\nregion buckets, heap, live\n"
		"arg probe[keys] { fp : u48, at : offset(4) in buckets }\nwrite_imm live -> slot @ 0, 64 "
		"bytes\n");
	conf_put("hash-exists.rdn",
		"program hash_exists\nshape exists\nparam keys = 8 from 1 to 64\nregion buckets, live\n"
		"arg at[keys] : offset(4) in buckets\nwrite_imm live -> slot @ 0, 64 bytes\n");
	conf_put("hash-exists-exact.rdn",
		"program hash_exists_exact\nshape exists\nparam keys = 8 from 1 to 16\nregion buckets, live\n"
		"arg probe[keys] { fp : u48, at : offset(4) in buckets }\nwrite_imm live -> slot @ 0, 64 "
		"bytes\n");
	put_publishing("store-put.rdn", "store_put");
	put_publishing("store-put-if.rdn", "store_put_if");
	conf_put("wrong.rdn", "program wrong\nregion a\nwrite_imm b -> slot @ 0\n");
	conf_put("raw.rdn", "program raw\nregion nodes writable\nregion values\n"
			    "write_imm values @ 0 -> slot @ 0, 8 bytes\n");
	return 0;
}

int conf_leave(void **state)
{
	for (size_t i = 0; i < COUNT(files); i++)
		unlink(files[i]);
	return chdir("/") == 0 && rmdir(conf_dir) == 0 ? 0 : -1;
}

struct catalog *conf_load(const char *text)
{
	struct catalog *catalog = NULL;
	char *errors;
	int r;

	conf_put("c", text);
	r = catalog_load("c", &catalog, &errors);
	assert_string_equal(errors, "");
	assert_int_equal(r, 0);
	free(errors);
	return catalog;
}

void conf_expect(const char *text, const char *message)
{
	struct catalog *catalog = NULL;
	char *errors;

	conf_put("c", text);
	assert_int_equal(catalog_load("c", &catalog, &errors), -EINVAL);
	assert_null(catalog);
	assert_string_equal(errors, message);
	free(errors);
}

void conf_expect_each(const struct conf_mistake *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		conf_expect(m[i].text, m[i].errors);
}
