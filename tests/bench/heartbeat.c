/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heartbeat - rings a doorbell again and again until SIGTERM, so that the NIC process does not go to sleep.
 * It arms a CQ of its own, which never gets a CQE.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	PERIOD_US = 20
}; /* the NIC process looks for doorbells without a pause for 100 us after the last one */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
	uint64_t n = 0;

	if (!cq) {
		fprintf(stderr, "heartbeat: no device, or no CQ\n");
		return 1;
	}
	signal(SIGTERM, on_stop);
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	printf("heartbeat: every %d us\n", PERIOD_US);
	fflush(stdout);
	for (; !stopped && ibv_req_notify_cq(cq, 0) == 0; n++)
		usleep(PERIOD_US);
	ibv_destroy_cq(cq);
	ibv_close_device(ctx);
	ibv_free_device_list(devices);
	printf("heartbeat: %" PRIu64 " rings\n", n);
	return !stopped;
}
