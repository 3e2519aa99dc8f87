/* SPDX-License-Identifier: BSD-2-Clause */
/* What nobody can have written is refused, with a reason. */
#include "reddnd/ledger/test-daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static void wrong_magic(struct test_daemon *d)
{
	ledger_head(d->ledger)->magic++;
}

static void wrong_version(struct test_daemon *d)
{
	ledger_head(d->ledger)->version++;
}

static void used_beyond(struct test_daemon *d)
{
	ledger_head(d->ledger)->used = TEST_SLOTS + 1;
}

static void listeners_beyond(struct test_daemon *d)
{
	ledger_head(d->ledger)->nlisteners = LEDGER_LISTENERS + 1;
}

static void requests_beyond(struct test_daemon *d)
{
	ledger_head(d->ledger)->nrequests = LEDGER_REQUESTS + 1;
}

static void no_device(struct test_daemon *d)
{
	memset(ledger_head(d->ledger)->device, 'x', sizeof(ledger_head(d->ledger)->device));
}

static void state_unknown(struct test_daemon *d)
{
	d->session->state = 77;
}

static void kind_unknown(struct test_daemon *d)
{
	d->session->kind = 0;
}

static void block_beyond(struct test_daemon *d)
{
	d->session->block.offset = TEST_ARENA;
}

static void block_wraps(struct test_daemon *d)
{
	d->session->block.size = UINT64_MAX - LEDGER_PAGE + 1;
}

static void blocks_overlap(struct test_daemon *d)
{
	struct ledger_slot *other = ledger_take(d->ledger, LEDGER_OWN);

	ledger_set_block(other, TEST_BLOCK + TEST_BLOCK - LEDGER_PAGE, TEST_BLOCK);
}

static void queue_beyond(struct test_daemon *d)
{
	d->session->object[2].offset = TEST_BLOCK - 64;
}

static void queue_wraps(struct test_daemon *d)
{
	d->session->object[3].offset = UINT64_MAX - 63;
}

static void queue_odd(struct test_daemon *d)
{
	d->session->object[2].entries = 17;
}

static void stride_huge(struct test_daemon *d)
{
	d->session->object[3].rq_stride = 1u << 31;
}

static void record_beyond(struct test_daemon *d)
{
	d->session->object[2].db_off = TEST_BLOCK;
}

static void foreign_type(struct test_daemon *d)
{
	test_make(d->session, LEDGER_PD, 99);
}

static void type_unknown(struct test_daemon *d)
{
	test_make(d->session, 99, 99);
}

static void same_handle(struct test_daemon *d)
{
	d->session->object[0].handle = 2;
}

static void same_id(struct test_daemon *d)
{
	d->session->session.cm_id = 7;
}

static void same_number(struct test_daemon *d)
{
	struct ledger_slot *other = ledger_take(d->ledger, LEDGER_SESSION);

	*other = *d->session;
	other->block.offset = 4 * TEST_BLOCK;
	other->session.cm_id = 100;
	for (unsigned i = 0; i < 4; i++)
		other->object[i].handle += 100;
}

static void cq_with_rq(struct test_daemon *d)
{
	for (struct ledger_object *o = d->session->object; o < d->session->object + LEDGER_OBJECTS; o++)
		if (o->type == LEDGER_CQ)
			o->rq_entries = 16;
}

static void number_ahead(struct test_daemon *d)
{
	d->session->session.number = 2;
}

static void no_name(struct test_daemon *d)
{
	d->session->session.offload[0] = '\n';
}

static void slots_wrap(struct test_daemon *d)
{
	d->session->session.slot_addr = UINT64_MAX - 63;
}

static void progress_beyond(struct test_daemon *d)
{
	d->session->session.recycler.progress = TEST_BLOCK;
}

static void progress_odd(struct test_daemon *d)
{
	d->session->session.recycler.progress = 4;
}

static void no_window(struct test_daemon *d)
{
	d->session->session.windows[7] = 2;
}

static void window_beyond(struct test_daemon *d)
{
	d->session->session.windows[0] = UINT32_MAX;
}

static void no_queues(struct test_daemon *d)
{
	ledger_gone(d->session, LEDGER_QP, 6);
}

/* Its sessions would be sought in another device */
static void device_gone(struct test_daemon *d)
{
	ledger_ending(d->device);
}

static void refusals(void **state)
{
	static const struct {
		void (*spoil)(struct test_daemon *d);
		const char *why;
	} cases[] = {
		{wrong_magic, "it is not one"},
		{wrong_version, "it is of another version"},
		{used_beyond, "its slots are of another size"},
		{listeners_beyond, "it has too many listeners"},
		{requests_beyond, "it has too many requests"},
		{no_device, "it names no device"},
		{state_unknown, "a slot is in no known state"},
		{kind_unknown, "a slot is of no known kind"},
		{block_beyond, "a block is not in the arena"},
		{block_wraps, "a block is not in the arena"},
		{blocks_overlap, "two slots have the same memory"},
		{queue_beyond, "a CQ is not in its block"},
		{queue_wraps, "a work queue is not in its block"},
		{queue_odd, "a queue has an impossible size"},
		{stride_huge, "a receive queue has an impossible size"},
		{record_beyond, "a doorbell record is not in its block"},
		{foreign_type, "an object is of a type that its slot cannot have"},
		{type_unknown, "an object is of a type that its slot cannot have"},
		{same_handle, "two objects have one handle"},
		{same_id, "two connections have one id"},
		{same_number, "two sessions have one number"},
		{number_ahead, "a session has an impossible number"},
		{cq_with_rq, "a CQ has a receive queue"},
		{no_name, "a session has no sound names"},
		{slots_wrap, "a session has impossible reply slots"},
		{progress_beyond, "the progress of a session is not in its block"},
		{progress_odd, "the progress of a session is not in its block"},
		{no_queues, "a slot lacks an object"},
		{device_gone, "there are objects of no device"},
		{no_window, "a session has a window that is none"},
		{window_beyond, "a session has a window that is none"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_daemon d = test_daemon_begin();

		cases[i].spoil(&d);
		test_daemon_refused(&d, cases[i].why);
		ledger_free(d.ledger);
	}
}

static void cut_off(void **state)
{
	struct test_daemon d = test_daemon_begin();
	size_t size = LEDGER_PAGE + 3 * sizeof(struct ledger_slot);
	uint8_t *bytes = malloc(size);
	struct ledger_view *v;
	const char *why;

	assert_int_equal(pread(ledger_fd(d.ledger), bytes, size, 0), size);
	assert_int_equal(ledger_parse(bytes, size, &v, &why), 0);
	ledger_view_free(v);
	assert_int_equal(ledger_parse(bytes, size - 1, &v, &why), -EBADMSG);
	assert_string_equal(why, "it is too short");
	assert_int_equal(ledger_parse(bytes, LEDGER_PAGE - 1, &v, &why), -EBADMSG);
	assert_int_equal(ledger_parse(bytes, 0, &v, &why), -EBADMSG);
	free(bytes);
	ledger_free(d.ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
