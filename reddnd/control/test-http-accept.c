/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/http-accept.h"

#include "util/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
	const char *accept;
	unsigned text, openmetrics;
} cases[] = {
	{NULL, 1000, 1000},
	{"", 1000, 1000},
	{"*/*", 1000, 1000},
	{"text/plain", 1000, 0},
	{" Text/Plain ; version=0.0.4 ; q=0.3 , */* ; q=0.2", 300, 200},
	{"text/*;q=0.25,text/plain;q=1.000", 1000, 0},
	{"text/plain;q=0, */*", 0, 1000},
	{"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
	 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		300, 500},
	{"text/html", 0, 0},
	{"text/plain;q=no", 0, 0},
	{"text/plain;q=7", 1000, 0},
	{"text", 0, 0},
	{"/;=,;,,/", 0, 0},
	{"text/plain;", 1000, 0},
	{"text/plain;q", 1000, 0},
};

static void weighs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(http_accept_weight(cases[i].accept, "text", "plain"), cases[i].text);
		assert_int_equal(http_accept_weight(cases[i].accept, "application", "openmetrics-text"),
			cases[i].openmetrics);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(weighs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
