/* SPDX-License-Identifier: BSD-2-Clause */
#include <reddn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) /* HOST OFFLOAD KEY... */
{
	struct reddn_options opt = {.host = argc > 1 ? argv[1] : "", .offload = argc > 2 ? argv[2] : ""};
	char err[256], value[65536];
	struct reddn *c;
	size_t len;

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		return fprintf(stderr, "%s\n", err), 1;
	for (int i = 3; i < argc; i++) {
		int r = reddn_get(c, argv[i], strlen(argv[i]), value, sizeof(value), &len);

		if (r < 0)
			return fprintf(stderr, "%s: %s\n", argv[i], strerror(-r)), 1;
		if (r == REDDN_MISS)
			printf("%s is absent\n", argv[i]);
		else
			printf("%s: %.*s\n", argv[i], (int)len, value);
	}
	reddn_close(c);
	return 0;
}
