/* SPDX-License-Identifier: BSD-2-Clause */
/* What the silicon does where devices differ: each fact of a profile, beside a ConnectX-5. */
#include "softcx/hw/dev.h"
#include "softcx/hw/test-rig.h"

#include <string.h>

static struct profile profile;

/* A ConnectX-5 that differs in one fact. */
static struct hw_config with(enum profile_fact fact, uint64_t value)
{
	profile = *profile_default();
	profile.value[fact] = value;
	return (struct hw_config){.seed = 1, .profile = &profile};
}

static struct hw_config cx5(void)
{
	return (struct hw_config){.seed = 1};
}

static void no_masked_atomics(void **state)
{
	struct rig_one o;

	(void)state;
	for (unsigned form = 0; form < 3; form++) {
		uint64_t *w;

		rig_one_open(&o, with(PROFILE_MASKED_ATOMICS, 0), (struct hw_cq_attr){.log_size = 4},
			(struct rig_opt){0});
		w = rig_alloc(&o.rig, 64);
		if (form == 0)
			wqe_atomic(&o.q, WQE_OP_FETCH_ADD, w + 1, w, 5, 0, SIG);
		else if (form == 1)
			wqe_masked_faa8(&o.q, w + 1, w, 5, 0, SIG);
		else
			wqe_masked_cas8(&o.q, w + 1, w, 5, 0, ~0ull, ~0ull, SIG);
		rig_one_go(&o);
		if (form == 0)
			rig_expect(&o.scq, CQE_OP_REQ);
		else
			rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP);
		assert_int_equal(w[0] != 0, form == 0);
		rig_one_close(&o);
	}
}

/* A message to a managed RQ, and the RECV_EN for it. Returns whether the message arrived. */
static bool arrives(struct hw_config cfg)
{
	struct rig_opt managed = {.managed_recv = true};
	struct rig rig;
	struct rig_cq cq, rcq;
	struct rig_qp a, b;
	bool arrived;
	uint64_t *w;

	rig_open(&rig, &cfg);
	rig_cq_new(&rig, &cq, 4);
	rig_cq_new(&rig, &rcq, 4);
	rig_qp_new(&rig, &a, &cq, &rcq);
	rig_qp_new_with(&rig, &b, &rcq, &rcq, managed);
	rig_connect(&a, &b);
	w = rig_alloc(&rig, 64);
	w[0] = 42;
	rig_recv(&b, 1, w + 1, 8);
	wqe_enable(&b, WQE_OP_RECV_EN, hw_qpn(b.qp), 1, SIG);
	rig_ring(&b);
	rig_run(&rig);
	rig_expect(&rcq, CQE_OP_REQ); /* it completes in any case */
	wqe_send(&a, WQE_OP_SEND, w, 8, 0, 0);
	rig_ring(&a);
	rig_run(&rig);
	arrived = w[1] == 42;
	rig_destroy(&a);
	rig_destroy(&b);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, rcq.cq), 0);
	rig_close(&rig);
	return arrived;
}

static void no_recv_enable(void **state)
{
	(void)state;
	assert_true(arrives(cx5()));
	assert_false(arrives(with(PROFILE_RECV_ENABLE, 0)));
}

static void short_wqes(void **state)
{
	enum { LIMIT = 256, HEAD = 36 }; /* control, remote address, the length of the inline segment */
	uint8_t data[LIMIT] = {1};
	struct rig_one o;

	(void)state;
	for (unsigned longer = 0; longer < 2; longer++) {
		uint8_t *to;

		rig_one_open(&o, with(PROFILE_SEND_WQE, LIMIT), (struct hw_cq_attr){.log_size = 4},
			(struct rig_opt){0});
		to = rig_alloc(&o.rig, LIMIT);
		wqe_inline_write(&o.q, data, LIMIT - HEAD + longer, to, SIG);
		rig_one_go(&o);
		if (longer)
			rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP);
		else
			rig_expect(&o.scq, CQE_OP_REQ);
		rig_one_close(&o);
	}
}

/* What the options --no-index-check and so on do, a profile does. */
static void unchecked(void **state)
{
	struct hw_config cfg = cx5();

	(void)state;
	hw_config_complete(&cfg);
	assert_ptr_equal(cfg.profile, profile_default());
	assert_false(cfg.no_index_check || cfg.no_qpn_check || cfg.no_sync_fence || cfg.no_msg_limit);
	cfg = with(PROFILE_CHECKS_INDEX, 0);
	hw_config_complete(&cfg);
	assert_true(cfg.no_index_check && !cfg.no_qpn_check && !cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_CHECKS_QPN, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && cfg.no_qpn_check && !cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_SYNC_FENCE, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && !cfg.no_qpn_check && cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_MESSAGE_LIMIT, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && !cfg.no_qpn_check && !cfg.no_sync_fence && cfg.no_msg_limit);
	cfg.no_index_check = true; /* an option comes on top */
	hw_config_complete(&cfg);
	assert_true(cfg.no_index_check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_masked_atomics),
		cmocka_unit_test(no_recv_enable),
		cmocka_unit_test(short_wqes),
		cmocka_unit_test(unchecked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
