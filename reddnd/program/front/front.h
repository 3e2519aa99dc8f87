/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front.h - from text to a checked program (ast.h), without regard to the NIC.
 */
#ifndef PROGRAM_FRONT_FRONT_H
#define PROGRAM_FRONT_FRONT_H

#include "reddnd/program/front/ast.h"
#include "reddnd/program/front/source.h"

/**
 * 0 and a tree to be freed with ast_free(); PROGRAM_REFUSED, at least one error is then in @d; -ENOMEM.
 * The tree refers to nothing of @src, @settings or @d.
 */
int front_parse(const struct program_source *src, const struct program_setting *settings, unsigned nsettings,
	struct diag *d, struct ast_program **out);

#endif
