/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes.h - sets of the values that one byte can have, for the second opinion (check.h), and what a NIC does
 * to bytes.
 *
 * There are few different sets in an image, so each is kept once and known by its number: to compare or copy
 * one is to compare or copy a number. Should there be more than 65,535 of them, a new one becomes that of all
 * values. Not for several threads.
 */
#ifndef TESTS_IMAGE_BYTES_H
#define TESTS_IMAGE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/** Where a value can come from, besides the image. FROM_EXTENT: the locator that an instance is armed with;
 * FROM_COUNT: the count of the request's bytes. */
enum value_origin { FROM_REGION = 1, FROM_CLIENT = 2, FROM_EXTENT = 4, FROM_COUNT = 8, FROM_ALL = 15 };

/** A set of values, with its origins. All zero: none. */
struct bytes {
	uint16_t set;
};

/** Forgets all sets: to be called first, and when no struct bytes is left that anybody will use. */
void bytes_reset(void);

struct bytes bytes_one(uint8_t v);
struct bytes bytes_any(uint8_t from);
bool bytes_have(struct bytes b, uint8_t v);
bool bytes_only(struct bytes b, uint8_t v);
/** True if there is one value. The least one is in @v. */
bool bytes_const(struct bytes b, uint8_t *v);
unsigned bytes_count(struct bytes b);
uint8_t bytes_most(struct bytes b);
/** The least value from @v on; 256 if there is none. */
unsigned bytes_next(struct bytes b, unsigned v);
/** Bits of enum value_origin. */
uint8_t bytes_from(struct bytes b);
/** True if all values and origins of @in are in @b. */
bool bytes_contain(struct bytes b, struct bytes in);

struct bytes bytes_join(struct bytes a, struct bytes b);
/** Those of @b that differ from @v under @mask. */
struct bytes bytes_except(struct bytes b, uint8_t v, uint8_t mask);
/** Whether something in @a and something in @b can be equal under @mask, and whether they can differ. */
void bytes_compare(struct bytes a, struct bytes b, struct bytes mask, bool *equal, bool *differ);
/** Those of @swap where @mask has bits, with those of @old elsewhere. */
struct bytes bytes_mix(struct bytes old, struct bytes swap, struct bytes mask);
/** All that one of CALC (enum wqe_calc, but for sums) can make of one in @a and one in @b. */
struct bytes bytes_calc(uint8_t calc, struct bytes a, struct bytes b);
/** Sums, with carries of @in, and in @out those into the next byte. No carry leaves a bit of @boundary. */
struct bytes bytes_add(struct bytes x, struct bytes y, uint8_t boundary, const bool in[2], bool out[2]);

#endif
