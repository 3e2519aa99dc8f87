/* SPDX-License-Identifier: BSD-2-Clause */
/* Floods: requests beyond the depth, failing queue pairs, and short connections. */
#include "tests/hostile/hostile.h"

#include <inttypes.h>
#include <stdio.h>

enum { FLOOD = 600 };

int hostile_flood(int argc, char **argv)
{
	struct raw_client c;

	(void)argc;
	(void)argv;
	hostile_prepare(&c);
	raw_start(&c);
	raw_post_recvs(&c, FLOOD);
	raw_post_sends(&c, FLOOD, raw_arg_len(&c));
	raw_need(raw_replies(&c, FLOOD, NULL) == FLOOD, "not every request is answered");
	raw_finish(&c);
	printf("%s: %d requests at once, %d are allowed\n", raw_case, FLOOD, RAW_DEPTH);
	return 0;
}

/* The client's queue pair fails at different moments of a request */
int hostile_qp_error(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (unsigned round = 0; round < 20; round++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
		struct raw_client c;

		hostile_prepare(&c);
		raw_start(&c);
		raw_post_recvs(&c, 64);
		raw_post_sends(&c, round < 10 ? round : 64, raw_arg_len(&c));
		raw_replies(&c, round % 5, NULL);
		raw_need(ibv_modify_qp(c.id->qp, &attr, IBV_QP_STATE) == 0, "to ERR");
		raw_finish(&c);
	}
	printf("%s: 20 times\n", raw_case);
	return 0;
}

/* Returns false if the server refuses */
static bool begins(struct raw_client *c)
{
	int event = raw_connect(c, &c->req, sizeof(c->req));

	raw_need(event == RDMA_CM_EVENT_ESTABLISHED || event == RDMA_CM_EVENT_REJECTED,
		"neither accepted nor refused");
	return event == RDMA_CM_EVENT_ESTABLISHED;
}

int hostile_storm(int argc, char **argv)
{
	uint64_t count = hostile_number(argv[0]), refused = 0;

	(void)argc;
	for (uint64_t i = 0; i < count; i++) {
		struct raw_client c;
		bool served;

		hostile_prepare(&c);
		served = i % 5 > 2 || begins(&c);
		refused += !served;
		switch (served ? i % 5 : 1) {
		case 0: /* like a good client */
			rdma_disconnect(c.id);
			raw_event(&c, RAW_PATIENCE_MS);
			break;
		case 1: /* without a message */
			break;
		case 2: /* in the middle of a request */
			raw_post_recvs(&c, 4);
			raw_post_sends(&c, 4, raw_arg_len(&c));
			break;
		case 3: /* before the answer */ {
			struct rdma_conn_param param = {
				.private_data = &c.req, .private_data_len = sizeof(c.req), .retry_count = 7};

			raw_need(rdma_connect(c.id, &param) == 0, "connect");
			break;
		}
		case 4: /* half open */
			rdma_destroy_id(hostile_half_open(&c, c.id->qp->qp_num, &c.req, sizeof(c.req)));
			break;
		}
		raw_finish(&c);
	}
	printf("%s: %" PRIu64 " connections, %" PRIu64 " of which were refused\n", raw_case, count, refused);
	return 0;
}
