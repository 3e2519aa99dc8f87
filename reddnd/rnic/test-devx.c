/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading CQEs: ownership over laps, fields, errors. The ring is plain memory, and the device a number. */
#include "reddnd/rnic/qp.h"

#include "mlx5/prm.h"
#include "reddnd/rnic/internal.h"

#include <endian.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { LOG = 2, CQES = 1 << LOG, REQ = 0, RESP_SEND = 2, REQ_ERR = 13, RESP_ERR = 14, INVALID = 15 };

static uint8_t ring[CQES][RNIC_CQE_BYTES];

static struct rnic_cq empty(void)
{
	memset(ring, 0, sizeof(ring));
	for (unsigned i = 0; i < CQES; i++)
		ring[i][63] = INVALID << 4 | 1;
	return (struct rnic_cq){.cqes = ring[0], .log_size = LOG};
}

/* Writes CQE number @n as the device does */
static void produce(
	uint32_t n, uint8_t opcode, uint32_t qpn, uint16_t index, uint32_t length, uint8_t syndrome)
{
	uint8_t *c = ring[n % CQES];
	uint32_t word = htobe32(length);
	uint16_t half = htobe16(index);

	memcpy(c + 44, &word, 4);
	if (syndrome) {
		c[54] = 0x77;
		c[55] = syndrome;
	}
	word = htobe32(0x0au << 24 | qpn);
	memcpy(c + 56, &word, 4);
	memcpy(c + 60, &half, 2);
	c[63] = (uint8_t)(opcode << 4 | (n / CQES & 1));
}

static void test_laps(void **state)
{
	struct rnic_cq cq = empty();
	struct rnic_cqe cqe;

	assert_int_equal(rnic_cq_poll(&cq, &cqe), 0);
	for (uint32_t n = 0; n < 5 * CQES; n++) {
		produce(n, n % 2 ? REQ : RESP_SEND, 0x123456, (uint16_t)(0xfff0 + n), n, 0);
		assert_int_equal(rnic_cq_poll(&cq, &cqe), 1);
		assert_false(cqe.error);
		assert_int_equal(cqe.receive, n % 2 == 0);
		assert_int_equal(cqe.qpn, 0x123456);
		assert_int_equal(cqe.index, (uint16_t)(0xfff0 + n));
		assert_int_equal(cqe.length, n);
		assert_int_equal(rnic_cq_poll(&cq, &cqe), 0);
	}
	assert_int_equal(cq.consumer, 5 * CQES);
}

static void test_peek(void **state)
{
	struct rnic_cq cq = empty();
	struct rnic_cqe cqe;

	for (uint32_t n = 0; n < CQES + 2; n++)
		produce(n, RESP_SEND, 1, 0, 100 + n, 0);
	/* 0 and 1 have been overwritten; CQES + 2 is not there yet */
	assert_int_equal(rnic_cq_peek(&cq, 0, &cqe), 0);
	assert_int_equal(rnic_cq_peek(&cq, 1, &cqe), 0);
	assert_int_equal(rnic_cq_peek(&cq, 2, &cqe), 1);
	assert_int_equal(cqe.length, 102);
	assert_int_equal(rnic_cq_peek(&cq, CQES + 1, &cqe), 1);
	assert_int_equal(cqe.length, 100 + CQES + 1);
	assert_int_equal(rnic_cq_peek(&cq, CQES + 2, &cqe), 0);
}

static void test_errors(void **state)
{
	struct rnic_cq cq = empty();
	struct rnic_cqe cqe;

	produce(0, REQ, 1, 0, 0, 0);
	assert_int_equal(rnic_cq_find_error(&cq, &cqe), 0);
	produce(1, REQ_ERR, 1, 9, 0, CQE_SYND_FLUSH);
	assert_int_equal(rnic_cq_find_error(&cq, &cqe), 1);
	assert_int_equal(cqe.syndrome, CQE_SYND_FLUSH);
	/* The cause, wherever it stands between what it flushed */
	produce(2, RESP_ERR, 1, 7, 0, CQE_SYND_LOCAL_LENGTH);
	produce(3, REQ_ERR, 1, 8, 0, CQE_SYND_FLUSH);
	assert_int_equal(rnic_cq_find_error(&cq, &cqe), 1);
	assert_true(cqe.error);
	assert_true(cqe.receive);
	assert_int_equal(cqe.syndrome, CQE_SYND_LOCAL_LENGTH);
	assert_int_equal(cqe.vendor, 0x77);
	assert_int_equal(cqe.index, 7);
	assert_string_equal(rnic_syndrome_text(cqe.syndrome), "local length error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_peek),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
