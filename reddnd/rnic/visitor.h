/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * visitor.h - a client in this process, with ordinary verbs and a thread of its own, to try connections with:
 * it connects, sends a word, and waits for a word.
 */
#ifndef RNIC_VISITOR_H
#define RNIC_VISITOR_H

#include <stddef.h>
#include <stdint.h>

struct rnic_visitor;

/** @address: numeric. 0, -ENOMEM, or the error of making a thread. */
int rnic_visitor_start(struct rnic_visitor **visitor, const char *address, uint16_t port, uint64_t word);

/**
 * Waits until it has the answer, or has given up, some seconds after it could not go on. 0: the word is in
 * *@answer. A negative errno, and what failed in @why.
 */
int rnic_visitor_end(struct rnic_visitor *visitor, uint64_t *answer, char *why, size_t size);

#endif
