/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/wrong.h"

#include "reddnd/generation/offload.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool offload_may_be_unrolled(const struct offload *o)
{
	return o->recycled && o->conf->mode == CATALOG_MODE_AUTO;
}

static int vwrong(struct offload *o, int error, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));

static int vwrong(struct offload *o, int error, const char *format, va_list ap)
{
	bool may_fall_back = error == -EOPNOTSUPP && !o->cpu &&
			     (o->conf->engine == CATALOG_AUTO || offload_may_be_unrolled(o));

	vsnprintf(o->why, sizeof(o->why), format, ap);
	log_at(may_fall_back ? LOG_NOTICE : LOG_ERR, 0, "%s: offload %s: %s", o->conf->where, o->conf->name,
		o->why);
	return error;
}

int offload_wrong(struct offload *o, int error, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, error, format, ap);
	va_end(ap);
	return r;
}

int offload_unfit(struct offload *o, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, -EOPNOTSUPP, format, ap);
	va_end(ap);
	o->unfit = true;
	return r;
}

void offload_log_lines(const char *text)
{
	for (int n; *text; text += n + (text[n] == '\n')) {
		n = (int)strcspn(text, "\n");
		log_error("%.*s", n, text);
	}
}
