/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a recycler may go on that the daemon rings for, and how far one that is found was allowed to. */
#include "reddnd/chain/ring/recycle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct chain_recycle ring_of(uint32_t wqebbs, unsigned slots)
{
	const unsigned sections = chain_recycle_sections(slots);
	struct chain_recycle k = {.ring_wqebbs = wqebbs};

	/* with a pad, but in the largest one */
	for (unsigned g = 0; g < sections; g++)
		k.end[g] = (uint16_t)((g + 1) * (wqebbs / sections) - (wqebbs < CHAIN_MAX_RING ? 3 : 0));
	return k;
}

/* The WQEs of a section are renewed by the one half a lap before it, and not before it is over */
static void half_of_the_sections_are_ahead(void **state)
{
	(void)state;
	for (unsigned slots = CHAIN_RECYCLE_MIN_SLOTS; slots <= 1024; slots *= 2) {
		const unsigned together = chain_recycle_together(slots),
			       half = chain_recycle_sections(slots) / 2;

		assert_int_equal(chain_recycle_may_give(slots, 0), half);
		assert_int_equal(chain_recycle_may_give(slots, together - 1), half);
		assert_int_equal(chain_recycle_may_give(slots, together), half + 1);
		assert_int_equal(chain_recycle_may_give(slots, 1000 * together), half + 1000);
	}
	assert_int_equal(chain_recycle_sections(64) / 2, 2);
	assert_int_equal(chain_recycle_sections(256) / 2, 4);
}

static void indices(void **state)
{
	const struct chain_recycle k = ring_of(512, 64);

	(void)state;
	assert_int_equal(chain_recycle_index(&k, 64, 0), 0);
	assert_int_equal(chain_recycle_index(&k, 64, 1), 125);
	assert_int_equal(chain_recycle_index(&k, 64, 4), 509);
	assert_int_equal(chain_recycle_index(&k, 64, 5), 512 + 125);
	/* in 16 bits */
	assert_int_equal(chain_recycle_index(&k, 64, 4 * 128 + 2), 253);
}

/* Whatever was given is found, in the first laps and in those in which indices wrap */
static void what_was_given_is_found(void **state)
{
	(void)state;
	for (uint32_t ring = LAP_MIN_RING; ring <= CHAIN_MAX_RING; ring *= 2)
		for (unsigned slots = 64; slots <= 256; slots *= 2) {
			const struct chain_recycle k = ring_of(ring, slots);
			const unsigned together = chain_recycle_together(slots),
				       half = chain_recycle_sections(slots) / 2;

			for (uint64_t used = 0; used < 3000; used++)
				for (uint64_t ahead = 0; ahead <= half; ahead++) {
					uint64_t given;

					assert_int_equal(
						chain_recycle_given(&k, slots, used * together,
							chain_recycle_index(&k, slots, used + ahead), &given),
						0);
					assert_int_equal(given, used + ahead);
				}
		}
}

static void what_nobody_gave(void **state)
{
	const struct chain_recycle k = ring_of(512, 64);
	uint64_t given;

	(void)state;
	assert_int_equal(chain_recycle_given(&k, 64, 16, chain_recycle_index(&k, 64, 4), &given), -EBADMSG);
	assert_int_equal(chain_recycle_given(&k, 64, 32, chain_recycle_index(&k, 64, 1), &given), -EBADMSG);
	assert_int_equal(chain_recycle_given(&k, 64, 16, 126, &given), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_the_sections_are_ahead),
		cmocka_unit_test(indices),
		cmocka_unit_test(what_was_given_is_found),
		cmocka_unit_test(what_nobody_gave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
