/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of all kinds, opened in an own directory. */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static char dir[PATH_MAX];

static const char *at(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int make(void **state)
{
	char made[] = "/tmp/test-file-XXXXXX", target[2 * PATH_MAX];
	FILE *f;

	if (!mkdtemp(made) || !realpath(made, dir) || mkdir(at("d"), 0700) < 0 ||
		mkfifo(at("fifo"), 0600) < 0)
		return -1;
	f = fopen(at("d/plain"), "w");
	if (!f || fputs("seven b", f) < 0 || fclose(f) < 0)
		return -1;
	strcpy(target, at("d/plain"));
	if (symlink(target, at("link")) < 0 || symlink("d", at("other")) < 0 ||
		symlink("loop", at("loop")) < 0)
		return -1;
	return 0;
}

static int removed(void **state)
{
	const char *names[] = {"d/plain", "fifo", "link", "other", "loop"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(at(names[i]));
	return rmdir(at("d")) < 0 || rmdir(dir) < 0;
}

static int open_and_close(int fd)
{
	if (fd < 0)
		return fd;
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return 0;
}

static void only_regular_files(void **state)
{
	assert_int_equal(open_and_close(file_open(at("d/plain"), O_RDWR)), 0);
	assert_int_equal(open_and_close(file_open(at("link"), O_RDONLY)), 0);
	assert_int_equal(file_open(at("fifo"), O_RDONLY), -EINVAL); /* and does not wait for a writer */
	assert_int_equal(file_open(at("fifo"), O_RDWR), -EINVAL);
	assert_int_equal(file_open(at("d"), O_RDONLY), -EINVAL);
	assert_int_equal(file_open("/dev/null", O_RDONLY), -EINVAL);
	assert_int_equal(file_open(at("none"), O_RDONLY), -ENOENT);
	assert_int_equal(file_open(at("loop"), O_RDONLY), -ELOOP);
}

static void links_in_any_part(void **state)
{
	assert_int_equal(open_and_close(file_open_no_links(at("d/plain"), O_RDWR)), 0);
	assert_int_equal(file_open_no_links(at("link"), O_RDONLY), -ELOOP);
	assert_int_equal(file_open_no_links(at("other/plain"), O_RDONLY), -ELOOP);
	assert_int_equal(file_open_no_links(at("other/none"), O_RDONLY), -ELOOP);
	assert_int_equal(file_open_no_links("/proc/self/fd/0", O_RDONLY), -ELOOP);
	assert_int_equal(file_open_no_links(at("fifo"), O_RDWR), -EINVAL);
	assert_int_equal(file_open_no_links(at("d"), O_RDONLY), -EINVAL);
	assert_int_equal(file_open_no_links(at("none"), O_RDONLY), -ENOENT);
	assert_int_equal(file_open_no_links(at("d/plain/x"), O_RDONLY), -ENOTDIR);
	assert_int_equal(file_open_no_links("/", O_RDONLY), -EINVAL);
	assert_int_equal(file_open_no_links("", O_RDONLY), -EINVAL);
}

static void relative_paths(void **state)
{
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(open_and_close(file_open_no_links("d/plain", O_RDONLY)), 0);
	assert_int_equal(open_and_close(file_open_no_links("./d/../d//plain", O_RDONLY)), 0);
	assert_int_equal(file_open_no_links("other/plain", O_RDONLY), -ELOOP);
	assert_int_equal(file_open_no_links("link", O_RDONLY), -ELOOP);
	assert_int_equal(chdir("/"), 0);
}

static void errors_in_words(void **state)
{
	assert_string_equal(file_error(-EINVAL), "it is no regular file");
	assert_string_equal(file_error(-ELOOP), "a symbolic link is in its path");
	assert_string_equal(file_error(-ENOENT), "No such file or directory");
}

static void reads_as_much_as_there_is(void **state)
{
	char bytes[8] = "........";
	int fd = file_open(at("d/plain"), O_RDONLY);

	assert_int_equal(file_read(fd, bytes, 3), 3);
	assert_memory_equal(bytes, "sev.....", 8);
	assert_int_equal(file_read(fd, bytes, 8), 4);
	assert_memory_equal(bytes, "en b....", 8);
	assert_int_equal(file_read(fd, bytes, 8), 0);
	assert_int_equal(file_read_at(fd, 1, bytes, 3), 3);
	assert_memory_equal(bytes, "eve", 3);
	assert_int_equal(file_read_at(fd, 5, bytes, 8), 2);
	assert_int_equal(file_read_at(fd, 9, bytes, 8), 0);
	close(fd);
	assert_int_equal(file_read(fd, bytes, 8), -EBADF);
}

/* In a child, which cannot report otherwise than by its status */
static void fills_standard_descriptors(void **state)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		close(STDIN_FILENO);
		close(STDERR_FILENO);
		file_fill_standard();
		if (file_open(at("d/plain"), O_RDONLY) <= STDERR_FILENO ||
			read(STDIN_FILENO, &status, 1) != -1 || write(STDERR_FILENO, "x", 1) != -1 ||
			errno != EBADF || close(STDERR_FILENO) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_regular_files),
		cmocka_unit_test(links_in_any_part),
		cmocka_unit_test(relative_paths),
		cmocka_unit_test(errors_in_words),
		cmocka_unit_test(reads_as_much_as_there_is),
		cmocka_unit_test(fills_standard_descriptors),
	};

	return cmocka_run_group_tests(tests, make, removed);
}
