/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: configuration files, for the catalog. "@programs@" stands for the directory of programs. */
#include "reddnd/catalog/catalog.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/libconfig-leaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Writes the input to a file in memory. Returns the file's path. */
static const char *write_file(const char *from, size_t size)
{
	static const char mark[] = "@programs@";
	const char *last = from + size, *at;
	static char path[32];
	static FILE *f;

	if (!f) {
		int fd = memfd_create("config", MFD_CLOEXEC);

		f = fd >= 0 ? fdopen(fd, "w+") : NULL;
		fuzz_need(f != NULL, "no file in memory");
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	rewind(f);
	while ((at = memmem(from, (size_t)(last - from), mark, strlen(mark)))) {
		fwrite(from, 1, (size_t)(at - from), f);
		fputs(PROGRAMS, f);
		from = at + strlen(mark);
	}
	fwrite(from, 1, (size_t)(last - from), f);
	fuzz_need(fflush(f) == 0 && ftruncate(fileno(f), ftell(f)) == 0, "the file cannot be written");
	return path;
}

static void check_catalog(const struct catalog *c)
{
	fuzz_need(c && c->nlisten <= CATALOG_LISTEN_MAX, "half a catalog");
	for (unsigned i = 0; i < c->noffloads; i++)
		fuzz_need(*c->offloads[i].name && c->offloads[i].text &&
				  (!c->offloads[i].has_region || c->offloads[i].region < c->nregions),
			"half an offload");
}

static void check_errors(const char *errors, const char *path)
{
	fuzz_need(errors && (strncmp(errors, path, strlen(path)) == 0 || strchr(errors, ':')),
		"an error without a position");
	for (const char *c = errors; *c; c++) /* quoted programs contain tabs */
		fuzz_need((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t',
			"a control character in an error");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = write_file((const char *)data, size);
	struct catalog *catalog = NULL;
	char *errors = NULL;
	int r = catalog_load(path, &catalog, &errors);

	fuzz_need(r == 0 || r == -EINVAL, "neither accepted nor refused");
	if (r == 0) {
		check_catalog(catalog);
		catalog_free(catalog);
	} else {
		check_errors(errors, path);
		fuzz_refused(errors);
	}
	free(errors);
	return 0;
}
