/* SPDX-License-Identifier: BSD-2-Clause */
/* one-by-one N OTHERS: N WRITEs on one queue pair, each after the completion of the last, beside others that
 * are idle. */
#include "tests/lib/arg.h"
#include "tests/lib/rc.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

enum { MEM = 4096, DEPTH = 4, MOST = 1000 };

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? arg_number(argv[1], UINT_MAX) : 0;
	unsigned long others = argc == 3 ? arg_number(argv[2], MOST) : 0;
	struct ibv_qp *qp, *idle[MOST];
	struct rc_peer self;
	struct rc rc;

	if (!n) {
		fprintf(stderr, "usage: one-by-one N OTHERS\n");
		return 2;
	}
	rc_open(&rc, 0, MEM, MAP_SHARED, DEPTH);
	for (unsigned long i = 0; i < others; i++)
		idle[i] = rc_qp(&rc, DEPTH);
	qp = rc_qp(&rc, DEPTH);
	self = rc_self(&rc, qp);
	rc_connect(qp, &self);
	while (n--) {
		rc_post(&rc, qp, IBV_WR_RDMA_WRITE, 0, &self, MEM / 2, 8);
		rc_expect(&rc, IBV_WC_SUCCESS);
	}
	ibv_destroy_qp(qp);
	for (unsigned long i = 0; i < others; i++)
		ibv_destroy_qp(idle[i]);
	rc_close(&rc);
	return 0;
}
