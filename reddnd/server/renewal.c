/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/renewal.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

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
	log_mute(!rn->number);
	rn->error = generation_open(rn->next);
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

static void finish(struct renewal *rn)
{
	struct generation *next = steal_ptr(&rn->next);
	uint64_t number = rn->number;
	bool reload = rn->reloads;

	close_log(rn);
	if (rn->error < 0 && next)
		generation_unref(steal_ptr(&next));
	rn->busy = false;
	rn->reloads = false;
	rn->number = 0;
	if (reload)
		rn->ops->reloaded(rn->arg, number, rn->error, next, rn->errors ? rn->errors : "");
	else if (number)
		rn->ops->taken(rn->arg, number, rn->error, next, rn->errors ? rn->errors : "");
	else if (next)
		rn->ops->retried(rn->arg, next);
	free(steal_ptr(&rn->errors));
	rn->size = 0;
	rn->ops->over(rn->arg);
	if (rn->nwaiting && !rn->job.canceled)
		begin_next(rn);
}

static void submit(
	struct renewal *rn, void (*run)(struct worker_job *job), void (*done)(struct worker_job *job))
{
	int r;

	rn->job = (struct worker_job){.key = rn, .run = run, .done = done};
	r = worker_submit(rn->parts.worker, &rn->job);
	if (r == 0)
		return; /* the job may have run by now */
	rn->error = r;
	finish(rn);
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

static void begin(struct renewal *rn)
{
	rn->busy = true;
	rn->log = open_memstream(&rn->errors, &rn->size);
}

/* The same catalog, opened again. Who asked gets his number before an error is answered: a job ends later */
static void reopen(struct renewal *rn)
{
	const struct generation *now = rn->ops->now(rn->arg);

	begin(rn);
	rn->error = generation_new(&rn->next, catalog_ref(now->catalog), now, &rn->parts.generation);
	submit(rn, open_all, on_opened);
}

static void begin_next(struct renewal *rn)
{
	enum renewal_kind kind = rn->waiting[0];

	rn->waiting[0] = rn->waiting[1];
	rn->number = rn->last - --rn->nwaiting;
	if (kind == RENEWAL_TAKE) {
		reopen(rn);
		return;
	}
	rn->reloads = true;
	begin(rn);
	submit(rn, load, on_loaded);
}

static uint64_t ask(struct renewal *rn, enum renewal_kind kind)
{
	unsigned i = 0;
	uint64_t number;

	while (i < rn->nwaiting && rn->waiting[i] != kind)
		i++;
	if (i == rn->nwaiting) {
		rn->waiting[rn->nwaiting++] = kind;
		rn->last++;
	}
	number = rn->last - rn->nwaiting + 1 + i;
	if (!rn->busy)
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
	if (!rn->busy)
		reopen(rn);
}
