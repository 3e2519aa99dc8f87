/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/test-offload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct test_offload test_offload;
struct reddn client;

static struct reddn_host hosts[2];

void test_offload_begin(const struct test_offload *like)
{
	test_offload = *like;
	hosts[0].list = NULL;
	client.connector.opt.flags = 0;
	client.connector.opt.timeout_ms = 1000;
	client.connector.hosts = (struct reddn_hosts){.host = hosts, .n = 1};
}

struct reddn_result test_offload_result(void)
{
	return (struct reddn_result){.value = test_offload.reply, .length = test_offload.reply_max};
}

void reddn_get_info(const struct reddn *c, struct reddn_info *info)
{
	(void)c;
	*info = (struct reddn_info){.nargs = test_offload.nargs, .reply_max = test_offload.reply_max};
}

int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes)
{
	(void)c;
	assert_true(i < test_offload.nargs);
	*kind = test_offload.arg[i].kind;
	*bytes = test_offload.arg[i].bytes;
	return 0;
}

int reddn_call_submit(struct reddn *c, const struct reddn_arg *args, unsigned nargs, uint64_t cookie)
{
	(void)c, (void)cookie;
	assert_int_equal(nargs, test_offload.nargs);
	return test_offload.execute(args, test_offload.reply);
}

int reddn_call(struct reddn *c, const struct reddn_arg *args, unsigned nargs, void *buf, size_t buf_len)
{
	int r = reddn_call_submit(c, args, nargs, 0);

	test_offload.calls++;
	assert_int_equal(buf_len, test_offload.reply_max);
	memcpy(buf, test_offload.reply, buf_len);
	return r;
}
