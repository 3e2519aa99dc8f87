/* SPDX-License-Identifier: BSD-2-Clause */
/* log: where messages go. The socket of sd-journal is absent here, or takes them; only stderr is looked at.
 */
#include "reddnd/util/log.c"
#include "util/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

/* Lets stderr be a file, and with @journal the journal; logs; gives what arrived. */
static void logged(int journal, uint64_t session, int level, const char *text, char *got, size_t size)
{
	int before = dup(STDERR_FILENO), fd = open(".", O_TMPFILE | O_RDWR, 0600);
	char stream[64];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		fd = memfd_create("stderr", 0);
	assert_true(fd >= 0 && before >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + !journal);
	setenv("JOURNAL_STREAM", stream, 1);
	dup2(fd, STDERR_FILENO);
	log_init(LOG_INFO);
	log_at(level, session, "%s", text);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	n = pread(fd, got, size - 1, 0);
	got[n > 0 ? n : 0] = '\0';
	close(fd);
	close(before);
}

static void to_a_terminal(void **state)
{
	char got[256];

	logged(0, 0, LOG_ERR, "x.conf:2: wrong", got, sizeof(got));
	assert_string_equal(got, "x.conf:2: wrong\n");
	logged(0, 7, LOG_INFO, "gone", got, sizeof(got));
	assert_string_equal(got, "session 7: gone\n");
	logged(0, 0, LOG_DEBUG, "detail", got, sizeof(got));
	assert_string_equal(got, "");
	log_name("reddnc");
	logged(0, 0, LOG_ERR, "no device", got, sizeof(got));
	assert_string_equal(got, "reddnc: no device\n");
	log_name(NULL);
}

/* journald knows the unit of a stream even after the process has ended. */
static void errors_to_the_journal(void **state)
{
	char got[256];

	logged(1, 0, LOG_ERR, "x.conf:2: wrong", got, sizeof(got));
	assert_string_equal(got, "<3>x.conf:2: wrong\n");
	logged(1, 0, LOG_CRIT, "worse", got, sizeof(got));
	assert_string_equal(got, "<2>worse\n");
	logged(1, 0, LOG_WARNING, "an entry with fields", got, sizeof(got));
	assert_string_equal(got, "");
	logged(1, 3, LOG_ERR, "an entry with a session", got, sizeof(got));
	assert_string_equal(got, "");
}

/* One line of the source cannot fill the journal */
static void not_without_end(void **state)
{
	int before = dup(STDERR_FILENO), fd = memfd_create("stderr", 0);
	struct stat st;

	assert_true(fd >= 0 && before >= 0);
	unsetenv("JOURNAL_STREAM");
	log_init(LOG_INFO);
	dup2(fd, STDERR_FILENO);
	for (unsigned i = 0; i < 100000; i++)
		log_error("again");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_size, 1000 * strlen("again\n"), 10000 * strlen("again\n"));
	close(fd);
	close(before);
}

/* Everything that is in the pipe, as a text */
static char *drain(int fd)
{
	enum { SIZE = 1 << 20 };
	char *text = calloc(1, SIZE + 1);
	size_t len = 0;
	ssize_t n;

	assert_non_null(text);
	while ((n = read(fd, text + len, SIZE - len)) > 0)
		len += (size_t)n;
	return text;
}

/* Nobody waits for a reader that stands still: lines are lost, and that is said when it goes on */
static void reader_stands_still(void **state)
{
	enum { LINES = 500 };
	int before = dup(STDERR_FILENO), ends[2];
	unsigned written = 0, lost = 0;
	char line[1000], *got;

	unsetenv("JOURNAL_STREAM");
	log_init(LOG_INFO);
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	file_unblock_stderr();
	for (unsigned i = 0; i < LINES; i++)
		log_error("%s", line);
	dup2(before, STDERR_FILENO);
	/* The flag is of this process */
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	got = drain(ends[0]);
	for (const char *at = got; (at = strchr(at, '\n')); at++)
		written++;
	assert_in_range(written, 1, LINES - 1);
	free(got);
	dup2(ends[1], STDERR_FILENO);
	log_error("it goes on");
	dup2(before, STDERR_FILENO);
	got = drain(ends[0]);
	assert_int_equal(sscanf(got, "%u lines were lost: nobody read them\nit goes on\n", &lost), 1);
	assert_int_equal(lost, LINES - written);
	assert_non_null(strstr(got, "\nit goes on\n"));
	free(got);
	close(ends[0]);
	close(ends[1]);
	close(before);
}

/* ---- log-pace ---- */

static void test_flood(void **state)
{
	struct log_pace p = {0};
	uint64_t left_out, logged = 0, counted = 0, now = 5000000;

	/* ten messages each millisecond, for 100 seconds */
	for (unsigned i = 0; i < 1000000; i++, now += 100) {
		logged += log_pace_allows(&p, __FILE__, 1, now, &left_out);
		counted += left_out;
	}
	assert_in_range(logged, LOG_PACE_BURST + 100 * LOG_PACE_PER_SECOND - 1,
		LOG_PACE_BURST + 100 * LOG_PACE_PER_SECOND + 1);
	/* another line is not held up; a pause of the first one fills its bucket */
	assert_true(log_pace_allows(&p, __FILE__, 2, now, &left_out));
	assert_int_equal(left_out, 0);
	now += 1000000ull * LOG_PACE_BURST / LOG_PACE_PER_SECOND;
	assert_true(log_pace_allows(&p, __FILE__, 1, now, &left_out));
	assert_int_equal(logged + counted + left_out, 1000000);
	for (unsigned i = 1; i < LOG_PACE_BURST; i++)
		assert_true(log_pace_allows(&p, __FILE__, 1, now, &left_out));
	assert_false(log_pace_allows(&p, __FILE__, 1, now, &left_out));
}

static void test_seldom(void **state)
{
	struct log_pace p = {0};
	uint64_t left_out;

	for (unsigned i = 0; i < 100000; i++)
		assert_true(
			log_pace_allows(&p, __FILE__, 1, i * (1000000ull / LOG_PACE_PER_SECOND), &left_out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_a_terminal),
		cmocka_unit_test(errors_to_the_journal),
		cmocka_unit_test(not_without_end),
		cmocka_unit_test(reader_stands_still),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
