/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/cmocka.h"

#include "softcx/devices/profile.h"
#include "util/array.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[PATH_MAX], why[PROFILE_WHY];
static struct profile p;

/* Reads @text as a profile. */
static int read_text(const char *text)
{
	char name[] = "/tmp/profile-XXXXXX.conf";
	int fd = mkstemps(name, 5), r;

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	strcpy(path, name);
	r = profile_read(name, &p, why);
	unlink(name);
	return r;
}

static void ours(void **state)
{
	char *names[PROFILE_MAX];
	int n = profile_list(names);

	assert_in_range(n, 1, PROFILE_MAX);
	for (int i = 0; i < n; i++) {
		assert_int_equal(profile_find(names[i], path, sizeof(path)), 0);
		if (profile_read(path, &p, why) < 0)
			fail_msg("%s", why);
		assert_string_equal(p.name, names[i]);
		for (unsigned f = 0; f < PROFILE_FACTS; f++)
			assert_true(p.source[f][0]);
		free(names[i]);
	}
}

static void the_default(void **state)
{
	assert_int_equal(profile_find("cx5", path, sizeof(path)), 0);
	assert_int_equal(profile_read(path, &p, why), 0);
	assert_string_equal(profile_default()->name, p.name);
	assert_string_equal(profile_default()->title, p.title);
	assert_memory_equal(profile_default()->value, p.value, sizeof(p.value));
}

static void differs_from_its_base(void **state)
{
	char text[32];

	assert_int_equal(read_text("base = \"cx5\"; title = \"other\";\n"
				   "identity = { firmware = (\"22.1.2003\", \"here\"); };\n"
				   "port = { speed = (\"NDR\", \"there\"); };\n"
				   "limits = { log_reads = (0, \"there\"); };\n"
				   "has = { masked_atomics = (false, \"assumed\"); };\n"),
		0);
	assert_string_equal(p.title, "other");
	for (unsigned f = 0; f < PROFILE_FACTS; f++)
		switch (f) {
		case PROFILE_FIRMWARE:
			assert_int_equal(p.value[f], 22ull << 32 | 1ull << 16 | 2003);
			assert_string_equal(p.source[f], "here");
			break;
		case PROFILE_SPEED:
			assert_int_equal(p.value[f], PROFILE_NDR);
			break;
		case PROFILE_LOG_READS:
		case PROFILE_MASKED_ATOMICS:
			assert_int_equal(p.value[f], 0);
			break;
		default:
			assert_int_equal(p.value[f], profile_default()->value[f]);
			assert_true(p.source[f][0]);
		}
	profile_fact_text(&p, PROFILE_FIRMWARE, text, sizeof(text));
	assert_string_equal(text, "22.1.2003");
	profile_fact_text(&p, PROFILE_SPEED, text, sizeof(text));
	assert_string_equal(text, "NDR");
	profile_fact_text(&p, PROFILE_MASKED_ATOMICS, text, sizeof(text));
	assert_string_equal(text, "false");
}

static void mistakes(void **state)
{
#define BASE "base = \"cx5\";\ntitle = \"x\";\n"
	static const struct {
		const char *text, *words; /* after the name of the file */
	} t[] = {
		{"title = \"x\"\n;;", ":2: syntax error"},
		{"base = \"cx5\";\n", ": a profile needs a title, a line of up to 119 bytes"},
		{"title = 7;\n", ":1: a profile needs a title, a line of up to 119 bytes"},
		{"title = \"x\";\n", ": identity.part is missing; a profile without a base gives every fact"},
		{"title = \"x\";\nbase = 5;", ":2: base must be the name of a profile, such as \"cx5\""},
		{"title = \"x\";\nbase = \"cx\";",
			":2: base \"cx\": there is no such profile; softcx devices lists them"},
		{BASE "has = 1;", ":3: has must be a group of facts, as in has = { ... };"},
		{BASE "had = { };", ":3: there is no group had; a profile has title, base, and the groups "
				    "identity, port, limits, has, checks and managed"},
		{BASE "port = {\nsped = 1; };",
			":4: there is no fact port.sped; those of port are: link, speed"},
		{BASE "port = {\nspeed = \"EDR\"; };",
			":4: port.speed must be (VALUE, \"SOURCE\"): a value and where it is from, or "
			"\"assumed\""},
		{BASE "port = {\nspeed = (\"EDR\"); };",
			":4: port.speed must be (VALUE, \"SOURCE\"): a value and where it is from, or "
			"\"assumed\""},
		{BASE "port = {\nspeed = (\"EDR\", \"\"); };",
			":4: port.speed needs its source as second element, a text of up to 199 bytes; "
			"\"assumed\" if there is none"},
		{BASE "port = {\nspeed = (\"EDR\", 1); };",
			":4: port.speed needs its source as second element, a text of up to 199 bytes; "
			"\"assumed\" if there is none"},
		{BASE "port = {\nspeed = (\"QDR\", \"s\"); };",
			":4: port.speed must be \"EDR\", \"HDR\" or \"NDR\""},
		{BASE "port = {\nspeed = (1, \"s\"); };",
			":4: port.speed must be \"EDR\", \"HDR\" or \"NDR\""},
		{BASE "limits = {\nsend_wqe = (63, \"s\"); };",
			":4: limits.send_wqe must be a whole number from 64 to 1024"},
		{BASE "limits = {\nsend_wqe = (1025, \"s\"); };",
			":4: limits.send_wqe must be a whole number from 64 to 1024"},
		{BASE "limits = {\nsend_wqe = (64.5, \"s\"); };",
			":4: limits.send_wqe must be a whole number from 64 to 1024"},
		{BASE "managed = {\nfetch = (96, \"s\"); };",
			":4: managed.fetch must be a power of two from 64 to 4096"},
		{BASE "has = {\nrecv_enable = (1, \"s\"); };", ":4: has.recv_enable must be true or false"},
		{BASE "identity = {\nfirmware = (\"16.35\", \"s\"); };",
			":4: identity.firmware must be a version such as \"16.35.4030\""},
		{BASE "identity = {\nfirmware = (\"16.35.70000\", \"s\"); };",
			":4: identity.firmware must be a version such as \"16.35.4030\""},
	};

	for (size_t i = 0; i < COUNT(t); i++) {
		assert_int_equal(read_text(t[i].text), -EINVAL);
		assert_memory_equal(why, path, strlen(path));
		assert_string_equal(why + strlen(path), t[i].words);
	}
	assert_int_equal(profile_read("/nonexistent/x.conf", &p, why), -ENOENT);
	assert_string_equal(why, "/nonexistent/x.conf: No such file or directory");
}

/* A file that names itself as its base ends, and so does a long row of bases. */
static void circles(void **state)
{
	char name[] = "/tmp/profile-XXXXXX.conf";
	int fd = mkstemps(name, 5);

	assert_return_code(fd, errno);
	dprintf(fd, "title = \"x\";\nbase = \"%s\";\n", name);
	close(fd);
	assert_int_equal(profile_read(name, &p, why), -EINVAL);
	assert_non_null(strstr(why, ":2: base \"/tmp/profile-"));
	assert_non_null(strstr(why, "more than 4 bases, or a profile that is its own base"));
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours),
		cmocka_unit_test(the_default),
		cmocka_unit_test(differs_from_its_base),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(circles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
