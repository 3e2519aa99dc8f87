/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * values.h - what the requests of a run have, and what is in its regions: arguments, random bytes, and
 * numbers in either byte order.
 */
#ifndef TESTS_PROGRAMS_VALUES_H
#define TESTS_PROGRAMS_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct run;

uint64_t run_random(struct run *r, uint64_t below);
void run_fill(struct run *r, void *p, size_t n);
void run_arg(struct run *r, const char *name, uint64_t value);
void run_arg_bytes(struct run *r, const char *name, const void *bytes);

/* Numbers of the models */
void run_put_be(uint8_t *p, unsigned bytes, uint64_t v);
void run_put_le(uint8_t *p, unsigned bytes, uint64_t v);
uint64_t run_get_be(const uint8_t *p, unsigned bytes);
uint64_t run_get_le(const uint8_t *p, unsigned bytes);
/** Often small, often close to a power of 256, often anything: what comparisons stumble over. */
uint64_t run_number(struct run *r, unsigned bytes);
/** The same, and as often another one, or a neighbour of it. */
uint64_t run_number_near(struct run *r, uint64_t v, unsigned bytes);

#endif
