/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile.h - shared by the attacks of the hostile client. Each kind of attack is one file.
 *
 * An attack is a function that gets its arguments, prints one line with a summary, and returns 0 if it read
 * and changed nothing but the client's own reply slots. Otherwise it ends the program (raw-client.h).
 */
#ifndef TESTS_HOSTILE_HOSTILE_H
#define TESTS_HOSTILE_HOSTILE_H

#include "tests/lib/raw-client.h"

enum { HOSTILE_FILLER = 0xa5, HOSTILE_MEMORY = RAW_DEPTH * RAW_SLOT };

/** The server, from the command line. */
extern const char *hostile_address, *hostile_port, *hostile_offload;

/** Random numbers in [0, @below); a seed gives the same numbers each time. */
void hostile_seed(uint64_t seed);
uint64_t hostile_random(uint64_t below);

/** The number in @text: decimal, octal or hexadecimal. Ends the program if there is none. */
uint64_t hostile_number(const char *text);

/** raw_prepare() for the server. */
void hostile_prepare(struct raw_client *c);

/** Polls the CQ. True if a reply has completed. */
bool hostile_answered(struct raw_client *c);

/** Posts one work request with the first @len bytes of raw_request() and waits for its completion. */
enum ibv_wc_status hostile_post(struct raw_client *c, struct ibv_send_wr *wr, uint32_t len);

/**
 * Requests a connection for queue pair @qpn with an id that has no queue pair of its own. The owner of @qpn
 * gets the answer and would have to continue. Events of the id come to the channel of @c.
 */
struct rdma_cm_id *hostile_half_open(struct raw_client *c, uint32_t qpn, const void *data, size_t size);

/** A memory key of another process, with its range. */
struct hostile_key {
	uint32_t key;
	uint64_t addr, len;
};

/** Parses KEY:ADDRESS:LENGTH. */
struct hostile_key hostile_parse_key(const char *text);

/** A work request for one-sided operation @op, from 0, on the memory of @k; not an atomic where the device
 * has none for verbs. */
enum { HOSTILE_ONE_SIDED = 5 };
struct ibv_send_wr hostile_one_sided(struct ibv_context *device, unsigned op, const struct hostile_key *k);

/** Attacks. */
int hostile_arguments(int argc, char **argv);
int hostile_bytes(int argc, char **argv);
int hostile_offsets(int argc, char **argv);
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
/** The client that no attack may disturb. */
int hostile_bystander(int argc, char **argv);

#endif
