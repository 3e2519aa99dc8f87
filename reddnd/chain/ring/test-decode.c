/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/decode.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/arm.h"
#include "tests/chain/by-hand.h"

#include <string.h>

#include "tests/lib/cmocka.h"

static void steps(void **state)
{
	struct chain_image *img = NULL;
	unsigned slot = 99;

	/* reply: 5 WQEBBs per instance, ring of 32 for 4 slots */
	assert_int_equal(chain_hash_get(&(struct chain_hash_get){.offset_len = 5}, &img), 0);
	assert_string_equal(chain_step_at(img, 4, 0, 2, &slot), "hit0");
	assert_int_equal(slot, 0);
	assert_string_equal(chain_step_at(img, 4, 0, 8, &slot), "hit1");
	assert_int_equal(slot, 1);
	assert_string_equal(chain_step_at(img, 4, 0, 0xffe0 + 19, &slot), "done");
	assert_int_equal(slot, 3);
	assert_string_equal(chain_step_at(img, 4, 0, 20, &slot), "pad");
	assert_int_equal(slot, 4);
	/* the second WQEBB of a READ belongs to it */
	assert_string_equal(chain_step_at(img, 4, 1, 0, &slot), "look0");
	assert_string_equal(chain_step_at(img, 4, 1, 1, &slot), "look0");
	assert_string_equal(chain_step_at(img, 4, 1, 2, NULL), "look1");
	assert_string_equal(chain_step_at(img, 4, 0, 0, NULL), "wait");
	chain_free(img);
}

static void odd_bytes(void **state)
{
	uint8_t wqe[128] = {0};
	char line[300];

	/* an unknown opcode, a DS count of 0 and one beyond what is at hand */
	wqe[WQE_OPCODE] = 0x7e;
	assert_int_equal(chain_decode(wqe, sizeof(wqe), line, sizeof(line)), 1);
	assert_string_equal(line, "    0 qp 0 ds 0 opcode 0x7e");
	wqe[WQE_OPCODE] = WQE_OP_CAS;
	wqe[WQE_DSCOUNT] = 63;
	assert_int_equal(chain_decode(wqe, 16, line, sizeof(line)), 16);
	assert_string_equal(line, "    0 qp 0 ds 63 cas");
	assert_int_equal(chain_decode(wqe, 8, line, sizeof(line)), 1);
	assert_string_equal(line, "");
	/* a line too short is cut, not overrun */
	memset(line, '#', sizeof(line));
	assert_int_equal(chain_decode(wqe, sizeof(wqe), line, 12), 16);
	assert_int_equal(strlen(line), 11);
	assert_int_equal(line[12], '#');
	memset(wqe, 0xff, sizeof(wqe));
	for (unsigned op = 0; op < 256; op++) {
		wqe[WQE_OPCODE] = (uint8_t)op;
		for (size_t avail = 0; avail <= sizeof(wqe); avail += 4)
			chain_decode(wqe, avail, line, sizeof(line));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(odd_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
