/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * describe.h - what a program takes and answers, as the text that clients get when they ask:
 * REDDN_REQ_DESCRIBE of protocol/wire.h.
 */
#ifndef PROGRAM_DESCRIBE_H
#define PROGRAM_DESCRIBE_H

#include "reddnd/program/program.h"

/** The text, which the caller frees. NULL: no memory. */
char *program_describe(const struct program *p);

/** "le64", "bytes 12", "max 1024": the type of @field as the text has it. Cut when @size is too small. */
void program_describe_type(const struct program_field *field, char *text, size_t size);

#endif
