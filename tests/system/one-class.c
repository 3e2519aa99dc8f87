/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * one-class ADDRESS PORT OFFLOAD TOS: a client with this type of service sends an empty request and takes the
 * reply. Prints the number of its queue pair.
 */
#include "tests/lib/raw-client.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct raw_client c;

	raw_case = "one-class";
	if (argc != 5)
		return 2;
	raw_tos = (uint8_t)atoi(argv[4]);
	raw_prepare(&c, argv[1], argv[2], argv[3]);
	raw_start(&c);
	raw_post_recvs(&c, 1);
	raw_post_sends(&c, 1, raw_arg_len(&c));
	raw_need(raw_replies(&c, 1, NULL) == 1, "no reply");
	printf("%u\n", c.id->qp->qp_num);
	rdma_disconnect(c.id);
	raw_finish(&c);
	return 0;
}
