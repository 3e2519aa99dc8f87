/* SPDX-License-Identifier: BSD-2-Clause */
/* A catalog in a file, made again when nothing of what it was read from is there any more. */
#include "reddnd/catalog/kept.h"
#include "reddnd/catalog/test-conf.h"
#include "tests/lib/libconfig-leaks.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/lib/cmocka.h"

#define KEY "0123456789abcdef"

static const char text[] =
	"@include \"more\"\nregions = ( { name = \"a\"; kind = \"table\"; path = \"/a\\\"b\\\\c\"; } );\n"
	"offloads = ( { name = \"get\"; program = \"get\"; region = \"a\"; params = { width = 5; }; } );\n"
	"tenants = ( { name = \"some\"; key = \"/proc/self/cwd/key\"; rate = 1000000000L; },\n"
	" { name = \"others\"; networks = [ \"192.0.2.0/24\" ]; } );\n";

static struct catalog *load(void)
{
	conf_put("more", "arena = \"32M\";\nrefusal_rate = 0x10;\n");
	conf_put("key", KEY "\n");
	assert_int_equal(chmod("key", 0600), 0);
	return conf_load(text);
}

static int sealed(const void *bytes, size_t size)
{
	int fd = memfd_create("kept", MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

static void test_round_trip(void **state)
{
	struct catalog *c = load(), *again;
	char *program = strndup(c->offloads[0].text, c->offloads[0].text_len), *errors;
	int fd;

	assert_int_equal(catalog_keep(c, &fd), 0);
	assert_true(catalog_is_kept(c, fd));
	catalog_free(c);
	unlink("c");
	unlink("more");
	unlink("key");
	assert_int_equal(rename("get.rdn", "elsewhere"), 0);
	assert_int_equal(catalog_restore(fd, &again, &errors), 0);
	assert_string_equal(errors, "");
	free(errors);
	assert_int_equal(rename("elsewhere", "get.rdn"), 0);
	assert_int_equal(again->arena, 32 << 20);
	assert_int_equal(again->refusal_rate, 16);
	assert_string_equal(again->regions[0].path, "/a\"b\\c");
	assert_int_equal(again->offloads[0].text_len, strlen(program));
	assert_memory_equal(again->offloads[0].text, program, strlen(program));
	assert_non_null(strstr(again->offloads[0].path, "/get.rdn"));
	assert_int_equal(again->offloads[0].params[0].value, 5);
	assert_string_equal(again->offloads[0].where, "the configuration that was last in force");
	assert_true(again->tenants[0].has_key);
	assert_int_equal(again->tenants[0].key.len, strlen(KEY));
	assert_memory_equal(again->tenants[0].key.bytes, KEY, strlen(KEY));
	assert_false(again->tenants[1].has_key);
	assert_int_equal(again->tenants[1].nnetworks, 1);
	assert_true(catalog_is_kept(again, fd));
	catalog_free(again);
	close(fd);
	free(program);
}

/* Another program, another key: it is another catalog, though its text is the same */
static void test_is_kept(void **state)
{
	struct catalog *c = load();
	int fd;

	assert_int_equal(catalog_keep(c, &fd), 0);
	c->offloads[0].text[0]++;
	assert_false(catalog_is_kept(c, fd));
	c->offloads[0].text[0]--;
	c->tenants[0].key.bytes[3]++;
	assert_false(catalog_is_kept(c, fd));
	c->tenants[0].key.bytes[3]--;
	assert_true(catalog_is_kept(c, fd));
	catalog_free(c);
	close(fd);
}

/* Whatever is in the file, it is refused or made a catalog of */
static void test_damage(void **state)
{
	struct catalog *c = load(), *again;
	struct stat st;
	uint8_t *good;
	char *errors;
	int fd, r;

	assert_int_equal(catalog_keep(c, &fd), 0);
	catalog_free(c);
	assert_int_equal(fstat(fd, &st), 0);
	good = malloc((size_t)st.st_size + 1);
	assert_int_equal(pread(fd, good, (size_t)st.st_size, 0), st.st_size);
	close(fd);
	for (size_t n = 1; n <= (size_t)st.st_size; n++) {
		fd = sealed(good, n < (size_t)st.st_size ? n : n + 1);
		assert_int_equal(catalog_restore(fd, &again, &errors), -EBADMSG);
		assert_null(errors);
		close(fd);
	}
	for (size_t n = 0; n < (size_t)st.st_size; n++) {
		good[n] ^= 0xff;
		fd = sealed(good, (size_t)st.st_size);
		r = catalog_restore(fd, &again, &errors);
		assert_true(r == 0 || r == -EBADMSG || (r == -EINVAL && *errors));
		if (r == 0)
			catalog_free(again);
		free(errors);
		close(fd);
		good[n] ^= 0xff;
	}
	free(good);
}

/* A file that somebody may still change */
static void test_unsealed(void **state)
{
	int fd = memfd_create("kept", MFD_ALLOW_SEALING);
	struct catalog *again;
	char *errors;

	assert_int_equal(write(fd, "REDNCON1", 8), 8);
	assert_int_equal(catalog_restore(fd, &again, &errors), -EBADMSG);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_is_kept),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_unsealed),
	};

	return cmocka_run_group_tests(tests, conf_enter, conf_leave);
}
