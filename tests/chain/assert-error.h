/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * assert-error.h - asserts why a chain is refused: by the code and what it names, not by the words.
 */
#ifndef TESTS_CHAIN_ASSERT_ERROR_H
#define TESTS_CHAIN_ASSERT_ERROR_H

#include "reddnd/chain/ir/error.h"

#include <inttypes.h>
#include <string.h>

/** In place of the index of a step: the error names none, or an argument of the request. */
enum { NO_STEP = -1, FIRST_ARGUMENT = 0x10000 };
#define ARGUMENT(n) (FIRST_ARGUMENT + (n))

/** The code and the steps are always compared, the rest if it is given. */
struct fault {
	enum chain_error_code code;
	int at, other;           /* index, ARGUMENT() or NO_STEP */
	const char *name, *what; /* NULL: not compared; "": the error has none */
	const char *label[2];    /* of at and other; NULL: not compared; "": without a label */
	const char *verb;        /* of at; NULL: not compared */
	bool has_numbers, has_lines;
	uint64_t number[3];
	unsigned line[2]; /* of at and other; 0: without a line */
};

/** Members of a struct fault: all numbers (0 where one is left out), and the lines of both steps. */
#define NUMBERS(...) .has_numbers = true, .number = {__VA_ARGS__}
#define LINES(...) .has_lines = true, .line = {__VA_ARGS__}
#define LABELS(...) .label = {__VA_ARGS__}

/** WRONG(code, at, other), then further members. */
#define WRONG(reason, step, other_step, ...)                                                                 \
	(struct fault)                                                                                       \
	{                                                                                                    \
		.code = CHAIN_E_##reason, .at = (step), .other = (other_step), ##__VA_ARGS__                 \
	}
#define FINE WRONG(NONE, NO_STEP, NO_STEP)

/* As in struct fault. An error names a step if any member of @at is set. */
static inline int fault_index(const struct chain_error_at *at)
{
	if (at->is_argument)
		return ARGUMENT(at->index);
	return at->verb || at->label[0] || at->index || at->line ? at->index : NO_STEP;
}

static inline bool fault_text_differs(const char *got, const char *want)
{
	return want && strcmp(got ? got : "", want) != 0;
}

/* The first thing that differs, NULL if nothing does */
static inline const char *fault_difference(const struct chain_error *got, const struct fault *want)
{
	if (got->code != want->code)
		return "code";
	if (fault_index(&got->at) != want->at || fault_text_differs(got->at.label, want->label[0]) ||
		fault_text_differs(got->at.verb, want->verb))
		return "first step";
	if (fault_index(&got->other) != want->other || fault_text_differs(got->other.label, want->label[1]))
		return "other step";
	if (want->has_lines && (got->at.line != want->line[0] || got->other.line != want->line[1]))
		return "lines";
	if (want->has_numbers && memcmp(got->number, want->number, sizeof(want->number)) != 0)
		return "numbers";
	if (fault_text_differs(got->name, want->name))
		return "name";
	return fault_text_differs(got->what, want->what) ? "what" : NULL;
}

#define assert_fault(e, expected)                                                                            \
	do {                                                                                                 \
		char text_[CHAIN_ERROR_TEXT];                                                                \
		const struct chain_error *got_ = (e);                                                        \
		const struct fault want_ = (expected);                                                       \
		const char *differs_ = fault_difference(got_, &want_);                                       \
                                                                                                             \
		if (differs_)                                                                                \
			fail_msg("%s: got %s of %d and %d (lines %u, %u; numbers %" PRIu64 ", %" PRIu64      \
				 ", %" PRIu64 "; name \"%s\", what \"%s\"), not %s of %d and %d: %s",        \
				differs_, chain_error_name(got_->code), fault_index(&got_->at),              \
				fault_index(&got_->other), got_->at.line, got_->other.line, got_->number[0], \
				got_->number[1], got_->number[2], got_->name ? got_->name : "",              \
				got_->what ? got_->what : "", chain_error_name(want_.code), want_.at,        \
				want_.other, chain_error_text(got_, text_, sizeof(text_)));                  \
	} while (0)

#endif
