/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/renewal.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int renewal_load(const char *path, struct catalog **catalog)
{
	CLEANUP(cleanup_free) char *errors = NULL;
	int r = catalog_load(path, catalog, &errors);

	for (char *save, *line = errors ? strtok_r(errors, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save))
		log_error("%s", line);
	if (r < 0 && r != -EINVAL)
		log_errno(r, "%s", path);
	if (r == 0 && (*catalog)->noffloads == 0)
		log_warning("%s: it has no offloads, so every client is refused", path);
	return r;
}

/* ---- on the thread ---- */

static void load(struct worker_job *job)
{
	struct renewal *rn = (struct renewal *)job;

	log_tee(rn->log);
	rn->error = renewal_load(rn->parts.config, &rn->catalog);
	log_tee(NULL);
}

/* A retry fails as often as the attempt before it, whose errors have been logged */
static void open_all(struct worker_job *job)
{
	struct renewal *rn = (struct renewal *)job;
	const struct served *served = rn->parts.generation.served;

	if (rn->error < 0)
		return;
	log_tee(rn->log);
	log_mute(rn->now.kind == RENEWAL_RETRY);
	rn->error = generation_open(rn->next, NULL, NULL);
	for (unsigned i = 0; i < served->n && rn->error == 0; i++)
		generation_check_room(rn->next, i, rnic_arena_size(served->device[i].arena));
	log_mute(false);
	log_tee(NULL);
}

/* ---- on that of the loop ---- */

static void begin_next(struct renewal *rn);

/* What was logged is in rn->errors from now on */
static void close_log(struct renewal *rn)
{
	if (rn->log)
		fclose(rn->log);
	rn->log = NULL;
	if (rn->size && rn->errors[rn->size - 1] == '\n')
		rn->errors[rn->size - 1] = '\0';
}

/* The only function that changes the state */
static void enter(struct renewal *rn, enum renewal_state state)
{
	assert(state == (rn->state + 1) % RENEWAL_STATES);
	rn->state = state;
}

/* What is reported may lead to the next one, by a client or by a line that waited: that only queues it */
static void finish(struct renewal *rn)
{
	struct generation *next = steal_ptr(&rn->next);
	const char *errors;

	close_log(rn);
	if (rn->error < 0 && next)
		generation_unref(steal_ptr(&next));
	enter(rn, RENEWAL_ENDING);
	errors = rn->errors ? rn->errors : "";
	if (rn->now.kind == RENEWAL_RELOAD)
		rn->ops->reloaded(rn->arg, rn->now.number, rn->error, next, errors);
	else if (rn->now.kind == RENEWAL_TAKE)
		rn->ops->taken(rn->arg, rn->now.number, rn->error, next, errors);
	else if (next)
		rn->ops->retried(rn->arg, next);
	free(steal_ptr(&rn->errors));
	rn->size = 0;
	rn->ops->over(rn->arg);
	enter(rn, RENEWAL_IDLE);
	begin_next(rn);
}

/* Who asked gets his number before an error is answered: a job ends later. There is room for one */
static void submit(
	struct renewal *rn, void (*run)(struct worker_job *job), void (*done)(struct worker_job *job))
{
	int r;

	rn->job = (struct worker_job){.key = rn, .run = run, .done = done};
	r = worker_submit(rn->parts.worker, &rn->job);
	assert(r == 0);
}

static void on_opened(struct worker_job *job)
{
	struct renewal *rn = (struct renewal *)job;

	if (rn->next)
		generation_opened(rn->next);
	if (job->canceled)
		rn->error = -ECANCELED;
	finish(rn);
}

static void on_loaded(struct worker_job *job)
{
	struct renewal *rn = (struct renewal *)job;

	if (job->canceled)
		rn->error = -ECANCELED;
	log_tee(rn->log);
	if (rn->error == 0) {
		rn->error = rn->ops->check(rn->arg, rn->catalog);
		if (rn->error < 0)
			catalog_free(steal_ptr(&rn->catalog));
	}
	if (rn->error == 0)
		rn->error = generation_new(
			&rn->next, steal_ptr(&rn->catalog), rn->ops->now(rn->arg), &rn->parts.generation);
	log_tee(NULL);
	if (rn->error == 0)
		submit(rn, open_all, on_opened);
	else
		finish(rn);
}

/* The same catalog, opened again */
static void reopen(struct renewal *rn)
{
	const struct generation *now = rn->ops->now(rn->arg);

	rn->error = generation_new(&rn->next, catalog_ref(now->catalog), now, &rn->parts.generation);
	submit(rn, open_all, on_opened);
}

/* The only function that begins one */
static void begin_next(struct renewal *rn)
{
	if (rn->state != RENEWAL_IDLE || !rn->nwaiting || rn->job.canceled)
		return;
	enter(rn, RENEWAL_AT_WORK);
	rn->now = rn->waiting[0];
	memmove(&rn->waiting[0], &rn->waiting[1], --rn->nwaiting * sizeof(rn->waiting[0]));
	rn->log = open_memstream(&rn->errors, &rn->size);
	if (rn->now.kind == RENEWAL_RELOAD)
		submit(rn, load, on_loaded);
	else
		reopen(rn);
}

static uint64_t ask(struct renewal *rn, enum renewal_kind kind)
{
	unsigned i = 0;
	uint64_t number;

	while (i < rn->nwaiting && rn->waiting[i].kind != kind)
		i++;
	if (i == rn->nwaiting)
		rn->waiting[rn->nwaiting++] = (struct renewal_request){
			.kind = kind, .number = kind == RENEWAL_RETRY ? 0 : ++rn->last};
	number = rn->waiting[i].number;
	begin_next(rn);
	return number;
}

void renewal_init(
	struct renewal *rn, const struct renewal_parts *parts, const struct renewal_ops *ops, void *arg)
{
	rn->parts = *parts;
	rn->ops = ops;
	rn->arg = arg;
}

uint64_t renewal_reload(struct renewal *rn)
{
	return ask(rn, RENEWAL_RELOAD);
}

uint64_t renewal_take(struct renewal *rn)
{
	return ask(rn, RENEWAL_TAKE);
}

void renewal_retry(struct renewal *rn)
{
	if (!renewal_is_coming(rn))
		ask(rn, RENEWAL_RETRY);
}

bool renewal_is_coming(const struct renewal *rn)
{
	return rn->state == RENEWAL_AT_WORK || rn->nwaiting;
}
