/* SPDX-License-Identifier: BSD-2-Clause */
/* Which address vectors reach the peer, and why the others do not. */
#include "softcx/hw/resp.h"
#include "softcx/hw/test-rig.h"

#include <string.h>

static const uint8_t gid[2][16] = {{0xfe, 0x80, [15] = 1}, {0xfe, 0x80, [15] = 2}};

/* A queue on each of two devices. */
struct two {
	struct rig rig[2];
	struct rig_cq cq[2];
	struct rig_qp q[2];
	struct hw_av av[2];
	unsigned failed; /* WQEs that a trace has seen fail */
	enum hw_lost why;
};

static void on_trace(void *arg, const struct hw_trace *t)
{
	struct two *two = arg;

	if (t->kind == HW_TRACE_WQE && t->syndrome == CQE_SYND_RETRY) {
		two->failed++;
		two->why = (enum hw_lost)t->number;
	}
}

/* @profile: NULL for RoCE; else both are InfiniBand, with the LIDs 2 and 3. */
static void open_two_of(struct two *t, const struct profile *profile)
{
	struct hw_config cfg = {.seed = 2, .profile = profile};

	memset(t, 0, sizeof(*t));
	for (int i = 0; i < 2; i++) {
		cfg.lid = (uint16_t)(2 + i);
		rig_open_gid(&t->rig[i], &cfg, (uint8_t)(i + 1));
		rig_cq_new(&t->rig[i], &t->cq[i], 4);
		rig_qp_new(&t->rig[i], &t->q[i], &t->cq[i], &t->cq[i]);
		if (profile)
			t->av[i] = (struct hw_av){.dlid = (uint16_t)(3 - i)};
		else
			rig_av(&t->av[i], gid[!i]);
	}
	hw_set_trace(t->rig[0].dev, on_trace, t);
}

static void open_two(struct two *t)
{
	open_two_of(t, NULL);
}

static void close_two(struct two *t)
{
	for (int i = 0; i < 2; i++) {
		rig_destroy(&t->q[i]);
		assert_int_equal(hw_cq_destroy(t->rig[i].dev, t->cq[i].cq), 0);
		rig_close(&t->rig[i]);
	}
}

static void connect_two(struct two *t)
{
	for (int i = 0; i < 2; i++) {
		struct hw_qp_mod mod;

		rig_default_mod(&mod);
		mod.av = t->av[i];
		mod.dest_qpn = hw_qpn(t->q[!i].qp);
		rig_qp_to(&t->q[i], HW_INIT);
		assert_int_equal(hw_qp_modify(t->rig[i].dev, t->q[i].qp, HW_RTR, &mod), 0);
		rig_qp_to(&t->q[i], HW_RTS);
	}
}

/* The first queue writes to the second. Returns whether the bytes arrive. */
static bool arrives(struct two *t)
{
	uint8_t *to = rig_alloc(&t->rig[1], 8), *from = rig_alloc(&t->rig[0], 8);
	uint8_t *w;
	const uint8_t *cqe;

	connect_two(t);
	memcpy(from, "arrived", 8);
	w = wqe_rdma(&t->q[0], WQE_OP_WRITE, from, 8, to, SIG, 0);
	put32(w + WQE_RKEY, t->rig[1].key);
	rig_ring(&t->q[0]);
	rig_run(&t->rig[0]);
	rig_settle(&t->rig[0]);
	cqe = rig_cq_next(&t->cq[0]);
	assert_non_null(cqe);
	assert_int_equal(memcmp(to, "arrived", 8) == 0, rig_cqe_op(cqe) == CQE_OP_REQ);
	if (rig_cqe_op(cqe) == CQE_OP_REQ)
		return true;
	assert_int_equal(rig_cqe_synd(cqe), CQE_SYND_RETRY);
	assert_int_equal(t->failed, 1);
	return false;
}

static void good_address(void **state)
{
	struct two t;

	open_two(&t);
	assert_true(arrives(&t));
	close_two(&t);
}

/* @damage one address vector; requests and acknowledgements go different ways. */
static void refuse(void (*damage)(struct hw_av *av), enum hw_lost why)
{
	for (int side = 0; side < 2; side++) {
		struct two t;

		open_two(&t);
		damage(&t.av[side]);
		assert_false(arrives(&t));
		/* the trace of the requester knows its own address vector only */
		assert_int_equal(t.why, side ? HW_LOST_ELSEWHERE : why);
		close_two(&t);
	}
}

static void no_gid(struct hw_av *av)
{
	av->dgid[15] = 77;
}

static void other_mac(struct hw_av *av)
{
	av->dmac[3] ^= 1;
}

static void own_mac(struct hw_av *av)
{
	uint8_t other[16];

	memcpy(other, av->dgid, sizeof(other));
	other[15] ^= 3;
	hw_gid_mac(other, av->dmac);
}

static void no_mac(struct hw_av *av)
{
	memset(av->dmac, 0, sizeof(av->dmac));
}

static void no_hops(struct hw_av *av)
{
	av->hop_limit = 0;
}

static void version_1(struct hw_av *av)
{
	av->sgid_index = RIG_GID_V1;
}

/* Queues of RoCE v1 reach each other, and none of v2. */
static void versions(void **state)
{
	struct two t;

	open_two(&t);
	version_1(&t.av[0]);
	version_1(&t.av[1]);
	assert_true(arrives(&t));
	close_two(&t);
	refuse(version_1, HW_LOST_ELSEWHERE);
}

/* An address that several devices have, as ::1, is that of the sender. */
static void common_address(void **state)
{
	const struct hw_config cfg = {.seed = 1};
	struct rig rig[2];
	struct hw_av av;

	for (int i = 0; i < 2; i++)
		rig_open_gid(&rig[i], &cfg, 1);
	rig_av(&av, gid[0]);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(hw_route(rig[i].dev, &av, NULL), rig[i].dev);
	for (int i = 0; i < 2; i++)
		rig_close(&rig[i]);
}

static void bad_addresses(void **state)
{
	refuse(no_gid, HW_LOST_GID);
	refuse(other_mac, HW_LOST_MAC);
	refuse(own_mac, HW_LOST_MAC);
	refuse(no_mac, HW_LOST_MAC);
	refuse(no_hops, HW_LOST_HOPS);
}

/* IPv4-mapped GIDs and those of EUI-64 interface ids have addresses of their own. */
static void addresses(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	static const uint8_t eui[16] = {0xfe, 0x80, [8] = 0x0a, 1, 2, 0xff, 0xfe, 3, 4, 5};
	uint8_t mac[6];

	hw_gid_mac(v4, mac);
	assert_memory_equal(mac, "\x02\0\x7f\0\0\x01", 6);
	hw_gid_mac(eui, mac);
	assert_memory_equal(mac, "\x08\x01\x02\x03\x04\x05", 6);
}

/* LIDs alone decide, and where there is a GRH its GID has to be the port's. */
static void infiniband(void **state)
{
	static const struct {
		struct hw_av av;
		bool arrives;
		enum hw_lost why;
	} c[] = {
		{{.dlid = 3}, true, HW_LOST_ELSEWHERE},
		{{.dlid = 3, .dgid = {0xfe, 0x80, [15] = 7}}, true, HW_LOST_ELSEWHERE},
		{{.dlid = 3, .grh = true, .dgid = {0xfe, 0x80, [15] = 2}}, true, HW_LOST_ELSEWHERE},
		{{.dlid = 3, .grh = true, .dgid = {0xfe, 0x80, [15] = 1}}, false, HW_LOST_GRH},
		{{.dlid = 4}, false, HW_LOST_LID},
		{{.dlid = 0}, false, HW_LOST_LID},
	};
	struct profile profile = *profile_default();

	profile.value[PROFILE_LINK] = PROFILE_INFINIBAND;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct two t;

		open_two_of(&t, &profile);
		t.av[0] = c[i].av;
		assert_int_equal(arrives(&t), c[i].arrives);
		if (!c[i].arrives)
			assert_int_equal(t.why, c[i].why);
		close_two(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_address),
		cmocka_unit_test(infiniband),
		cmocka_unit_test(bad_addresses),
		cmocka_unit_test(versions),
		cmocka_unit_test(common_address),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
