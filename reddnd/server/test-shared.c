/* SPDX-License-Identifier: BSD-2-Clause */
/* What one daemon has on record the next one has too, and nothing in the file makes it read beyond that. */
#include "reddnd/server/shared.h"

#include "reddnd/policy/request.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static const uint8_t client[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1};
static const struct end_reason_query session = {.session = 7, .slot_addr = 4096, .slot_rkey = 5};

static int answer(const struct record *r)
{
	struct reddn_wire_rej rej;

	end_reasons_answer(&r->end_reasons, client, &session, &rej);
	return rej.reason;
}

static void goes_on(void **state)
{
	const struct source of = source_of(client, 0);
	struct record *first, *second;
	struct reddn_wire_rej rej;
	int fd;

	assert_int_equal(record_new(&first, &fd), 0);
	assert_true(enforcement_admits(&first->enforcement, client, 1, &rej));
	assert_int_equal(answer(first), REDDN_REJ_UNKNOWN);
	bans_add(&first->enforcement.banned, &of, 1000, 0, "a reason", 1);
	end_reasons_add(&first->end_reasons, client, 0, &session, REDDN_WIRE_END_OPERATOR, "another");
	record_free(first);
	assert_int_equal(record_open(&second, fd), 0);
	assert_false(enforcement_admits(&second->enforcement, client, 1, &rej));
	assert_true(enforcement_admits(&second->enforcement, client, 1001, &rej));
	assert_int_equal(answer(second), REDDN_REJ_ENDED);
	record_free(second);
	close(fd);
}

static void of_a_stranger(void **state)
{
	struct record *r;
	struct reddn_wire_rej rej;
	int fd, other = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(record_new(&r, &fd), 0);
	memset(&r->enforcement, 0xff, sizeof(r->enforcement));
	memset(&r->end_reasons, 0xff, sizeof(r->end_reasons));
	record_free(r);
	assert_int_equal(record_open(&r, fd), 0);
	assert_true(enforcement_admits(&r->enforcement, client, 1, &rej));
	assert_int_equal(answer(r), REDDN_REJ_UNKNOWN);
	end_reasons_add(&r->end_reasons, client, 0, &session, REDDN_WIRE_END_OPERATOR, "another");
	assert_int_equal(answer(r), REDDN_REJ_ENDED);
	r->version++;
	record_free(r);
	assert_int_equal(record_open(&r, fd), -EBADMSG);
	assert_int_equal(ftruncate(other, sizeof(struct record)), 0);
	assert_int_equal(record_open(&r, other), -EBADMSG);
	close(other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(goes_on), cmocka_unit_test(of_a_stranger)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
