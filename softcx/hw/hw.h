/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hw.h - the emulated silicon: memory keys, queues, completion queues, doorbells and the engine
 * that executes WQEs. It knows no file descriptor of an application, no handle and no system call of the
 * verbs ABI. softcx/uverbs, the "kernel driver", uses it, and softcx/nic runs it.
 *
 * Threads: one at a time. The caller sees to it that no two functions run at once (softcx/nic/hardware.h),
 * but for hw_poll() of devices that have different processing units (pu.h). Errors: 0 or a negative errno;
 * positive values are documented where they occur. Ownership: objects are created and destroyed in pairs;
 * destroying what is still referenced gives -EBUSY (a PD with keys or queues, a CQ with QPs), as firmware
 * does.
 */
#ifndef SOFTCX_HW_HW_H
#define SOFTCX_HW_HW_H

#include "softcx/devices/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct hw_dev;
struct hw_uar;
struct hw_cq;
struct hw_qp;
struct hw_srq;
struct hw_rate;
struct hw_software;

/* ---- memory of applications ------------------------------------------------------------- */

/**
 * A range of application memory pinned for the device. Either mapped here in one piece (@host),
 * or, when it cannot be shared, reached through process_vm_readv/writev of @pid (@host is NULL;
 * only data buffers may be like that, queues and doorbell records may not).
 * Reference counted; the last put calls @release.
 */
struct hw_mem {
	uint8_t *host; /* address here of the byte at @va, or NULL */
	uint64_t va;   /* address of the first byte in the application */
	uint64_t len;  /* bytes */
	pid_t pid;     /* owner, used only when @host is NULL */
	bool writable;
	int refs;
	/* If set, used in place of process_vm: copies between @buf and the owner's @va. False: the memory is
	 * gone */
	bool (*reach)(struct hw_mem *mem, uint64_t va, void *buf, size_t len, bool store);
	void (*release)(struct hw_mem *mem);
	void *priv; /* of the creator */
};

struct hw_mem *hw_mem_get(struct hw_mem *mem);
void hw_mem_put(struct hw_mem *mem); /* NULL is fine */

/* ---- device ----------------------------------------------------------------------------- */

struct costs; /* costs/costs.h */

struct hw_config {
	uint64_t seed;                 /* decides every choice that the hardware is free to make */
	bool lenient;                  /* make the friendliest choice instead: nothing is stale or late */
	const struct profile *profile; /* outlives the device; NULL: profile_default() */
	/* Besides what the profile leaves out */
	bool no_index_check; /* mimic NICs whose WQE index check is switched off */
	bool no_qpn_check;
	bool no_msg_limit;  /* ignore QPC.log_msg_max; no source states that NICs heed it */
	bool no_sync_fence; /* WAIT, SEND_EN and RECV_EN ignore their fence; no source describes such a NIC */
	const struct costs
		*costs; /* of a modelled clock; outlives the device. NULL: use the machine's clock */
	uint16_t lid;   /* of an InfiniBand port: unique, not 0 */
	unsigned pass;  /* WQEs that a hw_poll() executes at most, for callers that act in between; 0: many */
	/* With a modelled clock: another port of the same card, which shares its bus; for hw_dev_new() only.
	 * NULL: none */
	const struct hw_dev *port_of;
};

struct hw_counts { /* live objects; all 0 again when every user has gone */
	unsigned pds, mkeys, uars, cqs, qps, srqs, rates, mems;
	unsigned uars_asleep; /* of @uars */
	/* since start; passes: of hw_poll(); rings: words of software that these found in UARs */
	uint64_t wqes, cqes, bytes, uars_woken, passes, rings;
};

/** Adds what follows from the profile. hw_dev_new() does it for its own copy. */
void hw_config_complete(struct hw_config *cfg);

/** An entry of a port's GID table. */
struct hw_gid {
	uint8_t raw[16];
	bool roce_v1; /* packets of its queues have the header of RoCE v1; else of v2, or of InfiniBand */
};
enum { HW_GIDS = 64 };

/** @gids: up to HW_GIDS of the port. A QP is reached by (any GID of its device, QPN), on InfiniBand by (LID,
 * QPN). The GID of an address may be that of several devices: each reaches itself by it. */
int hw_dev_new(struct hw_dev **dev, const struct hw_config *cfg, const struct hw_gid *gids, unsigned ngids);
void hw_dev_free(struct hw_dev *dev); /* destroys whatever is left */
bool hw_is_infiniband(const struct hw_dev *dev);
uint16_t hw_lid(const struct hw_dev *dev);
/** GID number @index of its port. False if there is none. */
bool hw_gid(const struct hw_dev *dev, unsigned index, uint8_t gid[16]);
/** Whether that GID is one of RoCE v1. */
bool hw_gid_is_v1(const struct hw_dev *dev, unsigned index);
/** A fact of the device's profile. */
uint64_t hw_fact(const struct hw_dev *dev, enum profile_fact fact);
void hw_counts(const struct hw_dev *dev, struct hw_counts *out);
uint32_t hw_clock_khz(const struct hw_dev *dev); /* ticks of timestamps in a millisecond */
/** A time stamp, and the same moment in nanoseconds since 1970. */
void hw_clock_read(const struct hw_dev *dev, uint64_t *ticks, uint64_t *ns);
bool hw_port_up(const struct hw_dev *dev); /* a port that is down neither sends nor receives */

/** Receives the events of the device as a whole: HW_EV_PORT_UP, HW_EV_PORT_DOWN, HW_EV_DEVICE_FATAL. */
struct hw_dev_watch {
	void (*on_event)(void *arg, int event);
	void *arg;
	LIST_ENTRY(hw_dev_watch) link;
};
/** @watch belongs to the caller, who removes it before the device is freed. on_event must not add or remove.
 */
void hw_dev_watch(struct hw_dev *dev, struct hw_dev_watch *watch);
void hw_dev_unwatch(struct hw_dev_watch *watch);

enum hw_pass {
	HW_PASS_NOTHING = 0,
	HW_PASS_LOOKED, /* for rings of other queues on a page that rang, or there are more to look at */
	HW_PASS_WORKED,
	HW_PASS_ANSWERED, /* the same, and ended soon after a CQE that software waits for; there is more */
};
/**
 * One pass of the engine over everything that may have work: doorbells, enabled queues, timers.
 * Bounded work per call. But for HW_PASS_NOTHING: call again at once. The lock of a processing unit may be
 * given up in between.
 */
enum hw_pass hw_poll(struct hw_dev *dev);
/** Nanoseconds until the next timer (RNR, retry) is due; UINT64_MAX when none is pending. */
uint64_t hw_next_timer(const struct hw_dev *dev);

enum hw_trace_kind {
	HW_TRACE_WQE,      /* a WQE left its send queue; flushed ones are not reported */
	HW_TRACE_RECV,     /* a message took a RECV */
	HW_TRACE_CQE,      /* a CQE was written */
	HW_TRACE_BLOCKED,  /* a queue stopped at a WAIT, */
	HW_TRACE_RELEASED, /* and the CQE that it waits for came */
};

/** Why the packets of a queue reach nobody, as far as its address vector shows. */
enum hw_lost {
	HW_LOST_ELSEWHERE, /* not by its address: the other queue is not there, or not ready for it */
	HW_LOST_GID,       /* no port has the GID */
	HW_LOST_MAC,       /* the port with the GID has another MAC address */
	HW_LOST_HOPS,      /* a hop limit of 0 */
	HW_LOST_LID,       /* no port has the LID */
	HW_LOST_GRH,       /* the port with the LID has another GID */
};

/** One event of a trace. */
struct hw_trace {
	uint8_t kind;          /* enum hw_trace_kind */
	uint32_t qpn;          /* of a CQE: whose it is */
	uint16_t idx;          /* of the WQE or RECV */
	uint8_t opcode, opmod; /* of the send WQE */
	uint8_t syndrome;      /* 0: executed */
	uint8_t type;          /* enum hw_qp_type of the queue; not of a CQE */
	uint8_t ds;
	uint32_t cqn; /* of a CQE or WAIT, and which gets the CQE of a RECV */
	/* Of the CQE, or of that which a WAIT waits for; bytes of the message in a RECV; of a WQE that failed
	 * because nobody answered: enum hw_lost */
	uint32_t number;
	/*
	 * ds * 16 bytes, at least 16: the WQE or the scatter list as the hardware fetched it, the CQE. Valid
	 * during the call.
	 */
	const uint8_t *wqe;
};
typedef void (*hw_trace_fn)(void *arg, const struct hw_trace *t);
/** Calls @fn for what happens in the device. NULL: off. */
void hw_set_trace(struct hw_dev *dev, hw_trace_fn fn, void *arg);

/* ---- protection domains, doorbell pages ------------------------------------------------- */

int hw_pd_alloc(struct hw_dev *dev, uint32_t *pdn);
int hw_pd_free(struct hw_dev *dev, uint32_t pdn);

/**
 * A 4 KiB UAR page, shared with the application through a memfd.
 *
 * Software rings by a plain store, so the device has to look. A page that has been quiet for a while falls
 * asleep instead, if all its mappings are guarded: it is taken out of the memfd, so that the next store to it
 * faults. The guard then calls hw_uar_wake().
 */
int hw_uar_alloc(struct hw_dev *dev, struct hw_uar **uar);
/**
 * A page of the same kind that shows the time instead of taking rings: ticks, big-endian, in the first 8
 * bytes. It sleeps while nobody reads it, and a read wakes it. With a modelled clock it shows the time of the
 * newest CQE of the CQs whose @time it is.
 */
int hw_uar_alloc_time(struct hw_dev *dev, struct hw_uar **uar);
int hw_uar_free(struct hw_dev *dev, struct hw_uar *uar); /* calls gone() of its guards */
uint32_t hw_uar_index(const struct hw_uar *uar);
int hw_uar_fd(const struct hw_uar *uar); /* owned by the UAR */
struct hw_uar *hw_uar_find(struct hw_dev *dev, uint32_t index);

/** Notices stores to one mapping of a sleeping page. */
struct hw_uar_guard {
	void (*gone)(void *arg); /* the page is freed; the guard is removed already */
	void *arg;
	LIST_ENTRY(hw_uar_guard) link;
};
/** Adds a mapping; without a guard it keeps the page awake. */
void hw_uar_mapped(struct hw_uar *uar);
void hw_uar_guard(struct hw_uar *uar, struct hw_uar_guard *guard);
void hw_uar_unguard(struct hw_uar *uar, struct hw_uar_guard *guard);
/** Puts the page back and polls it from now on; then the store may be repeated. No effect on an awake page.
 */
void hw_uar_wake(struct hw_uar *uar);
/**
 * Wakes pages that a store brought back without a guard's notice. It looks at some of those that sleep, at
 * the others the next times: a server has thousands. True if pages still sleep.
 */
bool hw_uar_check_asleep(struct hw_dev *dev);
/** True if pages sleep. It looks at none: that is a system call each, with the lock of the queues. */
bool hw_uar_any_asleep(const struct hw_dev *dev);

/** How many rings hw_poll() has found: hw_counts.rings. */
uint64_t hw_rings(const struct hw_dev *dev);
/** True if another device may have left work here: queues to execute or to flush, or an event for later. */
bool hw_has_work(const struct hw_dev *dev);
/** True if hw_poll() may find work that neither a timer nor hw_uar_wake() announces. */
bool hw_must_poll(const struct hw_dev *dev);

/* ---- memory keys ------------------------------------------------------------------------ */

enum { /* as IBV_ACCESS_* */
	HW_LOCAL_WRITE = 1,
	HW_REMOTE_WRITE = 2,
	HW_REMOTE_READ = 4,
	HW_REMOTE_ATOMIC = 8,
};

struct hw_mkey_attr {
	uint32_t pdn;
	uint64_t iova; /* address under which the key knows the first byte */
	uint64_t len;
	unsigned access;
	struct hw_mem *mem; /* a reference is taken */
	uint64_t mem_off;   /* first byte of the key inside @mem */
	bool has_variant;   /* bits 7:0 of the key are @variant; else the device chooses them */
	uint8_t variant;
	bool remote_inval; /* a peer may make it invalid by SEND_INVAL: en_rinval of the key's context */
};

/** @key is both lkey and rkey (index << 8 | variant). A freed key is not handed out again soon. */
int hw_mkey_create(struct hw_dev *dev, const struct hw_mkey_attr *attr, uint32_t *key);
/**
 * Gives @key, as it is, another PD, other rights and other memory, as the driver's UMR does. @attr: all of it
 * but has_variant. -EBUSY while a window shows a part of it.
 */
int hw_mkey_change(struct hw_dev *dev, uint32_t key, const struct hw_mkey_attr *attr);

/* How many indirect keys may lead to memory one by way of another, and how many pieces one may have. Linux's
 * device.h has max_indirection and log_max_klm_list_size; the values of ConnectX-5 are assumed. */
enum { HW_INDIRECTIONS = 4, HW_LOG_MAX_PIECES = 16, HW_MAX_PIECES = 1 << HW_LOG_MAX_PIECES };

struct hw_piece {
	uint64_t va;
	uint32_t key, len;
};

/* A key over other keys of its PD, which are looked up when it is used. */
struct hw_indirect_attr {
	uint32_t pdn;
	uint64_t iova, len;
	unsigned access;
	uint8_t variant;
	bool remote_inval;
	bool umr;  /* UMR may give it other pieces, @max at most */
	bool free; /* unusable until UMR has */
	unsigned max, n;
	const struct hw_piece *pieces; /* copied */
};

/** -EINVAL: no piece or too many are asked for. Windows cannot be bound to it. */
int hw_indirect_create(struct hw_dev *dev, const struct hw_indirect_attr *attr, uint32_t *key);

/** -EBUSY while a window shows a part of it. */
int hw_mkey_destroy(struct hw_dev *dev, uint32_t key);
/** A memory window of @type 1 or 2, which shows nothing until a queue binds it. A key like others, but never
 * an lkey. */
int hw_mw_create(struct hw_dev *dev, uint32_t pdn, unsigned type, uint32_t *key);
int hw_mw_destroy(struct hw_dev *dev, uint32_t index); /* key >> 8: binding changes the variant */

/* ---- software --------------------------------------------------------------------------- */

/**
 * A process, as a modelled clock sees it: one thread, which takes @think_ps for each message that it receives
 * and no time for anything else. With @in_turn it posts whatever it posts after the CQE that it consumed
 * last, of any queue. Reference counted; NULL without memory.
 */
struct hw_software *hw_software_new(uint64_t think_ps, bool in_turn);
struct hw_software *hw_software_get(struct hw_software *software);
void hw_software_put(struct hw_software *software); /* NULL is fine */

/* ---- completion queues ------------------------------------------------------------------ */

struct hw_cq_attr {
	struct hw_mem *buf; /* CQE ring */
	uint64_t buf_off;
	struct hw_mem *db; /* doorbell record: consumer index, arm word */
	uint64_t db_off;
	uint32_t uar;      /* page index where software rings the arm doorbell */
	uint8_t log_size;  /* CQEs */
	uint8_t cqe_bytes; /* 64 or 128 */
	bool oi;           /* ignore overrun */
	bool cc;           /* collapsed: all CQEs into entry 0 */
	/* moderation: an armed CQ fires after @max_count CQEs or @period_us; 0, 0: at once */
	uint16_t period_us, max_count;
	struct hw_software *software;           /* whose CQ it is; a reference is taken; or NULL */
	struct hw_uar *time;                    /* hw_uar_alloc_time(); outlives the CQ; or NULL */
	void (*on_comp)(void *arg);             /* armed CQ fired */
	void (*on_error)(void *arg, int event); /* enum hw_event */
	void *arg;
};

int hw_cq_create(struct hw_dev *dev, const struct hw_cq_attr *attr, struct hw_cq **cq);
int hw_cq_destroy(struct hw_dev *dev, struct hw_cq *cq);
int hw_cq_resize(struct hw_dev *dev, struct hw_cq *cq, struct hw_mem *buf, uint64_t off, uint8_t log_size,
	uint8_t cqe_bytes); /* writes the RESIZE CQE as mlx5 does; -EINVAL: too small for unread CQEs */
int hw_cq_moderate(struct hw_cq *cq, uint16_t period_us, uint16_t max_count);
uint32_t hw_cqn(const struct hw_cq *cq);
struct hw_cq *hw_cq_find(struct hw_dev *dev, uint32_t cqn);
void *hw_cq_arg(const struct hw_cq *cq);         /* what it was made with */
uint32_t hw_cq_producer(const struct hw_cq *cq); /* 24-bit counter WAIT compares with */

/* ---- queue pairs ------------------------------------------------------------------------ */

/* HW_DCI: initiator of the dynamically connected transport; each WQE names a target, HW_DCT. */
enum hw_qp_type { HW_RC, HW_UC, HW_UD, HW_DCI, HW_DCT };
enum hw_qp_state { HW_RST, HW_INIT, HW_RTR, HW_RTS, HW_SQER, HW_SQD, HW_ERR }; /* as QPC.state */

struct hw_qp_attr {
	enum hw_qp_type type;
	uint32_t pdn;
	struct hw_cq *scq, *rcq;
	struct hw_srq *srq; /* or NULL; an initiator has no use for it; a target has one, and no queues,
			       doorbell record or UAR */
	struct hw_mem *sq;  /* NULL: no SQ */
	uint64_t sq_off;
	uint32_t sq_wqebbs; /* power of two */
	struct hw_mem *rq;  /* NULL: no RQ */
	uint64_t rq_off;
	uint32_t rq_wqes;   /* power of two */
	uint32_t rq_stride; /* bytes, power of two >= 16 */
	struct hw_mem *db;  /* doorbell record: RQ counter, SQ counter */
	uint64_t db_off;
	uint32_t uar;
	uint32_t user_index; /* for CQE bytes 32..35 with CQE version 1 */
	bool cd_master, cd_slave_send, cd_slave_recv;
	bool real_time;         /* timestamps are seconds << 32 | nanoseconds since 1970, not ticks */
	bool reserved_lkey;     /* QPC.rlky: refused, as physical addresses mean nothing here */
	uint8_t cs_req, cs_res; /* scatter-to-CQE modes as in the QPC, 0 = off */
	uint32_t qkey;
	uint64_t dc_key;                        /* of a target: what initiators have to know */
	void (*on_event)(void *arg, int event); /* enum hw_event */
	void *arg;
};

/** Where a QP's packets go, and what their headers say. */
struct hw_av {
	bool loopback; /* QPC address path `fl`: to this device; the rest is ignored then */
	bool grh;      /* on InfiniBand: there is a GRH, with the next two */
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint16_t dlid; /* on InfiniBand, */
	/* and on RoCE */
	uint8_t dmac[6];   /* of the next hop; a frame with another address than the peer's is lost */
	uint8_t hop_limit; /* 0: lost as well */
	uint8_t dscp;
	uint16_t udp_sport;
};

/** The MAC address of the port that has @gid, as the network would answer: from an EUI-64 interface id, or
 * else made of the last bytes. */
void hw_gid_mac(const uint8_t gid[16], uint8_t mac[6]);
/** The address vector in a datagram's WQE of at least WQE_UD_SGE_DS segments. */
struct hw_av hw_datagram_av(const struct hw_dev *dev, const uint8_t *wqe);

/** What a state transition may set; @mask selects the fields. */
enum {
	HW_QP_AV = 1 << 0,
	HW_QP_DEST = 1 << 1,
	HW_QP_ACCESS = 1 << 2,
	HW_QP_RNR_TIMER = 1 << 3,
	HW_QP_RETRY = 1 << 4,
	HW_QP_RNR_RETRY = 1 << 5,
	HW_QP_TIMEOUT = 1 << 6,
	HW_QP_SQ_PSN = 1 << 7,
	HW_QP_RQ_PSN = 1 << 8,
	HW_QP_RD_ATOMIC = 1 << 9,
	HW_QP_DEST_RD_ATOMIC = 1 << 10,
	HW_QP_QKEY = 1 << 11,
	HW_QP_MTU = 1 << 12,
	HW_QP_MAX_MSG = 1 << 13,
	HW_QP_ACK_FREQ = 1 << 14,
};
struct hw_qp_mod {
	unsigned mask;
	struct hw_av av;
	uint32_t dest_qpn;
	unsigned access; /* HW_REMOTE_*: QPC rre, rwe, rae */
	uint8_t min_rnr_timer, retry_cnt, rnr_retry, timeout;
	uint32_t sq_psn, rq_psn; /* next to be sent, next that is expected */
	uint32_t qkey;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint16_t mtu;         /* bytes */
	uint8_t log_max_msg;  /* of what it sends; 0: what the device can */
	uint8_t log_ack_freq; /* asks for an acknowledgement with every 2^x packets: reported, not emulated */
};

int hw_qp_create(struct hw_dev *dev, const struct hw_qp_attr *attr, struct hw_qp **qp);
int hw_qp_destroy(struct hw_dev *dev, struct hw_qp *qp);
/**
 * Moves @qp to @to (the same state is a modify in place). -EINVAL when the transition does not
 * exist; required attributes are the caller's check. To ERR: flushes what is posted.
 */
int hw_qp_modify(struct hw_dev *dev, struct hw_qp *qp, enum hw_qp_state to, const struct hw_qp_mod *mod);
uint32_t hw_qpn(const struct hw_qp *qp);
struct hw_qp *hw_qp_find(struct hw_dev *dev, uint32_t qpn);
enum hw_qp_state hw_qp_state(const struct hw_qp *qp);
/** Current values of everything a modify can set; @sq_idx/@rq_idx: WQEBBs/WQEs consumed. */
void hw_qp_query(const struct hw_qp *qp, struct hw_qp_mod *mod, uint16_t *sq_idx, uint16_t *rq_idx);

/** Where a QP's send queue stands. Indices count WQEBBs, those of receives WQEs. */
struct hw_qp_progress {
	enum hw_qp_type type;
	uint32_t pdn;
	uint16_t sq_done, sq_fetched, sq_enabled; /* in ascending order, modulo 2^16 */
	uint16_t rq_done;
	uint32_t sq_wqebbs, rq_wqes; /* 0: no such queue */
	const struct hw_cq *wait_cq; /* stopped at a WAIT for this one, else NULL */
	uint32_t wait_index;
	bool pauses; /* before a retry */
};
void hw_qp_progress(const struct hw_qp *qp, struct hw_qp_progress *out);

/**
 * A limit to what queues send together, inside another one if @parent is not NULL. Made without a limit. It
 * must not be destroyed (-EBUSY) while queues or other limits are inside.
 */
int hw_rate_create(struct hw_dev *dev, struct hw_rate *parent, struct hw_rate **rate);
int hw_rate_destroy(struct hw_dev *dev, struct hw_rate *rate);
void hw_rate_set(struct hw_rate *rate, uint32_t mbps); /* megabits of messages per second; 0: no limit */
uint32_t hw_rate_id(const struct hw_rate *rate);
void hw_qp_limit(struct hw_qp *qp, struct hw_rate *rate); /* takes it out of the last one; NULL: into none */

enum hw_event { /* values of mlx5 EQE event types where one exists */
	HW_EV_COMP_EST = 0x02,
	HW_EV_SQ_DRAINED = 0x03,
	HW_EV_CQ_ERROR = 0x04,
	HW_EV_QP_FATAL = 0x05,
	HW_EV_QP_REQ_ERR = 0x10,
	HW_EV_QP_ACCESS_ERR = 0x11,
	HW_EV_LAST_WQE = 0x13,
	HW_EV_SRQ_LIMIT = 0x14,
	/* of the device: mlx5 has subtypes of one EQE for the first two, and no EQE for the last */
	HW_EV_PORT_UP = 0x100,
	HW_EV_PORT_DOWN = 0x101,
	HW_EV_DEVICE_FATAL = 0x102,
};

/* ---- shared receive queues -------------------------------------------------------------- */

struct hw_srq_attr {
	uint32_t pdn;
	struct hw_mem *buf;
	uint64_t buf_off;
	uint32_t wqes, stride;
	bool cyclic; /* WQEs are used one after the other; else each names the next */
	struct hw_mem *db;
	uint64_t db_off;
	void (*on_event)(void *arg, int event);
	void *arg;
};

int hw_srq_create(struct hw_dev *dev, const struct hw_srq_attr *attr, struct hw_srq **srq);
int hw_srq_destroy(struct hw_dev *dev, struct hw_srq *srq);
int hw_srq_limit(struct hw_srq *srq, uint16_t limit);
uint32_t hw_srqn(const struct hw_srq *srq);

#endif
