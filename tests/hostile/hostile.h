/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile.h - what the attacks of the hostile client share: one kind of attack is one file.
 *
 * An attack is a function that gets its arguments, prints one line that says what was done, and returns 0
 * when nothing was got or changed but the client's own reply slots. Anything else ends the program
 * (raw-client.h).
 */
#ifndef TESTS_HOSTILE_HOSTILE_H
#define TESTS_HOSTILE_HOSTILE_H

#include "tests/lib/raw-client.h"

enum { HOSTILE_FILLER = 0xa5, HOSTILE_MEMORY = RAW_DEPTH * RAW_SLOT };

/** Of the server, as the command line has it. */
extern const char *hostile_address, *hostile_port, *hostile_offload;

/** Numbers in [0, below), always the same ones after the same seed. */
void hostile_seed(uint64_t seed);
uint64_t hostile_random(uint64_t below);

/** Decimal, octal or hexadecimal. */
uint64_t hostile_number(const char *text);

/** raw_prepare() for that server. */
void hostile_prepare(struct raw_client *c);

/** Whether a reply is among what has completed. */
bool hostile_answered(struct raw_client *c);

/** Posts one work request with the first @len bytes of raw_request() and waits for its completion. */
enum ibv_wc_status hostile_post(struct raw_client *c, struct ibv_send_wr *wr, uint32_t len);

/**
 * A connection is asked for by an id that has no queue pair, for queue pair @qpn: its owner is told of the
 * answer, and would have to go on. Its events come to the channel of @c.
 */
struct rdma_cm_id *hostile_half_open(struct raw_client *c, uint32_t qpn, const void *data, size_t size);

/** A memory key of somebody, with where it leads. */
struct hostile_key {
	uint32_t key;
	uint64_t addr, len;
};

/** From KEY:ADDRESS:LENGTH. */
struct hostile_key hostile_parse_key(const char *text);

/** The operations that need a key, and one of them at @k. */
enum { HOSTILE_ONE_SIDED = 5 };
struct ibv_send_wr hostile_one_sided(unsigned op, const struct hostile_key *k);

/** Attacks. */
int hostile_arguments(int argc, char **argv);
int hostile_bytes(int argc, char **argv);
int hostile_requests(int argc, char **argv);
int hostile_lengths(int argc, char **argv);
int hostile_keys(int argc, char **argv);
int hostile_guesses(int argc, char **argv);
int hostile_invalidate(int argc, char **argv);
int hostile_slots(int argc, char **argv);
int hostile_queues(int argc, char **argv);
int hostile_states(int argc, char **argv);
int hostile_flood(int argc, char **argv);
int hostile_qp_error(int argc, char **argv);
int hostile_storm(int argc, char **argv);
int hostile_middle(int argc, char **argv);
int hostile_connects(int argc, char **argv);
int hostile_tokens(int argc, char **argv);
/** And who must not notice. */
int hostile_bystander(int argc, char **argv);

#endif
