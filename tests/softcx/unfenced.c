/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unfenced [--fence]: a program with a common mistake: it READs some bytes and WRITEs them on at once, on the
 * same queue. Without the fence flag, the WRITE need not wait for the data of the READ. Exit status: 0 when
 * the bytes arrived, 1 when others did, or after another failure.
 */
#include "tests/lib/rc.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FROM, THROUGH = 64, TO = 128, SLOT = 64, SIZE = 4096 };

int main(int argc, char **argv)
{
	int fence = argc > 1 && strcmp(argv[1], "--fence") == 0 ? IBV_SEND_FENCE : 0;
	struct rc rc;
	struct ibv_qp *qp;
	struct rc_peer peer;
	int status = 0;

	rc_open(&rc, 0, SIZE, MAP_PRIVATE, 4);
	qp = rc_qp(&rc, 4);
	peer = rc_self(&rc, qp);
	rc_connect(qp, &peer);
	memset(rc.mem + FROM, 'x', SLOT);

	struct ibv_sge through = {peer.addr + THROUGH, SLOT, rc.mr->lkey};
	struct ibv_send_wr wr[2] = {
		{.next = &wr[1],
			.sg_list = &through,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.wr.rdma = {peer.addr + FROM, peer.rkey}},
		{.sg_list = &through,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | fence,
			.wr.rdma = {peer.addr + TO, peer.rkey}},
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, wr, &bad) != 0)
		rc_die("ibv_post_send");
	rc_expect(&rc, IBV_WC_SUCCESS);
	if (memcmp(rc.mem + FROM, rc.mem + TO, SLOT) != 0) {
		puts("what arrived is not what was read");
		status = 1;
	}
	ibv_destroy_qp(qp);
	rc_close(&rc);
	return status;
}
