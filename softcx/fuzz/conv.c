/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/fuzz/conv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 64 };

struct loading {
	struct conv *conv;
	uint64_t ids[MAX_FILES];
};

static int file_number(const struct loading *l, uint64_t id)
{
	for (unsigned i = l->conv->nfiles; i-- > 0;)
		if (l->ids[i] == id)
			return (int)i;
	return -1;
}

/** Takes @bytes over. 0, or 1 when the record is of no use. */
static int add(struct loading *l, const struct conv_record *rec, uint8_t *bytes)
{
	struct conv *conv = l->conv;
	struct conv_step step = {.kind = rec->kind, .bytes = bytes, .len = rec->len}, *grown;
	int file = file_number(l, rec->file);

	if (rec->kind == CONV_OPEN) {
		if (conv->nfiles == MAX_FILES || rec->len >= sizeof(step.device))
			return 1;
		memcpy(step.device, bytes, rec->len);
		file = (int)conv->nfiles;
	} else if (file < 0 || rec->len < sizeof(struct softcx_request)) {
		return 1;
	}
	grown = realloc(conv->steps, (conv->nsteps + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	conv->steps = grown;
	step.file = (unsigned)file;
	grown[conv->nsteps++] = step;
	if (rec->kind == CONV_OPEN)
		l->ids[conv->nfiles++] = rec->file;
	return 0;
}

int conv_load(struct conv *conv, const char *path)
{
	struct loading l = {.conv = conv};
	FILE *f = fopen(path, "re");
	struct conv_record rec;
	int rc = 0;

	if (!f)
		return -errno;
	*conv = (struct conv){0};
	while (rc >= 0 && fread(&rec, sizeof(rec), 1, f) == 1 && rec.len <= SOFTCX_MAX_MSG) {
		uint8_t *bytes = malloc(rec.len + 1);

		if (!bytes || fread(bytes, 1, rec.len, f) != rec.len) {
			free(bytes);
			break;
		}
		rc = add(&l, &rec, bytes);
		if (rc != 0)
			free(bytes);
	}
	fclose(f);
	if (rc >= 0)
		rc = conv->nsteps ? 0 : -ENODATA;
	if (rc < 0)
		conv_free(conv);
	return rc;
}

void conv_free(struct conv *conv)
{
	for (size_t i = 0; i < conv->nsteps; i++)
		free(conv->steps[i].bytes);
	free(conv->steps);
	*conv = (struct conv){0};
}
