/* SPDX-License-Identifier: BSD-2-Clause */
/* The caller of a message gives its source location; sd-journal.h would add that of this file. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "reddnd/util/log.h"

#include "util/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

/* ---- how often one line of the source may log: clients can cause some messages, without end. Each has
 * LOG_PACE_BURST messages after a pause, and LOG_PACE_PER_SECOND in the long run; what is left out is
 * counted. The caller has the clock and the lock ---- */

enum { LOG_PACE_PLACES = 256, LOG_PACE_BURST = 1000, LOG_PACE_PER_SECOND = 10 };

/* All zero: nothing was logged. */
struct log_pace {
	struct {
		const char *file;
		int line;
		uint64_t from_us; /* the bucket was full then, but for what was taken */
		uint64_t taken, left_out;
	} place[LOG_PACE_PLACES];
};

enum { SECOND_US = 1000000 };

/* Two lines that have one place make each other begin anew: that lets too much pass, never too little */
static unsigned place_of(const char *file, int line)
{
	uint64_t h = ((uint64_t)(uintptr_t)file + (uint64_t)line) * 0x9e3779b97f4a7c15;

	return (unsigned)(h >> 56) % LOG_PACE_PLACES;
}

/* True: the message may be logged, and *@left_out is how many before it may not. @file: of __FILE__. */
static bool log_pace_allows(struct log_pace *p, const char *file, int line, uint64_t now, uint64_t *left_out)
{
	unsigned i = place_of(file, line);
	uint64_t brought;

	*left_out = 0;
	if (p->place[i].file != file || p->place[i].line != line) {
		memset(&p->place[i], 0, sizeof(p->place[i]));
		p->place[i].file = file;
		p->place[i].line = line;
		p->place[i].from_us = now;
	}
	brought = (now - p->place[i].from_us) * LOG_PACE_PER_SECOND / SECOND_US;
	if (brought >= p->place[i].taken) {
		p->place[i].from_us = now;
		p->place[i].taken = brought = 0;
	}
	if (p->place[i].taken - brought >= LOG_PACE_BURST) {
		p->place[i].left_out++;
		return false;
	}
	p->place[i].taken++;
	*left_out = p->place[i].left_out;
	p->place[i].left_out = 0;
	return true;
}

/* ---- where messages go ---- */

static struct {
	bool journal;
	int max;
	const char *name; /* of a tool */
} log_state = {false, LOG_INFO, NULL};

static struct {
	pthread_mutex_t lock;
	struct log_pace pace;
} pacing = {PTHREAD_MUTEX_INITIALIZER, {{{0}}}};

static struct {
	pthread_mutex_t lock;
	uint64_t lost; /* lines, since the last one that was written */
} output = {PTHREAD_MUTEX_INITIALIZER, 0};

static __thread FILE *tee_to;
static __thread bool muted;

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

void log_name(const char *program)
{
	log_state.name = program;
}

void log_tee(FILE *f)
{
	tee_to = f;
}

void log_mute(bool mute)
{
	muted = mute;
}

static void emit_fields(int level, uint64_t session, const char *id, const struct log_field *fields,
	unsigned nfields, const char *file, int line, const char *text)
{
	enum { OWN = 6, FIELD = 420 };
	char own[OWN][1100], more[LOG_FIELDS_MAX][FIELD];
	struct iovec v[OWN + LOG_FIELDS_MAX];
	int n = 0;

	snprintf(own[n++], sizeof(own[0]), "MESSAGE=%s", text);
	snprintf(own[n++], sizeof(own[0]), "PRIORITY=%i", level);
	snprintf(own[n++], sizeof(own[0]), "MESSAGE_ID=%s", id);
	snprintf(own[n++], sizeof(own[0]), "CODE_FILE=%s", file);
	snprintf(own[n++], sizeof(own[0]), "CODE_LINE=%i", line);
	if (session)
		snprintf(own[n++], sizeof(own[0]), "REDDND_SESSION=%" PRIu64, session);
	for (int i = 0; i < n; i++)
		v[i] = (struct iovec){own[i], strlen(own[i])};
	for (unsigned i = 0; i < nfields && i < LOG_FIELDS_MAX; i++) {
		if (!fields[i].value || !*fields[i].value)
			continue;
		snprintf(more[i], sizeof(more[i]), "%s=%s", fields[i].name, fields[i].value);
		v[n++] = (struct iovec){more[i], strlen(more[i])};
	}
	sd_journal_sendv(v, n);
}

/* Whoever reads it may stand still (file_unblock_stderr()) */
static void print(const char *before, const char *text)
{
	pthread_mutex_lock(&output.lock);
	if (output.lost && fprintf(stderr, "%s%" PRIu64 " lines were lost: nobody read them\n",
				   log_state.journal ? "<4>" : "", output.lost) >= 0)
		output.lost = 0;
	if (output.lost || fprintf(stderr, "%s%s\n", before, text) < 0)
		output.lost++;
	pthread_mutex_unlock(&output.lock);
}

static void emit(int level, uint64_t session, const char *file, int line, const char *text)
{
	char before[80] = "";

	if (log_state.journal && (level > LOG_ERR || session)) {
		sd_journal_send("MESSAGE=%s", text, "PRIORITY=%i", level, "CODE_FILE=%s", file,
			"CODE_LINE=%i", line, session ? "REDDND_SESSION=%" PRIu64 : NULL, session, NULL);
		return;
	}
	if (log_state.journal)
		snprintf(before, sizeof(before), "<%i>", level);
	else if (session)
		snprintf(before, sizeof(before), "session %" PRIu64 ": ", session);
	else if (log_state.name)
		snprintf(before, sizeof(before), "%s: ", log_state.name);
	print(before, text);
}

/* True: it may be written. What was left out before it is reported first */
static bool may_emit(const char *file, int line)
{
	char text[100];
	uint64_t more;
	bool may;

	pthread_mutex_lock(&pacing.lock);
	may = log_pace_allows(&pacing.pace, file, line, clock_us(), &more);
	pthread_mutex_unlock(&pacing.lock);
	if (more) {
		snprintf(text, sizeof(text), "%" PRIu64 " messages like the next one were left out", more);
		emit(LOG_WARNING, 0, file, line, text);
	}
	return may;
}

void log_message(int level, uint64_t session, const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (level > log_state.max)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (tee_to && level <= LOG_ERR)
		fprintf(tee_to, "%s\n", text);
	if (!muted && may_emit(file, line))
		emit(level, session, file, line, text);
}

void log_event(int level, uint64_t session, const char *id, const struct log_field *fields, unsigned nfields,
	const char *file, int line, const char *text)
{
	if (level > log_state.max)
		return;
	if (log_state.journal)
		emit_fields(level, session, id, fields, nfields, file, line, text);
	else
		emit(level, session, file, line, text);
}

int log_errno_(int error, const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	log_message(LOG_ERR, 0, file, line, "%s: %s", text, strerror(-error));
	return error;
}
