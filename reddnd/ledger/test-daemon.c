/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/ledger/test-daemon.h"

#include <errno.h>

#include "tests/lib/cmocka.h"

void test_make(struct ledger_slot *slot, enum ledger_type type, uint32_t handle)
{
	const struct ledger_object o = {
		.type = type, .handle = handle, .number = 0x100 + handle, .cookie = handle};

	ledger_made(slot, &o);
}

void test_make_cq(struct ledger_slot *slot, uint32_t handle, uint64_t offset)
{
	const struct ledger_object o = {
		.type = LEDGER_CQ, .handle = handle, .offset = offset, .entries = 16, .db_off = 64};

	ledger_made(slot, &o);
}

static void test_make_qp(struct ledger_slot *slot, uint32_t handle, uint64_t offset)
{
	const struct ledger_object o = {.type = LEDGER_QP,
		.handle = handle,
		.offset = offset,
		.entries = 64,
		.rq_entries = 16,
		.rq_stride = 64,
		.db_off = 128};

	ledger_made(slot, &o);
}

struct test_daemon test_daemon_begin(void)
{
	struct ledger_session *s;
	struct test_daemon d;

	assert_int_equal(ledger_new(&d.ledger, TEST_SLOTS, TEST_ARENA), 0);
	ledger_set_device(d.ledger, "mlx5_0");
	assert_int_equal(ledger_add_listener(d.ledger, 7), 0);
	d.device = ledger_take(d.ledger, LEDGER_DEVICE);
	test_make(d.device, LEDGER_PD, 0);
	test_make(d.device, LEDGER_UAR, 1);
	ledger_live(d.device);
	d.tenant = ledger_take(d.ledger, LEDGER_TENANT);
	ledger_set_name(d.tenant->tenant.name, "default");
	test_make(d.tenant, LEDGER_PD, 2);
	ledger_live(d.tenant);
	d.session = ledger_take(d.ledger, LEDGER_SESSION);
	ledger_set_block(d.session, TEST_BLOCK, TEST_BLOCK);
	test_make(d.session, LEDGER_UMEM, 3);
	test_make(d.session, LEDGER_MR, 4);
	test_make_cq(d.session, 5, 4096);
	test_make_qp(d.session, 6, 8192);
	s = &d.session->session;
	ledger_head(d.ledger)->last_session = 1;
	s->number = 1;
	s->cm_id = 8;
	s->recycled = 1;
	ledger_set_name(s->tenant, "default");
	ledger_set_name(s->offload, "users");
	s->depth = 16;
	s->slots = 32;
	s->slot_addr = 0x7f0000000000;
	s->slot_size = 4096;
	ledger_live(d.session);
	return d;
}

struct ledger_view *test_daemon_load(const struct test_daemon *d)
{
	struct ledger_view *v = NULL;
	const char *why = "";

	if (ledger_load(ledger_fd(d->ledger), &v, &why) != 0)
		fail_msg("%s", why);
	return v;
}

void test_daemon_refused(const struct test_daemon *d, const char *words)
{
	struct ledger_view *v;
	const char *why = NULL;

	assert_int_equal(ledger_load(ledger_fd(d->ledger), &v, &why), -EBADMSG);
	assert_string_equal(why, words);
}
