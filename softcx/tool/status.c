/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/tool.h"
#include "util/array.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAKED = 3 };

/* Sends @word and receives the JSON that the NIC answers in a file; NULL when it does not. The caller puts
 * it. */
static struct json_object *tool_ask_json(int fd, const char *word)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct json_object *o;
	int file;

	if (send(fd, word, strlen(word), MSG_NOSIGNAL) < 0 || recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != 1 ||
		msg.msg_controllen < CMSG_LEN(sizeof(int)))
		return NULL;
	memcpy(&file, CMSG_DATA(&control.hdr), sizeof(file));
	/* the descriptor shares its offset with the NIC's, which never moved it */
	o = json_object_from_fd(file);
	close(file);
	return o;
}

/* ---- text ------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_string(v) : "";
}

static void print_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == '_' ? ' ' : *name, out);
}

static void print_object(FILE *out, struct json_object *o)
{
	const char *separator = "";

	fprintf(out, "  %-8s ", text_of(o, "kind"));
	json_object_object_foreach(o, name, value)
	{
		if (strcmp(name, "kind") == 0)
			continue;
		fputs(separator, out);
		print_name(out, name);
		if (!json_object_is_type(value, json_type_boolean))
			fprintf(out, " %s", json_object_get_string(value));
		separator = ", ";
	}
	fputc('\n', out);
}

/* One paragraph for each file of the array: a line for the file, then one for each object. */
static void tool_print_files(FILE *out, struct json_object *files)
{
	for (size_t i = 0; i < json_object_array_length(files); i++) {
		struct json_object *file = json_object_array_get_idx(files, i), *objects;

		fprintf(out, "%-8s process %s %s\n", text_of(file, "file"), text_of(file, "pid"),
			text_of(file, "program"));
		if (!json_object_object_get_ex(file, "objects", &objects))
			continue;
		for (size_t k = 0; k < json_object_array_length(objects); k++)
			print_object(out, json_object_array_get_idx(objects, k));
	}
}

/* ---- watched programs ------------------------------------------------------------------- */

static volatile pid_t child;

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* Terminals send the first two to the program as well; the others are for it when they come to us. */
static void keep_signals_off(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN},
			 pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
}

/* False: something was left. */
static bool report(struct json_object *o)
{
	struct json_object *left, *open;

	if (json_object_object_get_ex(o, "open", &open) && json_object_get_int64(open))
		fprintf(stderr,
			"softcx: %s device files are still open in processes that the command started\n",
			json_object_get_string(open));
	if (!json_object_object_get_ex(o, "left", &left) || json_object_array_length(left) == 0)
		return true;
	fprintf(stderr, "softcx: objects that were not destroyed before their file was closed:\n");
	tool_print_files(stderr, left);
	return false;
}

int tool_run_watched(int fd, const char *path, char **argv)
{
	struct json_object *o;
	char answer[8];
	int status;
	bool clean;

	/* Orphans of the program become ours: the NIC recognises files of our descendants by their ancestors.
	 */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (send(fd, "watch", 5, MSG_NOSIGNAL) < 0 || recv(fd, answer, sizeof(answer), 0) != 2) {
		fprintf(stderr,
			"softcx: the NIC does not watch for what is left behind; is it an older one?\n");
		return 125;
	}
	child = fork();
	if (child < 0) {
		fprintf(stderr, "softcx: fork: %s\n", strerror(errno));
		return 125;
	}
	if (child == 0) {
		execv(path, argv);
		fprintf(stderr, "softcx: %s: %s\n", path, strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	keep_signals_off();
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	o = tool_ask_json(fd, "left");
	if (!o) {
		fprintf(stderr, "softcx: the NIC has ended before it could say what is left\n");
		return 125;
	}
	clean = report(o);
	json_object_put(o);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : clean ? 0 : LEAKED;
}

static int64_t get(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_status(struct json_object *o)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	struct json_object *devs;

	printf("NIC      process %lld in %s, seed %lld%s%s%s%s%s\n", (long long)get(o, "pid"), tool_dir,
		(long long)get(o, "seed"), get(o, "lenient") ? ", lenient" : "",
		get(o, "index_check") ? "" : ", no index check", get(o, "qpn_check") ? "" : ", no QPN check",
		get(o, "sync_fence") ? "" : ", WAIT and SEND_EN without fence",
		get(o, "message_limit") ? "" : ", no limit of messages");
	printf("files    %lld open\n", (long long)get(o, "files"));
	if (!json_object_object_get_ex(o, "devices", &devs))
		return;
	for (size_t i = 0; i < json_object_array_length(devs); i++) {
		struct json_object *dev = json_object_array_get_idx(devs, i), *name;

		if (!json_object_object_get_ex(dev, "name", &name))
			continue;
		printf("%-8s", json_object_get_string(name));
		for (unsigned k = 0; k < COUNT(kinds); k++)
			printf("%s%lld %s", k ? ", " : " ", (long long)get(dev, kinds[k]), kinds[k]);
		printf("; since start %lld WQEs, %lld CQEs, %lld bytes\n", (long long)get(dev, "wqes"),
			(long long)get(dev, "cqes"), (long long)get(dev, "bytes"));
	}
}

int tool_status(bool objects, bool json)
{
	int fd = tool_nic_connect();
	struct json_object *o = fd < 0            ? NULL
				: objects || json ? tool_ask_json(fd, "objects")
						  : tool_nic_status(fd);
	struct json_object *files;

	if (!o)
		return tool_no_nic();
	if (json) {
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	} else {
		print_status(o);
		if (json_object_object_get_ex(o, "open_files", &files))
			tool_print_files(stdout, files);
	}
	json_object_put(o);
	return 0;
}
