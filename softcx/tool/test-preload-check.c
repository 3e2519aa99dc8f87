/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages about programs that softcx run cannot host. */
#include "softcx/tool/tool.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static char dir[] = "/tmp/test-preload-check-XXXXXX";

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

static const char *put(const void *bytes, size_t len)
{
	static char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/program", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fchmod(fileno(f), 0755), 0);
	fclose(f);
	return path;
}

/** True if @path can be hosted; otherwise the reason has to contain @reason. */
static bool hosts(const char *path, const char *reason)
{
	char why[256] = "";
	bool can = preload_check_program(path, why, sizeof(why));

	if (!can && !strstr(why, reason))
		fail_msg("\"%s\" where \"%s\" is due", why, reason);
	return can;
}

struct program {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[2];
};

static struct program program(unsigned char class, uint32_t second_header)
{
	struct program p = {
		.ehdr = {.e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2}};

	memcpy(p.ehdr.e_ident, ELFMAG, SELFMAG);
	p.ehdr.e_ident[EI_CLASS] = class;
	p.phdr[0].p_type = PT_LOAD;
	p.phdr[1].p_type = second_header;
	return p;
}

static void programs(void **state)
{
	struct program dynamic = program(ELFCLASS64, PT_INTERP), fixed = program(ELFCLASS64, PT_NOTE),
		       small = program(ELFCLASS32, PT_INTERP);

	assert_true(hosts(put(&dynamic, sizeof(dynamic)), ""));
	assert_false(hosts(put(&fixed, sizeof(fixed)), "statically linked"));
	assert_false(hosts(put(&small, sizeof(small)), "32-bit"));
	/* cut off in the middle of its headers: the kernel will say what is wrong with it */
	fixed.ehdr.e_phnum = 0xffff;
	assert_false(hosts(put(&fixed, sizeof(fixed)), "statically linked"));
	assert_int_equal(unlink(put("", 0)), 0);
	assert_true(hosts("/nonexistent", ""));
}

static void scripts(void **state)
{
	char text[128], other[64];
	struct program fixed = program(ELFCLASS64, PT_NOTE);
	int n;

	assert_true(hosts(put("#!/bin/sh\n", 10), ""));
	assert_true(hosts(put("#!/usr/bin/env sh\n", 18), ""));
	snprintf(other, sizeof(other), "%s/interpreter", dir);
	assert_int_equal(rename(put(&fixed, sizeof(fixed)), other), 0);
	n = snprintf(text, sizeof(text), "#! %s -x\n", other);
	assert_false(hosts(put(text, (size_t)n), "statically linked"));
	assert_int_equal(unlink(put("", 0)), 0);
	assert_int_equal(unlink(other), 0);
}

static void other_identities(void **state)
{
	struct program dynamic = program(ELFCLASS64, PT_INTERP);
	const char *path = put(&dynamic, sizeof(dynamic));

	/* to oneself it gives nothing, and the dynamic linker does not mind */
	assert_int_equal(chmod(path, 06755), 0);
	assert_true(hosts(path, ""));
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 1, 0), 0);
		assert_int_equal(chmod(path, 04755), 0);
		assert_false(hosts(path, "setuid"));
		assert_int_equal(chown(path, 0, 1), 0);
		assert_int_equal(chmod(path, 02755), 0);
		assert_false(hosts(path, "setuid, setgid"));
	}
	assert_int_equal(unlink(path), 0);
}

static void search_path(void **state)
{
	char path[128];

	setenv("PATH", "/usr/bin:/bin", 1);
	assert_int_equal(preload_check_find("sh", path, sizeof(path)), 0);
	assert_true(path[0] == '/');
	assert_int_equal(preload_check_find("no-such-program-here", path, sizeof(path)), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(preload_check_find(dir, path, sizeof(path)), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(preload_check_find("", path, sizeof(path)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs),
		cmocka_unit_test(scripts),
		cmocka_unit_test(other_identities),
		cmocka_unit_test(search_path),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
