/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/verdict.h"

#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void test_kinds(void **state)
{
	assert_int_equal(verdict_kind_of(CQE_SYND_RNR_RETRY, true), VERDICT_RNR);
	assert_int_equal(verdict_kind_of(CQE_SYND_RETRY, true), VERDICT_UNREACHABLE);
	/* between queues of the chain they do not concern the client */
	assert_int_equal(verdict_kind_of(CQE_SYND_RNR_RETRY, false), VERDICT_STEP);
	assert_int_equal(verdict_kind_of(CQE_SYND_RETRY, false), VERDICT_STEP);
	assert_int_equal(verdict_kind_of(0x13, true), VERDICT_STEP);
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		assert_int_equal(verdict_kind_named(verdict_kind_name(k)), k);
	assert_int_equal(verdict_kind_named("steps"), VERDICT_KINDS);
}

static void test_policies(void **state)
{
	static const char *const wrong[] = {"", "Log", "kick", "ban", "ban:", "ban:60", "ban:0s", "ban:999ms",
		"ban:1d", "ban:800h", "log "};
	struct verdict_policy p = {0};

	assert_int_equal(verdict_policy_parse("log", &p), 0);
	assert_int_equal(p.action, VERDICT_LOG);
	assert_int_equal(verdict_policy_parse("throttle:100:1m", &p), 0);
	assert_true(p.action == VERDICT_THROTTLE && p.rate == 100 && p.seconds == 60);
	assert_int_equal(verdict_policy_parse("terminate", &p), 0);
	assert_int_equal(p.action, VERDICT_TERMINATE);
	assert_int_equal(verdict_policy_parse("ban:5m", &p), 0);
	assert_int_equal(p.action, VERDICT_BAN);
	assert_int_equal(p.seconds, 300);
	assert_int_equal(verdict_policy_parse("ban:1500ms", &p), 0);
	assert_int_equal(p.seconds, 2);
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(verdict_policy_parse(wrong[i], &p), -EINVAL);
}

static void test_silence(void **state)
{
	struct verdict_silence s = {0};

	assert_int_equal(verdict_silent(&s, 7, false, 1000, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2000, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2100, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2101, 100), 101);
	/* once */
	assert_int_equal(verdict_silent(&s, 7, true, 9000, 100), 0);
	/* the next request has a time of its own */
	assert_int_equal(verdict_silent(&s, 8, true, 9001, 100), 0);
	assert_int_equal(verdict_silent(&s, 8, true, 9101, 100), 0);
	assert_int_equal(verdict_silent(&s, 8, true, 9102, 100), 101);
	/* answered, and there is no next request yet */
	assert_int_equal(verdict_silent(&s, 9, false, 9200, 100), 0);
	assert_int_equal(verdict_silent(&s, 9, true, 99999, 100), 0);
	assert_int_equal(verdict_silent(&s, 9, true, 100100, 100), 101);
}

static void test_idle(void **state)
{
	struct verdict_idle i = {.since = 1000};

	assert_false(verdict_is_idle(&i, 0, false, 1099, 100));
	assert_true(verdict_is_idle(&i, 0, false, 1100, 100));
	/* a request since the last look: time starts again with this look */
	assert_false(verdict_is_idle(&i, 5, false, 1150, 100));
	assert_false(verdict_is_idle(&i, 5, false, 1249, 100));
	assert_true(verdict_is_idle(&i, 5, false, 1250, 100));
	/* a session with an unanswered request is not idle */
	assert_false(verdict_is_idle(&i, 5, true, 1300, 100));
	assert_false(verdict_is_idle(&i, 5, true, 9000, 100));
	assert_false(verdict_is_idle(&i, 6, false, 9100, 100));
	assert_true(verdict_is_idle(&i, 6, false, 9200, 100));
}

static const char text[] = "program one\n"
			   "\n"
			   "write_imm 7 as be64 -> slot @ 0\n";

static void test_steps(void **state)
{
	const struct program_source source = {.name = "/x/one.rdn", .text = text, .len = sizeof(text) - 1};
	const struct program_target target = {0};
	struct rnic_cqe cqe = {.error = true, .syndrome = CQE_SYND_RNR_RETRY, .vendor = 0x68};
	struct program *p = NULL;
	char *messages = NULL;
	uint32_t w, last = 0;
	struct verdict v;

	assert_int_equal(program_compile(&source, NULL, 0, &target, &p, &messages), 0);
	for (w = 0; w < p->image->queue[0].wqebbs; w++)
		if (p->image->queue[0].starts[w])
			last = w;
	verdict_of_step(&v, p, "/x/one.rdn", 0, last, &cqe);
	assert_int_equal(v.kind, VERDICT_RNR);
	assert_true(v.fatal);
	assert_int_equal(v.line, 3);
	assert_string_equal(v.path, "/x/one.rdn");
	assert_non_null(strstr(v.text, ", one.rdn:3"));
	assert_non_null(strstr(v.text, "(0x68)"));
	/* the WAIT for the request */
	cqe.syndrome = 0x02;
	verdict_of_step(&v, p, "/x/one.rdn", 0, 0, &cqe);
	assert_int_equal(v.kind, VERDICT_STEP);
	verdict_of_step(&v, p, "/x/one.rdn", 0, p->image->queue[0].wqebbs, &cqe);
	assert_string_equal(v.step, "pad");
	assert_int_equal(v.line, 0);
	program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
