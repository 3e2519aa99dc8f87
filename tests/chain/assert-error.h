/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * assert-error.h - asserts why a chain is refused: by the code and the steps, not by the words.
 */
#ifndef TESTS_CHAIN_ASSERT_ERROR_H
#define TESTS_CHAIN_ASSERT_ERROR_H

#include "reddnd/chain/ir/error.h"

/** A code, and the indices of the steps (or arguments) that the error names; 0 where it names none. */
struct fault {
	enum chain_error_code code;
	unsigned at, other;
};

#define WRONG(reason, at, other)                                                                             \
	(struct fault)                                                                                       \
	{                                                                                                    \
		CHAIN_E_##reason, at, other                                                                  \
	}
#define FINE WRONG(NONE, 0, 0)

#define assert_fault(e, expected)                                                                            \
	do {                                                                                                 \
		char text_[CHAIN_ERROR_TEXT];                                                                \
		const struct chain_error *got_ = (e);                                                        \
		const struct fault want_ = (expected);                                                       \
                                                                                                             \
		if (got_->code != want_.code || got_->at.index != want_.at ||                                \
			got_->other.index != want_.other)                                                    \
			fail_msg("%s of %u and %u, not %s of %u and %u: %s", chain_error_name(got_->code),   \
				got_->at.index, got_->other.index, chain_error_name(want_.code), want_.at,   \
				want_.other, chain_error_text(got_, text_, sizeof(text_)));                  \
	} while (0)

#endif
