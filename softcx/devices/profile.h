/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile.h - the devices that softcx can be: what such a device reports of itself, and what it does where
 * devices differ. A profile is a data file, NAME.conf, such as cx5.conf, whose comments explain the syntax.
 *
 * Each fact has a value and a source, or "assumed" for want of one. A profile with a base differs from it in
 * the facts that it gives.
 */
#ifndef SOFTCX_DEVICES_PROFILE_H
#define SOFTCX_DEVICES_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PROFILE_NAME = 64,    /* bytes of a name, with the end */
	PROFILE_TITLE = 120,  /* of a title */
	PROFILE_SOURCE = 200, /* of a source */
	PROFILE_WHY = 512,    /* of the words of a mistake */
	PROFILE_MAX = 256,    /* profiles in a list */
};

/** In the order of cx5.conf. */
enum profile_fact {
	PROFILE_PART,     /* QUERY_DEVICE.vendor_part_id */
	PROFILE_PCI,      /* PCI device id */
	PROFILE_FIRMWARE, /* major << 32 | minor << 16 | sub-minor */
	PROFILE_LINK,     /* enum profile_link */
	PROFILE_SPEED,    /* enum profile_speed, of each of 4 lanes */

	PROFILE_LOG_QPS,    /* the largest number of QPs, log2 */
	PROFILE_LOG_READS,  /* READs and atomics in flight per QP, either side, log2 */
	PROFILE_SEND_WQE,   /* bytes of a send WQE */
	PROFILE_RECV_WQE,   /* bytes of a receive WQE */
	PROFILE_SCHEDULING, /* scheduling elements, that is, rates of queues */

	PROFILE_DEVX,            /* contexts that send firmware commands */
	PROFILE_FORCED_LOOPBACK, /* an RC QP of a RoCE port may have `fl` */
	PROFILE_CROSS_CHANNEL,   /* WAIT, SEND_EN, RECV_EN */
	PROFILE_IMMEDIATES,      /* messages with an immediate; without them it is an RNIC, as of iWARP */
	PROFILE_PATHS,           /* connections have paths and GIDs; without, as of iWARP */
	PROFILE_ATOMICS,         /* any */
	PROFILE_MASKED_ATOMICS,
	PROFILE_CALC,         /* enum profile_calc: scalar CALC, and bytes of its result */
	PROFILE_HOST_ATOMICS, /* old values of 8 bytes arrive in the order of the host, else big-endian */
	PROFILE_CLOCKS,       /* enum profile_clocks: what timestamps of queues can be */
	PROFILE_RECV_ENABLE,  /* RECV_EN enables RECVs; else it completes and does nothing */
	PROFILE_CHECKS_INDEX, /* a WQE with the index of another place is an error */
	PROFILE_CHECKS_QPN,   /* and one with the number of another queue */
	PROFILE_SYNC_FENCE,   /* WAIT, SEND_EN and RECV_EN obey their fence */
	PROFILE_MESSAGE_LIMIT /* a message longer than QPC.log_msg_max is an error */,
	PROFILE_FETCH_GROUP, /* bytes of a managed SQ that are fetched together, past the enabled index too */
	PROFILE_RECV_FETCH,  /* the same of a managed RQ */
	PROFILE_FLUSH,       /* enum profile_flush */
	PROFILE_DOORBELL,    /* enum profile_doorbell: what a doorbell for such an SQ does */
	PROFILE_BEHIND,      /* enum profile_behind: what a SEND_EN does whose index is not ahead */
	PROFILE_FACTS,
};

/** As firmware reports them: roce_cap.qp_ts_format and the like. */
enum profile_clocks { PROFILE_FREE_RUNNING, PROFILE_REAL_TIME, PROFILE_BOTH_CLOCKS };
enum profile_calc { PROFILE_CALC_NONE, PROFILE_CALC_8, PROFILE_CALC_16 };
enum profile_link { PROFILE_ETHERNET, PROFILE_INFINIBAND };
enum profile_speed { PROFILE_EDR, PROFILE_HDR, PROFILE_NDR };

/** Up to where a managed SQ is flushed when it fails: to what was enabled, or to its doorbell record. */
enum profile_doorbell { PROFILE_DOORBELL_ERROR, PROFILE_DOORBELL_IGNORED, PROFILE_DOORBELL_MOVES };
enum profile_behind { PROFILE_BEHIND_IGNORED, PROFILE_BEHIND_AROUND /* runs the whole ring */ };
enum profile_flush { PROFILE_FLUSH_ENABLED, PROFILE_FLUSH_DOORBELL };

struct profile {
	char name[PROFILE_NAME]; /* of the file, without folder and .conf */
	char title[PROFILE_TITLE];
	uint64_t value[PROFILE_FACTS]; /* of truths: 0 or 1; of words: their number */
	char source[PROFILE_FACTS][PROFILE_SOURCE];
};

/** The profile of a device for which none is chosen: cx5.conf as it was compiled in, without its sources. */
const struct profile *profile_default(void);

/** The path of profile @name: itself if there is a / in it, else the file of that name. 0 or -ENAMETOOLONG.
 */
int profile_find(const char *name, char *path, size_t size);

/** Reads a profile. 0, or -EINVAL (-ENOENT, ...) with the mistake, its file and line in @why. */
int profile_read(const char *path, struct profile *p, char why[static PROFILE_WHY]);

/**
 * The names of the profiles that come with softcx, in alphabetical order: their number, or a negative errno.
 * The caller frees each name.
 */
int profile_list(char *names[static PROFILE_MAX]);

/** The name of a fact in its file, and its value as text. */
const char *profile_fact_name(enum profile_fact fact);
void profile_fact_text(const struct profile *p, enum profile_fact fact, char *text, size_t size);
/** The kind of a fact's value. */
bool profile_fact_is_truth(enum profile_fact fact);
bool profile_fact_is_number(enum profile_fact fact);

#endif
