/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

static struct {
	bool journal;
	int max;
} log_state = {false, LOG_INFO};

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%ju:%ju", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

void log_init(int max)
{
	log_state.max = max;
	log_state.journal = stderr_is_journal();
}

static void emit(int level, uint64_t session, const char *file, int line, const char *text)
{
	if (log_state.journal)
		sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", level, "CODE_FILE=%s", file,
			"CODE_LINE=%i", line, session ? "REDDND_SESSION=%" PRIu64 : NULL, session, NULL);
	else if (session)
		fprintf(stderr, "session %" PRIu64 ": %s\n", session, text);
	else
		fprintf(stderr, "%s\n", text);
}

void log_message(int level, uint64_t session, const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (level > log_state.max)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	emit(level, session, file, line, text);
}

int log_errno_(int error, const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	log_message(LOG_ERR, 0, file, line, "%s: %s", text, strerror(-error));
	return error;
}
