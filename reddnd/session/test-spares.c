/* SPDX-License-Identifier: BSD-2-Clause */
/* Who gets which queues of sessions that ended. The queues are numbers. */
#include "reddnd/session/release.h"
#include "reddnd/session/spares.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MINE, YOURS, TENANTS, IMAGE = 1, OTHER_IMAGE };

static struct tenant tenants[TENANTS];
static const struct offload offload, by_cpu = {.cpu = true};
static struct spares spares;
static sd_event *event;
static uint64_t numbers;

/* ---- in place of queues ---- */

int __wrap_session_make_spare(struct session *s);
void __wrap_session_free_spare(struct session *s);

int __wrap_session_make_spare(struct session *s)
{
	tenant_ref(s->tenant);
	s->offload = NULL;
	return 0;
}

void __wrap_session_free_spare(struct session *s)
{
	s->tenant->refs--;
	free(s);
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	memset(tenants, 0, sizeof(tenants));
	for (unsigned i = 0; i < TENANTS; i++)
		tenants[i].refs = 1;
	numbers = 0;
	spares = (struct spares){.keep_us = 1000000000};
	return sd_event_new(&event) < 0 ? -1 : spares_init(&spares, event);
}

static int teardown(void **state)
{
	(void)state;
	spares_deinit(&spares);
	sd_event_unref(event);
	return tenants[MINE].refs == 1 && tenants[YOURS].refs == 1 ? 0 : -1;
}

/* Returns the number of its queues, or 0 if they are not kept */
static uint64_t ends(unsigned tenant, uint64_t image, bool intact)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->tenant = &tenants[tenant];
	s->offload = &offload;
	s->image = image;
	s->intact = intact;
	s->queues.number = ++numbers;
	if (spares_put(&spares, s))
		return s->queues.number;
	free(s);
	return 0;
}

/* The same of those that it gets; 0: none */
static uint64_t begins(unsigned tenant, uint64_t image, const struct offload *o)
{
	struct session s = {.tenant = &tenants[tenant], .offload = o, .image = image};

	return spares_take(&spares, &s) ? s.queues.number : 0;
}

static void of_the_same_tenant_and_image(void **state)
{
	uint64_t n = ends(MINE, IMAGE, true);

	(void)state;
	assert_int_not_equal(n, 0);
	assert_int_equal(begins(YOURS, IMAGE, &offload), 0);
	assert_int_equal(begins(MINE, OTHER_IMAGE, &offload), 0);
	assert_int_equal(begins(MINE, IMAGE, &by_cpu), 0);
	assert_int_equal(begins(MINE, IMAGE, &offload), n);
	assert_int_equal(begins(MINE, IMAGE, &offload), 0);
}

static void only_intact_ones(void **state)
{
	(void)state;
	assert_int_equal(ends(MINE, IMAGE, false), 0);
	spares.keep_us = 0;
	assert_int_equal(ends(MINE, IMAGE, true), 0);
}

static unsigned kept_of(unsigned tenant)
{
	const struct session *s;
	unsigned n = 0;

	TAILQ_FOREACH (s, &spares.kept, link)
		n += s->tenant == &tenants[tenant];
	return n;
}

/* However many sessions of the others end, a tenant has its part */
static void tenants_share_the_room(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SPARES_MAX; i++)
		assert_int_not_equal(ends(MINE, IMAGE, true), 0);
	assert_int_equal(ends(MINE, IMAGE, true), 0);
	assert_int_equal(ends(YOURS, IMAGE, false), 0);
	assert_int_equal(kept_of(MINE), SPARES_MAX);
	for (unsigned i = 0; i < SPARES_MAX; i++)
		ends(YOURS, IMAGE, true);
	assert_int_equal(kept_of(MINE), SPARES_MAX / 2);
	assert_int_equal(kept_of(YOURS), SPARES_MAX / 2);
	for (unsigned i = 0; i < SPARES_MAX; i++)
		assert_int_equal(ends(MINE, IMAGE, true), 0);
	assert_int_equal(kept_of(YOURS), SPARES_MAX / 2);
	/* the oldest have gone */
	assert_int_equal(begins(MINE, IMAGE, &offload), SPARES_MAX / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_the_same_tenant_and_image, setup, teardown),
		cmocka_unit_test_setup_teardown(only_intact_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(tenants_share_the_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
