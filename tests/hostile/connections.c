/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that are never completed, and connect requests with random private data.
 */
#include "tests/hostile/hostile.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NO_QPN = 0x800000, MIDDLE_MOST = 400, TURN_MS = 20 };

static void begin(struct raw_client *each, struct raw_client *c, uint32_t qpn)
{
	each->channel = rdma_create_event_channel();
	raw_need(each->channel, "no channel");
	each->id = hostile_half_open(each, qpn, &c->req, sizeof(c->req));
}

static void give_up(struct raw_client *each)
{
	rdma_destroy_id(each->id);
	rdma_destroy_event_channel(each->channel);
}

/*
 * Keeps N connections half open: accepted and never completed. It abandons one after the other without a
 * message. When the server has ended one, another takes its place.
 */
int hostile_middle(int argc, char **argv)
{
	static struct raw_client each[MIDDLE_MOST];
	unsigned n = (unsigned)hostile_number(argv[0]), again = 0, ended = 0;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct raw_client c;

	(void)argc;
	raw_need(n && n <= MIDDLE_MOST, "too many");
	hostile_prepare(&c);
	for (unsigned i = 0; i < n; i++) {
		begin(&each[i], &c, NO_QPN + i);
		raw_expect(&each[i], raw_event(&each[i], RAW_PATIENCE_MS), RDMA_CM_EVENT_CONNECT_RESPONSE);
	}
	printf("%s: %u, none completed\n", raw_case, n);
	fflush(stdout);
	for (unsigned i = 0; poll(&input, 1, TURN_MS) == 0; i = (i + 1) % n) {
		for (unsigned k = 0; k < n; k++) {
			int event = raw_event(&each[k], 0);
			bool gone = event >= 0 && event != RDMA_CM_EVENT_CONNECT_RESPONSE;

			if (!gone && k != i)
				continue;
			ended += gone;
			again++;
			give_up(&each[k]);
			begin(&each[k], &c, NO_QPN + n + again);
		}
	}
	for (unsigned i = 0; i < n; i++)
		give_up(&each[i]);
	raw_finish(&c);
	printf("%s: %u at a time, %u begun anew, %u of which the server had ended\n", raw_case, n, again,
		ended);
	return 0;
}

int hostile_connects(int argc, char **argv)
{
	unsigned accepted = 0, refused = 0;
	struct raw_client c;

	raw_need(argc == 2, "SEED COUNT");
	hostile_seed(hostile_number(argv[0]));
	hostile_prepare(&c);
	for (uint32_t n = (uint32_t)hostile_number(argv[1]); n > 0; n--) {
		uint8_t data[sizeof(c.req)];
		size_t size = hostile_random(8) ? sizeof(data) : hostile_random(sizeof(data) + 1);
		struct rdma_cm_id *id;
		int event;

		memcpy(data, &c.req, sizeof(data));
		for (unsigned i = 1 + (unsigned)hostile_random(4); i > 0; i--)
			data[hostile_random(sizeof(data))] = hostile_random(2) ? (uint8_t)hostile_random(256)
							     : hostile_random(2) ? 0
										 : 255;
		id = hostile_half_open(&c, NO_QPN + n, data, size);
		event = raw_event(&c, RAW_PATIENCE_MS);
		if (event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
			accepted++;
		} else {
			raw_need(event == RDMA_CM_EVENT_REJECTED, "neither accepted nor refused");
			raw_need(be32toh(c.rej.magic) == REDDN_WIRE_MAGIC && c.rej.reason &&
					 memchr(c.rej.text, 0, sizeof(c.rej.text)),
				"refused without a message");
			refused++;
		}
		rdma_destroy_id(id);
	}
	raw_finish(&c);
	printf("%s: %u accepted, %u refused\n", raw_case, accepted, refused);
	return 0;
}
