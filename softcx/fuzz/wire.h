/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - the driver's end of the sockets (proto.h), for programs that misuse it. Messages are sent
 * unchecked; an arena stands for all the memory of an application.
 */
#ifndef SOFTCX_FUZZ_WIRE_H
#define SOFTCX_FUZZ_WIRE_H

#include "softcx/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_ARENA = 4 << 20, /* bytes; an address A of the application is at A modulo this */
	WIRE_FDS = 32,        /* descriptors of a file that are kept */
};

struct wire_arena {
	int fd;
	uint8_t *base;
};
/** 0 or a negative errno. The name is what the NIC's map shows. */
int wire_arena_init(struct wire_arena *arena);
void wire_arena_deinit(struct wire_arena *arena);

struct wire_file {
	int sock, chan; /* -1: closed */
	/* How long to wait for the NIC. wire_open() sets enough for a caller that may ignore the answer; a
	 * caller that needs the answer sets more */
	int patience_ms;
	char device[16];
	int fds[WIRE_FDS]; /* that the NIC has passed */
	unsigned nfds;
	uint8_t *uar; /* the last page that was mapped, or NULL */
};

/** Ways to answer a question of the NIC. */
enum wire_answer {
	WIRE_RIGHT,
	WIRE_NO_MEMORY,  /* there is no such memory */
	WIRE_REFUSE_FDS, /* there is none, but descriptors */
	WIRE_ODD_RESULT, /* a result that is neither */
	WIRE_PRIVATE,    /* only process_vm reaches it */
	WIRE_SHORT,      /* ends before the range does */
	WIRE_GAP,        /* two pieces, not adjacent */
	WIRE_NO_FD,      /* names a descriptor that is not there */
	WIRE_BAD_FD,     /* a descriptor that cannot be mapped */
	WIRE_SMALL_FILE, /* a file that ends before the range does */
	WIRE_HUGE,       /* of addresses and lengths that overflow */
	WIRE_COUNT,      /* announces another number of pieces than it has */
	WIRE_MORE,       /* announces more to come, in small pieces, for ever */
	WIRE_MANY_FDS,   /* as many descriptors as the kernel allows */
	WIRE_CALL,       /* another call instead of an answer */
	WIRE_KIND,       /* the answer to the other question */
	WIRE_SILENCE,    /* hangs up */
	WIRE_ANSWERS,
};

/** Opens a device as the driver does. 0 or a negative errno. */
int wire_open(struct wire_file *file, const char *dir, const char *device);
void wire_close(struct wire_file *file);

/** Sends a greeting with the descriptors of @fds instead of one, or with less than all its bytes. */
void wire_hello(const struct wire_file *file, const struct softcx_hello *hello, size_t len, const int *fds,
	unsigned nfds);
/** Sends a packet on the command channel. False: the NIC has hung up, or never takes it. */
bool wire_send(const struct wire_file *file, const void *bytes, size_t len, const int *fds, unsigned nfds);

/**
 * Receives until the call is done and answers the questions of the NIC, the first one by @how. True: the call
 * is done and @rc is its result. False: the NIC hung up or waits for something; the channel is closed.
 */
bool wire_finish(struct wire_file *file, struct wire_arena *arena, enum wire_answer how, int64_t *rc);

#endif
