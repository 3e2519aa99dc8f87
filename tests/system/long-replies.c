/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long-replies ADDRESS PORT OFFLOAD PLACE COUNT: asks @COUNT times for the record at offset PLACE (three
 * bytes, as big-endian numbers are), up to RAW_DEPTH at a time, and takes what comes, however long it is: its
 * reply slots have few bytes, but its memory key reaches far beyond them. Prints the number of replies, and
 * the bytes that were written behind the slots. Ends when no reply has come for a while, or the server ends
 * the connection.
 */
#include "tests/lib/raw-client.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOT = 640, BEHIND = 1 << 20, BYTES = RAW_DEPTH * SLOT + BEHIND, QUIET_MS = 2000 };

/* Takes one reply. False: there is none for a while, or none any more */
static bool take(struct raw_client *c)
{
	struct ibv_wc wc;

	for (unsigned ms = 0; ms < QUIET_MS;) {
		int r = ibv_poll_cq(c->cq, 1, &wc);

		raw_need(r >= 0, "the CQ cannot be polled");
		if (r > 0 && wc.status != IBV_WC_SUCCESS)
			return false;
		if (r > 0 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			return true;
		if (r > 0)
			continue;
		usleep(1000);
		ms++;
	}
	return false;
}

int main(int argc, char **argv)
{
	unsigned count = argc == 6 ? (unsigned)atoi(argv[5]) : 0, asked = 0, got = 0, behind = 0;
	uint32_t place = argc == 6 ? htobe32((uint32_t)atoi(argv[4])) : 0;
	struct raw_client c;
	struct ibv_mr *mr;
	uint8_t *mem;

	raw_case = "long-replies";
	if (!count)
		return 2;
	raw_prepare(&c, argv[1], argv[2], argv[3]);
	mem = aligned_alloc(4096, (BYTES + 4095) / 4096 * 4096);
	raw_need(mem, "no memory");
	memset(mem, 0, BYTES);
	mr = ibv_reg_mr(c.id->pd, mem, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	raw_need(mr, "no memory region");
	c.req.slot_addr = htobe64((uintptr_t)mem);
	c.req.slot_rkey = htobe32(mr->rkey);
	c.req.slot_size = htobe32(SLOT);
	raw_start(&c);
	memcpy(raw_request(&c), (uint8_t *)&place + 1, 3);
	for (; got < count; got++) {
		for (; asked < count && asked < got + RAW_DEPTH; asked++) {
			raw_post_recvs(&c, 1);
			raw_post_sends(&c, 1, 3);
		}
		if (!take(&c))
			break;
	}
	for (unsigned i = RAW_DEPTH * SLOT; i < BYTES; i++)
		behind += mem[i] != 0;
	printf("replies %u behind %u\n", got, behind);
	rdma_disconnect(c.id);
	rdma_destroy_qp(c.id);
	ibv_dereg_mr(mr);
	return 0;
}
