/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/shared.h"

#include "reddnd/server/events.h"
#include "reddnd/util/log.h"
#include "util/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAGIC UINT64_C(0x5245444e52454331) /* "REDNREC1" */

int record_new(struct record **out, int *file)
{
	void *mapping;
	int fd = file_new_sealed("reddnd-record", sizeof(struct record), &mapping);

	if (fd < 0)
		return fd;
	*out = mapping;
	(*out)->version = RECORD_VERSION;
	(*out)->bytes = sizeof(struct record);
	__atomic_store_n(&(*out)->magic, MAGIC, __ATOMIC_RELEASE);
	*file = fd;
	return 0;
}

static void make_sound(struct bans *b)
{
	if (b->n > BANS_MAX)
		b->n = 0;
	for (unsigned i = 0; i < BANS_MAX; i++)
		b->bans[i].why[BANS_WHY - 1] = '\0';
}

int record_open(struct record **out, int fd)
{
	struct record *r;
	void *mapping;
	int e = file_map_sealed(fd, sizeof(*r), &mapping);

	if (e < 0)
		return e;
	r = mapping;
	if (r->magic != MAGIC || r->version != RECORD_VERSION || r->bytes != sizeof(struct record)) {
		record_free(r);
		return -EBADMSG;
	}
	make_sound(&r->enforcement.banned);
	make_sound(&r->enforcement.throttled);
	if (r->end_reasons.count >> 63) /* they are numbered from it */
		memset(&r->end_reasons, 0, sizeof(r->end_reasons));
	for (unsigned i = 0; i < END_REASONS_MAX; i++)
		r->end_reasons.kept[i].why[sizeof(r->end_reasons.kept[i].why) - 1] = '\0';
	*out = r;
	return 0;
}

void record_free(struct record *r)
{
	munmap(r, sizeof(*r));
}

enum { REPORT_US = 10000000, REPORTED_AT_ONCE = 16 };

static int on_unlisted(sd_event_source *source, uint64_t usec, void *arg)
{
	struct shared *sh = arg;
	const unsigned bits = sh->record->enforcement.source_bits;
	char why[REFUSALS_WHY];
	struct source of;
	uint64_t more;

	(void)source;
	(void)usec;
	for (unsigned i = 0; i < REPORTED_AT_ONCE && (more = refusals_take(&sh->refusals, &of, why)); i++)
		report_unlisted(sh->events, &of, bits, more, why);
	more = refusals_take_rest(&sh->refusals);
	if (more)
		report_unlisted(sh->events, NULL, bits, more, "");
	sh->reports_unlisted = false;
	return 0;
}

void shared_report_unlisted(struct shared *sh)
{
	if (sh->reports_unlisted || !sh->refusals.pending)
		return;
	sh->reports_unlisted = sd_event_source_set_time_relative(sh->unlisted_timer, REPORT_US) >= 0 &&
			       sd_event_source_set_enabled(sh->unlisted_timer, SD_EVENT_ONESHOT) >= 0;
}

static void on_pacer(void *arg, struct session *s)
{
	struct shared *sh = arg;

	accounting_update(&sh->accounting, s);
}

int shared_init(struct shared *sh, sd_event *event, struct events *events, struct record *record,
	const struct stores_ops *ops, void *arg)
{
	int r;

	sh->events = events;
	sh->record = record;
	r = sd_event_add_time_relative(event, &sh->unlisted_timer, CLOCK_MONOTONIC, 0, 0, on_unlisted, sh);
	if (r >= 0)
		r = sd_event_source_set_enabled(sh->unlisted_timer, SD_EVENT_OFF);
	if (r >= 0)
		r = pacer_init(&sh->pacer, event, on_pacer, sh);
	if (r >= 0)
		r = stores_init(&sh->stores, event, ops, arg);
	return r < 0 ? log_errno(r, "cannot make a timer") : 0;
}

void shared_deinit(struct shared *sh)
{
	stores_deinit(&sh->stores);
	pacer_deinit(&sh->pacer);
	sh->unlisted_timer = sd_event_source_disable_unref(sh->unlisted_timer);
}
