/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/build.h"

#include <string.h>

#include "tests/lib/cmocka.h"

static const struct chain_step steps[] = {
	{.label = "look", .verb = CHAIN_READ, .line = 3},
	{.verb = CHAIN_SEND_EN},
	{.verb = CHAIN_VERBS, .line = 7},
};
static const struct chain_desc desc = {.steps = steps, .nsteps = 3};

static void assert_text(const struct chain_error *e, const char *expected)
{
	char text[CHAIN_ERROR_TEXT];

	assert_string_equal(chain_error_text(e, text, sizeof(text)), expected);
}

static void steps_names_and_numbers(void **state)
{
	struct chain_error e;

	e = (struct chain_error){0};
	assert_text(&e, "");
	assert_string_equal(chain_error_name(e.code), "NONE");
	assert_int_equal(CHAIN_REFUSE(&e, ENABLE_RACE, .at = chain_error_step(&desc, 0),
				 .other = chain_error_step(&desc, 1), .name = "reply"),
		CHAIN_REFUSED);
	assert_text(&e, "step \"look\" (line 3) and step 1 (send_en) enable queue \"reply\", and either may "
			"be first");
	assert_string_equal(chain_error_name(e.code), "ENABLE_RACE");
	CHAIN_REFUSE(&e, NO_VERB, .at = chain_error_step(&desc, 2), .number = {77});
	assert_text(&e, "step 2 (?) (line 7): there is no verb 77");
	CHAIN_REFUSE(&e, ARGS_OVERLAP, .at = {.is_argument = true, .index = 2},
		.other = {.is_argument = true, .index = 0, .line = 4});
	assert_text(&e, "argument 0 (line 4) and argument 2 fill the same bytes");
	CHAIN_REFUSE(&e, OPCODE, .at = chain_error_step(&desc, 0), .other = chain_error_step(&desc, 0),
		.number = {0x0a}, .what = "write");
	assert_text(&e,
		"step \"look\" (line 3): step \"look\" (line 3) can make its opcode 0xa, which is neither "
		"that of a write nor a NOP's");
	CHAIN_REFUSE(&e, REGION_END, .at = chain_error_step(&desc, 0), .name = "table", .number = {1, 8, 4});
	assert_text(&e, "step \"look\" (line 3): bytes 1 to 8 of region \"table\", which has 4");
	CHAIN_REFUSE(&e, ENABLES_NO_STEP, .at = chain_error_step(&desc, 1), .name = "code");
	assert_text(&e, "step 1 (send_en): queue \"code\" has no step \"\"");
	CHAIN_REFUSE(&e, NO_STEP, .at = chain_error_step(&desc, 1));
	assert_text(&e, "step 1 (send_en): there is no step \"\"");
}

static void every_code_has_words(void **state)
{
	for (enum chain_error_code c = CHAIN_E_NONE + 1; c < CHAIN_ERROR_CODES; c++) {
		struct chain_error e = {.code = c};
		char text[CHAIN_ERROR_TEXT], little[8];
		size_t len = strlen(chain_error_text(&e, text, sizeof(text)));

		assert_in_range(len, sizeof(little), sizeof(text) - 2 * sizeof(e.at.label) - 1);
		assert_null(strpbrk(text, "{}\n"));
		assert_memory_equal(chain_error_text(&e, little, sizeof(little)), text, sizeof(little) - 1);
		assert_int_equal(strlen(little), sizeof(little) - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_names_and_numbers),
		cmocka_unit_test(every_code_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
