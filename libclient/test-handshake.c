/* SPDX-License-Identifier: BSD-2-Clause */
/* What a refusal means to the caller. */
#include "libclient/handshake.h"

#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_errors(void **state)
{
	static const struct {
		uint8_t reason;
		int error; /* as reddn_connect documents it */
	} of[] = {
		{REDDN_REJ_VERSION, -EPROTONOSUPPORT},
		{REDDN_REJ_MALFORMED, -EPROTO},
		{REDDN_REJ_OFFLOAD, -ENOENT},
		{REDDN_REJ_DEPTH, -ERANGE},
		{REDDN_REJ_SLOT, -EMSGSIZE},
		{REDDN_REJ_RESOURCES, -EBUSY},
		{REDDN_REJ_INTERNAL, -EREMOTEIO},
		{REDDN_REJ_SHUTDOWN, -ESHUTDOWN},
		{REDDN_REJ_ACCESS, -EACCES},
		{REDDN_REJ_QUOTA, -EDQUOT},
		{REDDN_REJ_BANNED, -EACCES},
		{REDDN_REJ_UNKNOWN, -ECONNRESET},
		/* these answer no REQ of a session */
		{REDDN_REJ_ENDED, -EPROTO},
		{REDDN_REJ_NOT_ENDED, -EPROTO},
		{REDDN_REJ_DESCRIBED, -EPROTO},
		{REDDN_REJ_DESCRIBED + 1, -EPROTO},
		{UINT8_MAX, -EPROTO},
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(of); i++)
		assert_int_equal(
			reddn_rej_error(&(struct reddn_wire_rej){.reason = of[i].reason}), of[i].error);
}

/* The text comes from outside: it ends, and does nothing to a terminal. */
static void test_text(void **state)
{
	struct reddn_wire_rej sent = {.magic = htobe32(REDDN_WIRE_MAGIC)}, got;
	struct rdma_conn_param param = {.private_data = &sent, .private_data_len = sizeof(sent)};

	(void)state;
	memset(sent.text, '\033', sizeof(sent.text));
	assert_true(reddn_read_rej(&got, &param));
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
	assert_int_equal(strspn(got.text, "?"), sizeof(got.text) - 1);
	sent.magic = 0;
	assert_false(reddn_read_rej(&got, &param));
	param.private_data_len--;
	sent.magic = htobe32(REDDN_WIRE_MAGIC);
	assert_false(reddn_read_rej(&got, &param));
	param.private_data = NULL;
	assert_false(reddn_read_rej(&got, &param));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_text)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
