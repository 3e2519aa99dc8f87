/* SPDX-License-Identifier: BSD-2-Clause */
/* SENDs from a queue pair that is set up as connected to a queue pair of another client or of the server. */
#include "tests/hostile/revive.h"

#include <stdio.h>

int hostile_queues(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
		struct ibv_qp_attr path;
		struct raw_client c;

		hostile_prepare(&c);
		raw_start(&c);
		path = revive_path(&c);
		revive(&c, &path, (uint32_t)hostile_number(argv[i]));
		raw_need(hostile_post(&c, &wr, raw_arg_len(&c)) != IBV_WC_SUCCESS,
			"a queue pair of another process accepts a request");
		raw_finish(&c);
	}
	printf("%s: %d\n", raw_case, argc);
	return 0;
}
