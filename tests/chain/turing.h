/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turing.h - a Turing machine as an endless loop of a chain: a step is two READs, and no CPU.
 *
 * Region 0 is the table, region 1 the tape, both read and written by the NIC alone while it runs.
 *
 *   table  entry of (symbol, state) at symbol << 8 | state * 8:
 *          symbol to write, twice; direction; opcode of the enable of the next step; state * 8 of the next state
 *   tape   cell x at x << 8 has, for each direction, what the machine needs to know of the cell it moves to:
 *          symbol, number of that cell, of the one to its left, of the one to its right (BE16)
 *
 * A symbol therefore stands in two places, in its left neighbour and in its right neighbour. The READ of a table entry writes
 * both; the READ of a cell gives the next step its symbol and its addresses. The entry of a halting rule
 * makes the enable of the next step a NOP.
 */
#ifndef TESTS_CHAIN_TURING_H
#define TESTS_CHAIN_TURING_H

#include "reddnd/chain/loop.h"
#include "softcx/hw/test-rig.h"

enum { TURING_CELLS = 16384, TURING_START = TURING_CELLS - TURING_CELLS / 8, TURING_TABLE = 512 };

struct turing {
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp qp;
	uint32_t key[4];
	struct chain_env env;
	struct chain_loop_info info;
	uint8_t *table, *tape;
	struct rig_qp boot;
	struct rig_cq boot_cq;
};

enum turing_form {
	TURING_WAITS,  /* a WAIT and a SEND_EN where a READ has patched what is fetched next */
	TURING_FENCES, /* a fenced SEND_EN: for devices whose SEND_EN heeds the fence bit */
};

/** The loop: one step of a machine whose head starts at cell TURING_START in state 0 on a tape of zeroes. */
const struct chain_desc *turing_program(enum turing_form form);

/**
 * A machine on the emulated silicon, with a ring of @wqebbs, not started. @rules in the usual notation: for each state the rules
 * for 0 and 1, "1RB1LC_..."; a state that is not there halts.
 */
void turing_open(struct turing *t, const struct hw_config *cfg, const char *rules, enum turing_form form,
	uint32_t wqebbs);
void turing_start(struct turing *t);
/** When the queue has failed, false and the error in words. */
bool turing_healthy(const struct turing *t, char *why, size_t size);
/** After the machine has halted. */
uint64_t turing_steps(const struct turing *t);
uint64_t turing_progress(const struct turing *t); /* of complete halves of laps; while it runs */
unsigned turing_ones(const struct turing *t);
uint8_t turing_cell(const struct turing *t, unsigned x);
void turing_close(struct turing *t);

#endif
