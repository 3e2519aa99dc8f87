/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conv.h - conversations between real programs and the NIC, as record.c records them: the messages of the
 * driver in every process of a run, in order. Answers about memory and descriptors are left out; a replay
 * gives its own.
 *
 * A file of records: struct conv_record and what follows it, one after the other.
 */
#ifndef SOFTCX_FUZZ_CONV_H
#define SOFTCX_FUZZ_CONV_H

#include "softcx/proto/proto.h"

#include <stddef.h>
#include <stdint.h>

enum { CONV_OPEN, CONV_REQUEST };

struct conv_record {
	uint32_t len;  /* of what follows */
	uint32_t kind; /* OPEN: the device's name follows; REQUEST: a struct softcx_request and its bytes */
	uint64_t file; /* number of the open file within the conversation */
};

struct conv_step {
	unsigned kind;
	unsigned file;   /* from 0 in the order of opening */
	char device[16]; /* of an OPEN */
	uint8_t *bytes;  /* of a REQUEST, struct softcx_request first */
	size_t len;
};

struct conv {
	struct conv_step *steps;
	size_t nsteps;
	unsigned nfiles;
};

/** Reads a file of records; steps whose file was never opened are left out. 0 or a negative errno, -ENODATA
 * when it is empty. */
int conv_load(struct conv *conv, const char *path);
void conv_free(struct conv *conv);

#endif
