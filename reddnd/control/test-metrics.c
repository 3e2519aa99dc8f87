/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/commands.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

static void names_counters_as_prometheus_does(void **state)
{
	char *text =
		metrics_prometheus("# TYPE a counter\n# UNIT a bytes\n# HELP a The counter of gauge.\n"
				   "a_total{x=\"y\"} 1\n# TYPE b gauge\n# HELP b No counter\nb 2\n"
				   "# TYPE c histogram\n# HELP c Times.\nc_bucket{le=\"+Inf\"} 1\n# EOF\n");

	assert_string_equal(text,
		"# TYPE a_total counter\n# HELP a_total The counter of gauge.\na_total{x=\"y\"} 1\n"
		"# TYPE b gauge\n# HELP b No counter\nb 2\n"
		"# TYPE c histogram\n# HELP c Times.\nc_bucket{le=\"+Inf\"} 1\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names_counters_as_prometheus_does)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
