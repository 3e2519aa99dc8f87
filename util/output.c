/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/output.h"

#include "util/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int status_of_failure;

static void check(void)
{
	/* An earlier write may have failed where nobody looked: then the flag is what is left of it */
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	fprintf(stderr, "%s: standard output: %s\n", program_invocation_short_name,
		errno ? strerror(errno) : "not all of it could be written");
	/* exit() has begun: only this changes the status. stderr has no buffer */
	_exit(status_of_failure);
}

void output_begin(int status)
{
	file_fill_standard();
	status_of_failure = status;
	atexit(check);
}
