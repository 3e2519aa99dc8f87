/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn.h"

#include "tools/common/tool.h"
#include "util/number.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { MOST = 3 /* numbers */, TERMINATED = 128, PATIENCE_S = 10 };

extern char **environ;

static int words_numbers(char **texts, unsigned n, uint64_t *number)
{
	for (unsigned i = 0; i < n; i++)
		if (number_parse(texts[i], 0, UINT64_MAX, &number[i]) < 0)
			return tool_complain("\"%s\" is no number of at most 8 bytes", texts[i]);
	return 0;
}

/* -EINVAL is what another offload returns, too */
static int words_failed(struct reddn *c, int error, const char *program)
{
	if (error == -EINVAL)
		return tool_complain("it takes the address of one host, and an offload of %s.rdn", program);
	if (error == -ERANGE)
		return tool_complain("no offset of the offload reaches the word");
	return tool_complain("%s", call_error(c, error));
}

int words_cas(struct reddn *c, bool json, char **texts)
{
	uint64_t n[MOST], was;
	int r = words_numbers(texts, 3, n);

	if (r)
		return r;
	r = reddn_cas(c, n[0], n[1], n[2], &was);
	if (r < 0)
		return words_failed(c, r, "compare-and-swap");
	if (json)
		printf("{\"was\": %" PRIu64 ", \"swapped\": %s}\n", was, was == n[1] ? "true" : "false");
	else
		printf("%" PRIu64 "\n", was);
	return was != n[1];
}

int words_faa(struct reddn *c, bool json, char **texts)
{
	uint64_t n[MOST], was;
	int r = words_numbers(texts, 2, n);

	if (r)
		return r;
	r = reddn_faa(c, n[0], n[1], &was);
	if (r < 0)
		return words_failed(c, r, "fetch-and-add");
	printf(json ? "{\"was\": %" PRIu64 "}\n" : "%" PRIu64 "\n", was);
	return 0;
}

/* Starts the command with the signals that @mask lets through. */
static int words_spawn(char **command, uint64_t token, const sigset_t *mask, pid_t *child)
{
	posix_spawnattr_t attr;
	char text[32];
	int r;

	snprintf(text, sizeof(text), "%" PRIu64, token);
	r = setenv("REDDN_TOKEN", text, 1) < 0 ? errno : posix_spawnattr_init(&attr);
	if (r)
		return -r;
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawnp(child, *command, NULL, &attr, command, environ);
	posix_spawnattr_destroy(&attr);
	return -r;
}

/* Renews the lease until the command has ended; ends it if another client has taken the lock, by SIGKILL if
 * it goes on for PATIENCE_S, or if this program is to end. Returns its exit status, as shells have it. */
static int words_watch(struct reddn *c, struct reddn_lock *l, const sigset_t *signals, pid_t child)
{
	const uint64_t quarter_ns = l->lease_ms * 250000ull;
	const struct timespec pause = {(time_t)(quarter_ns / 1000000000), (long)(quarter_ns % 1000000000)},
			      patience = {.tv_sec = PATIENCE_S};
	bool lost = false;
	int status, sig;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) != child) {
		if (ended < 0)
			return tool_complain("the exit status of the command is lost: %s", strerror(errno));
		sig = sigtimedwait(signals, NULL, lost ? &patience : &pause);
		if (lost) {
			/* one that is stopped meanwhile, and goes on, has waited for less (signal(7)) */
			if (sig < 0 ? errno == EAGAIN : sig != SIGCHLD)
				kill(child, SIGKILL);
			continue;
		}

		/* a terminal interrupts both */
		if (sig > 0 && sig != SIGCHLD && sig != SIGINT)
			kill(child, sig);
		lost = reddn_lock_renew(c, l) == -EPERM;
		if (lost)
			kill(child, SIGTERM);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : TERMINATED + WTERMSIG(status);
}

static int words_run(struct reddn *c, struct reddn_lock *l, char **command)
{
	sigset_t signals, before;
	int status, r;
	pid_t child;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	/* Whoever started this program may ignore it, and then no child has an exit status */
	signal(SIGCHLD, SIG_DFL);
	r = words_spawn(command, l->token, &before, &child);
	status = r < 0 ? tool_complain("%s: %s", *command, strerror(-r)) : words_watch(c, l, &signals, child);
	r = reddn_unlock(c, l);
	if (r == -EPERM)
		return tool_complain(
			"%s was ended: the lease was over, and another client has the lock", *command);
	return r < 0 ? tool_complain("the lock is not given back: %s", call_error(c, r)) : status;
}

int words_lock(struct reddn *c, uint32_t lease_ms, int wait_ms, char **texts)
{
	struct reddn_lock l = {.lease_ms = lease_ms};
	bool dashes = strcmp(texts[1], "--") == 0 && texts[2];
	int r = words_numbers(texts, 1, &l.word);

	if (r)
		return r;
	r = reddn_lock(c, &l, wait_ms);
	if (r == -EAGAIN)
		return TOOL_FAIL(1, "another client has the lock");
	return r < 0 ? words_failed(c, r, "compare-and-swap") : words_run(c, &l, texts + 1 + dashes);
}
