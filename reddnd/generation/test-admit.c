/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tenant a client belongs to: it asks for an offload that does not exist, so nobody is charged. And for
 * what its tenant is charged. */
#include "reddnd/generation/admit.h"

#include "reddnd/generation/layouts.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { NEAR, SECRET, ANYWHERE, TENANTS, NOW = 1000000 };

static struct catalog_tenant conf[TENANTS];
static struct tenant tenant[TENANTS], *tenants[TENANTS];
static struct catalog catalog = {.tenants = conf};
static const struct generation generation = {.catalog = &catalog, .tenants = tenants};

/* 10.0.0.1, and one that is in no network */
static const uint8_t near[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t far[16] = {[10] = 0xff, [11] = 0xff, [12] = 11, [15] = 1};

static int setup(void **state)
{
	memset(conf, 0, sizeof(conf));
	catalog.ntenants = TENANTS;
	for (unsigned i = 0; i < TENANTS; i++)
		tenants[i] = &tenant[i];
	for (unsigned i = NEAR; i <= SECRET; i++) {
		memcpy(conf[i].networks[0].address, near, sizeof(near));
		conf[i].networks[0].bits = 104;
		conf[i].nnetworks = 1;
	}
	conf[SECRET].has_key = true;
	memset(conf[SECRET].key.bytes, 'k', TOKEN_KEY_MIN);
	conf[SECRET].key.len = TOKEN_KEY_MIN;
	return 0;
}

/* NULL: it is refused before its offload is looked for */
static const struct tenant *tenant_of(const uint8_t address[16], bool token, bool untrusted)
{
	struct reddn_wire_req req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(1),
		.slot_size = htobe32(64),
		.offload = "none"};
	struct token_ends ends = {.port = 7471, .client_qpn = 3};
	const struct admit_from from = {.req = &req, .ends = &ends, .untrusted = untrusted, .now = NOW};
	struct admit_result a = {0};
	struct reddn_wire_rej rej;

	memcpy(ends.client, address, sizeof(ends.client));
	if (token)
		token_make(&conf[SECRET].key, &req, &ends, NOW, req.token);
	assert_true(request_parse(&req, sizeof(req), &a.request, &rej));
	assert_false(admit_client(&generation, &from, &a, &rej));
	assert_int_equal(rej.reason, a.tenant ? REDDN_REJ_OFFLOAD : REDDN_REJ_ACCESS);
	return a.tenant;
}

static void by_address(void **state)
{
	assert_ptr_equal(tenant_of(near, false, false), &tenant[NEAR]);
	assert_ptr_equal(tenant_of(near, true, false), &tenant[SECRET]);
	assert_ptr_equal(tenant_of(far, false, false), &tenant[ANYWHERE]);
	assert_null(tenant_of(far, true, false));
}

/* An address that may be anybody's leads nowhere */
static void by_token_alone(void **state)
{
	assert_ptr_equal(tenant_of(near, false, true), &tenant[ANYWHERE]);
	assert_ptr_equal(tenant_of(near, true, true), &tenant[SECRET]);
	assert_ptr_equal(tenant_of(far, true, true), &tenant[SECRET]);
	catalog.ntenants = ANYWHERE;
	assert_null(tenant_of(near, false, true));
	assert_null(tenant_of(far, false, true));
}

/* Where each session has the CQ of its replies alone, its tenant pays for that too */
static void queues_are_charged(void **state)
{
	enum { SLOTS = 64, LOG_SLOTS = 6, DEPTH = 32, SIZE = 1 << 20, WQES = 3 };
	uint8_t starts[WQES] = {1, 1, 1};
	struct chain_image img = {.nqueues = 1, .queue[0] = {.wqebbs = WQES, .starts = starts}};
	struct queue_layout layouts[LOG_SLOTS + 1] = {[LOG_SLOTS] = {.slots = SLOTS, .size = SIZE}};
	struct catalog_offload in_catalog = {.depth_max = DEPTH};
	struct offload o = {.img = &img, .conf = &in_catalog, .layouts = layouts};

	assert_int_equal(layouts_queue_bytes(&o, DEPTH, false), SIZE);
	o.cq_alone = true;
	/* a ring of 256 WQEBBs: 192 WQEs and a pad of 16 are 208 CQEs; and a page for the doorbell record */
	assert_int_equal(layouts_queue_bytes(&o, DEPTH, false), SIZE + 4096 + 256 * 64);
	o.recycled = true;
	assert_int_equal(layouts_queue_bytes(&o, DEPTH, false), SIZE);
}

/* Bytes of queues for which a client of @o is charged */
static uint64_t charged(struct offload *o, struct catalog_offload *in_catalog, uint8_t flags)
{
	struct reddn_wire_req req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(32),
		.slot_size = htobe32(64),
		.flags = flags};
	struct catalog_tenant in_tenants = {0};
	struct catalog all = {.tenants = &in_tenants, .ntenants = 1, .offloads = in_catalog, .noffloads = 1};
	struct tenant user = {0}, *users = &user;
	const struct generation g = {.catalog = &all, .tenants = &users, .offloads = o};
	const struct token_ends ends = {.port = 7471};
	const struct admit_from from = {.req = &req, .ends = &ends, .now = NOW};
	struct admit_result a = {0};
	struct reddn_wire_rej rej;

	snprintf((char *)req.offload, sizeof(req.offload), "%s", in_catalog->name);
	assert_true(request_parse(&req, sizeof(req), &a.request, &rej));
	if (!admit_client(&g, &from, &a, &rej))
		fail_msg("%s", (const char *)rej.text);
	return a.charge.queue_bytes;
}

/* A client that takes no immediates has more of the arena, and its tenant pays for that */
static void sends_are_charged(void **state)
{
	enum { SLOTS = 256, REPLIES = 64, LOG_SLOTS = 8, DEPTH = 32, SIZE = 1 << 20, MORE = SIZE + 4096 };
	static const struct chain_step step = {.local[0] = {.kind = CHAIN_AT_SCRATCH, .len = 8}};
	static struct chain_desc desc = {.nsteps = 1, .steps = &step};
	struct program program = {.desc = &desc};
	struct chain_image img = {.nqueues = 1};
	struct queue_layout layouts[LOG_SLOTS + 1] = {
		[LOG_SLOTS] = {.slots = SLOTS, .size = SIZE, .sends_size = MORE}};
	struct catalog_offload in_catalog = {.depth_max = DEPTH};
	struct offload o = {
		.program = &program, .img = &img, .conf = &in_catalog, .layouts = layouts, .cpu = true};

	assert_int_equal(layouts_queue_bytes(&o, DEPTH, false), SIZE);
	assert_int_equal(layouts_queue_bytes(&o, DEPTH, true), MORE);
	assert_int_equal(layouts_cpu_queue(&o, SLOTS, false).sends, REPLIES);
	assert_int_equal(layouts_cpu_queue(&o, SLOTS, true).sends, 2 * REPLIES);
	/* and it is charged with the request */
	o.slot_need = 64;
	snprintf(in_catalog.name, sizeof(in_catalog.name), "cpu");
	assert_int_equal(charged(&o, &in_catalog, 0), SIZE);
	assert_int_equal(charged(&o, &in_catalog, REDDN_REQ_NO_IMMEDIATES), MORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(by_address, setup),
		cmocka_unit_test_setup(by_token_alone, setup), cmocka_unit_test(queues_are_charged),
		cmocka_unit_test(sends_are_charged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
