/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/proto/paths.h"

#include "softcx/proto/proto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int softcx_dir(char *buf, size_t size)
{
	const char *dir = getenv("SOFTCX_DIR");
	const char *run = getenv("XDG_RUNTIME_DIR");
	int n;

	if (dir && *dir)
		n = snprintf(buf, size, "%s", dir);
	else if (run && *run)
		n = snprintf(buf, size, "%s/softcx", run);
	else
		n = snprintf(buf, size, "/tmp/softcx-%u", (unsigned)getuid());
	return n < 0 || (size_t)n >= size || n > SOFTCX_MAX_DIR ? -ENAMETOOLONG : 0;
}
