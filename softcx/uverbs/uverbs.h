/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uverbs.h - an open /dev/infiniband/uverbsN: its objects, their handles and their dependencies.
 *
 * The files of this room share it; other rooms use call.h. Handles are numbers
 * in one table for all types, lowest free number first, as Linux gives them out. An object that
 * another one needs cannot be destroyed (-EBUSY); everything dies with the file.
 * One thread. Errors: negative errno, as the Linux uverbs core would return it.
 */
#ifndef SOFTCX_UVERBS_UVERBS_H
#define SOFTCX_UVERBS_UVERBS_H

#include "softcx/proto/call.h"
#include "util/cleanup.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/queue.h>

struct uverbs_channel;

enum uverbs_type {
	UVERBS_PD = 1,
	UVERBS_MR,
	UVERBS_CQ,
	UVERBS_QP,
	UVERBS_SRQ,
	UVERBS_AH,
	UVERBS_MW,
	UVERBS_UAR,
	UVERBS_UMEM,
	UVERBS_DEVX,
};

#define UVERBS_MAX_NEEDS 7

/** First member of every object that has a handle. */
struct uverbs_obj {
	struct uverbs_file *file;
	enum uverbs_type type;
	uint32_t handle;
	bool live;            /* has its handle been given out */
	unsigned users;       /* live objects that need this one */
	uint64_t user_handle; /* what events of this object carry */
	struct uverbs_obj *needs[UVERBS_MAX_NEEDS];
	LIST_ENTRY(uverbs_obj) in_file;
	/* Releases what the object holds of the device; -errno leaves it as it was. */
	int (*destroy)(struct uverbs_obj *obj);
};

struct uverbs_file {
	struct hw_dev *dev;
	unsigned index;
	bool has_context; /* GET_CONTEXT done */
	bool devx;        /* the context asked for DEVX */
	struct uverbs_obj **table;
	uint32_t table_len;
	uint32_t table_hint;          /* no free handle below */
	LIST_HEAD(, uverbs_obj) live; /* what the table has, newest first */
	struct uverbs_channel *async; /* default for asynchronous events; NULL before GET_CONTEXT */
	LIST_HEAD(, uverbs_channel) channels;
	struct hw_dev_watch watch;    /* of events of the device */
	struct hw_uar *time;          /* the clock page; NULL until it is mapped */
	struct hw_software *software; /* uverbs_set_process(); or NULL */
	pid_t process;
	LIST_ENTRY(uverbs_file) all;
};

/**
 * A zeroed object of @size bytes with a handle reserved, not yet visible; NULL without memory.
 * It must be committed or discarded.
 */
void *uverbs_obj_new(struct uverbs_file *file, enum uverbs_type type, size_t size);
/** Makes the object visible and counts what it needs as used; clears the caller's pointer. */
void uverbs_obj_commit(struct uverbs_obj **obj, int (*destroy)(struct uverbs_obj *obj));
/** For CLEANUP(): frees an object that was never committed; NULL is fine. */
void uverbs_obj_discard(struct uverbs_obj **obj);
/** Notes that @obj cannot live without @need; NULL is fine. Before commit. */
void uverbs_obj_need(struct uverbs_obj *obj, struct uverbs_obj *need);
/** The live object behind a handle: -ENOENT when there is none, -EINVAL when of another type. */
int uverbs_obj_find(
	struct uverbs_file *file, enum uverbs_type type, uint64_t handle, struct uverbs_obj **obj);
/** The same whatever its type; NULL when there is none. */
struct uverbs_obj *uverbs_obj_any(struct uverbs_file *file, uint64_t handle);
/** -EBUSY while others need it, or the result of destroy(). */
int uverbs_obj_destroy(struct uverbs_obj *obj);

/** hw_mem_putp() gives back a reference that nic_call_mem() returned. */
DEFINE_CLEANUP(struct hw_mem *, hw_mem_put)

/*
 * The input of a command and the place for its answer, as both ABIs carry them.
 *
 * Every command has a core part and a driver (mlx5) part, each with input and output. Write
 * commands put them into one buffer, ioctl methods into attributes; handlers see only this.
 * Either side may be longer or shorter than what is known here: older and newer libraries differ.
 */

struct uverbs_udata {
	const void *in; /* readable here; NULL when @in_len is 0 */
	size_t in_len;
	uint64_t out; /* address in the application */
	size_t out_len;
};

/**
 * Fills @dst with the first @len bytes of the input, zeroes where the input is shorter.
 * -EINVAL when it is shorter than @min.
 */
int uverbs_udata_in(const struct uverbs_udata *u, void *dst, size_t min, size_t len);
/** True if the input beyond @known is zero. A newer library that asks for more must be refused. */
bool uverbs_udata_cleared(const struct uverbs_udata *u, size_t known);
/** Stores as much of @src as the application has room for. */
int uverbs_udata_out(const struct uverbs_udata *u, struct nic_call *call, const void *src, size_t len);
/** Address of the byte @off of the output, for nic_call_fd(). */
uint64_t uverbs_udata_at(const struct uverbs_udata *u, size_t off);

/*
 * event.c: channels that carry events to the application: completion channels, the
 * asynchronous event file, DEVX event channels.
 *
 * A channel is a pipe. The application owns the read end as an ordinary descriptor, so poll(2),
 * O_NONBLOCK and SCM_RIGHTS work; only the write end, non-blocking, is kept here. A command that
 * names a channel does so by a descriptor number of the calling process: it is recognised by the
 * pipe's inode. Events written to a channel that is full or closed are lost (Linux keeps any number).
 *
 * A process may have fewer descriptors than a NIC may have completion channels. Those above a limit are named
 * pipes, opened for each event. Unlike others, such a channel is not at its end when the NIC ends: its
 * descriptor in the application can write, too.
 */

enum uverbs_channel_kind {
	UVERBS_CH_COMP,      /* records of struct ib_uverbs_comp_event_desc */
	UVERBS_CH_ASYNC,     /* records of struct ib_uverbs_async_event_desc */
	UVERBS_CH_DEVX,      /* cookie and the EQE, one event per read */
	UVERBS_CH_DEVX_OMIT, /* cookie only; one unread event per cookie */
	UVERBS_CH_DEVX_CMD,  /* wr_id and the out mailbox of an asynchronous command */
};

/** From now on completion channels are named pipes in folder @dir while @most channels are open. */
void uverbs_channels_name(const char *dir, unsigned most);

/** @read_fd is for the application. The caller holds no reference: the file keeps the channel. */
int uverbs_channel_new(
	struct uverbs_file *file, enum uverbs_channel_kind kind, int *read_fd, struct uverbs_channel **ch);
/** The channel that the caller's @fd reads from; -EBADF: it is not a channel of this file and @kind;
 * NIC_AGAIN. */
int uverbs_channel_find(struct uverbs_file *file, struct nic_call *call, int64_t fd,
	enum uverbs_channel_kind kind, struct uverbs_channel **ch);
void uverbs_channels_free(struct uverbs_file *file); /* on close of the file */
/** Channels that the application can still read. */
unsigned uverbs_channels_count(const struct uverbs_file *file, enum uverbs_channel_kind kind);
enum uverbs_channel_kind uverbs_channel_kind(const struct uverbs_channel *ch);
/** True once no process has the read end any more: the application closed it, or ended. */
bool uverbs_channel_closed(const struct uverbs_channel *ch);

/** An object that will post to the channel keeps it. NULL is fine. */
struct uverbs_channel *uverbs_channel_get(struct uverbs_channel *ch);
void uverbs_channel_put(struct uverbs_channel *ch);

/** True when the event was queued. */
bool uverbs_channel_post(struct uverbs_channel *ch, const void *event, size_t len);
/** Takes back the unread events whose first 8 bytes are @key; returns how many. NULL channel: 0. */
unsigned uverbs_channel_purge(struct uverbs_channel *ch, uint64_t key);

/**
 * A copy, which the caller closes, of the application's eventfd @fd. -EBADF: it is no descriptor, -EINVAL: it
 * is not an eventfd; NIC_AGAIN.
 */
int uverbs_eventfd_take(struct nic_call *call, int64_t fd, int *copy);
/** Adds one, as eventfd_signal() of the kernel: without waiting for a reader. */
void uverbs_eventfd_signal(int fd);

/** Asynchronous event of an object (@event: enum hw_event) for the verbs library; counted in @posted. */
void uverbs_async_post(struct uverbs_channel *ch, uint64_t user_handle, int event, uint32_t *posted);

/** An event of the whole device, to every asynchronous event file; @arg is the uverbs_file. */
void uverbs_dev_event(void *arg, int event);

/*
 * uar.c: doorbell pages that the application allocates one by one and maps.
 *
 * rdma-core since 28 asks for dynamic UARs (MLX5_LIB_CAP_DYN_UAR): a page is an object with a
 * handle, a page id that queues are created with, and an offset for mmap(2). The static pages of
 * older libraries do not exist here.
 */

enum { UVERBS_PAGE = 4096 };

struct uverbs_uar {
	struct uverbs_obj obj;
	struct hw_uar *hw;
};

int uverbs_uar_create(struct uverbs_file *file, struct uverbs_uar **uar);
/** -EINVAL when page @index is not one of this file: firmware refuses pages of other contexts. */
int uverbs_uar_find(struct uverbs_file *file, uint32_t index, struct uverbs_uar **uar);
/** The mmap(2) offset: command and index as Linux mlx5_ib encodes them in the page number. */
uint64_t uverbs_uar_offset(const struct uverbs_uar *uar);
/** The page whose mmap(2) offset this is, or NULL; that of the clock once it has been mapped. */
struct hw_uar *uverbs_page_at(struct uverbs_file *file, uint64_t offset);
/** -EINVAL for anything but a live UAR page or the clock page at its full length: no contiguous pages. */
int uverbs_uar_mmap(struct uverbs_file *file, uint64_t offset, uint64_t len, int *fd, uint64_t *fd_offset);

/*
 * mr.c: memory regions and memory windows, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then.
 */

struct uverbs_mr {
	struct uverbs_obj obj;
	struct uverbs_pd *pd;
	struct hw_mem *mem;
	uint64_t va, iova, len;
	unsigned access; /* IB_UVERBS_ACCESS_* */
	uint32_t key;    /* lkey and rkey */
};

int uverbs_mr_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_reg_mr *req,
	struct uverbs_mr **mr);
/** IBV_REREG_MR_*: another PD or other rights keep the key; for other memory a new one comes. */
int uverbs_mr_rereg(struct uverbs_mr *mr, struct nic_call *call, const struct ib_uverbs_rereg_mr *req);
int uverbs_mr_find(struct uverbs_file *file, uint64_t handle, struct uverbs_mr **mr);

struct uverbs_mw {
	struct uverbs_obj obj;
	uint32_t key; /* as made; each bind changes its variant */
};

/** @type: IB_MW_TYPE_*, which is 1 or 2. */
int uverbs_mw_create(struct uverbs_file *file, uint64_t pd_handle, unsigned type, struct uverbs_mw **mw);

/*
 * Protection domains and address handles, independent of the ABI.
 *
 * The device has nothing of an address handle: its address travels in each UD WQE.
 */

struct uverbs_pd {
	struct uverbs_obj obj;
	uint32_t pdn;
};

int uverbs_pd_create(struct uverbs_file *file, struct uverbs_pd **pd);
int uverbs_pd_find(struct uverbs_file *file, uint64_t handle, struct uverbs_pd **pd);

/** @dmac: where UD packets to the address go. RoCE needs a GRH: -EINVAL without. */
int uverbs_ah_create(struct uverbs_file *file, const struct ib_uverbs_create_ah *req, uint8_t dmac[6],
	struct uverbs_obj **ah);

/*
 * cq.c: completion queues, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then. Limits are those that caps.h reports.
 */

enum { UVERBS_TS_ANY = 0xff };

struct uverbs_cq {
	struct uverbs_obj obj;
	struct hw_cq *hw;
	struct uverbs_channel *comp, *async;
	uint32_t cqe; /* entries - 1 */
	uint8_t cqe_bytes;
	uint8_t ts_format; /* that queues of the CQ must have; UVERBS_TS_ANY if none */
	uint32_t comp_posted, async_posted;
};

struct uverbs_cq_req {
	uint64_t user_handle;
	uint32_t cqe;
	uint32_t comp_vector;
	uint32_t flags;               /* IB_UVERBS_CQ_FLAGS_* */
	struct uverbs_channel *comp;  /* or NULL */
	struct uverbs_channel *async; /* or NULL */
};

int uverbs_cq_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cq_req *req,
	const struct mlx5_ib_create_cq *drv, struct uverbs_cq **cq);
int uverbs_cq_resize(
	struct uverbs_cq *cq, struct nic_call *call, uint32_t cqe, const struct mlx5_ib_resize_cq *drv);
/** @resp: events that the application has read and so has to acknowledge before it frees the CQ. */
int uverbs_cq_destroy(struct uverbs_cq *cq, struct ib_uverbs_destroy_cq_resp *resp);
int uverbs_cq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_cq **cq);

/*
 * srq.c: shared receive queues, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then. Limits are those that caps.h reports.
 */

struct uverbs_srq {
	struct uverbs_obj obj;
	struct hw_srq *hw;
	struct uverbs_channel *async;
	uint32_t max_wr, max_sge, limit, posted;
};

int uverbs_srq_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_create_srq *req,
	struct uverbs_channel *async, const struct mlx5_ib_create_srq *drv, struct uverbs_srq **srq);
int uverbs_srq_modify(struct uverbs_srq *srq, uint32_t mask, uint32_t limit);
int uverbs_srq_destroy(struct uverbs_srq *srq, uint32_t *events_reported);
int uverbs_srq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_srq **srq);

/*
 * qp.c: queue pairs of the verbs ABI: creation from mlx5 driver data, transitions with the attributes that
 * each one requires and allows, queries, and their end.
 */

struct uverbs_qp {
	struct uverbs_obj obj;
	struct hw_qp *hw;
	struct uverbs_channel *async;
	enum hw_qp_type type;
	struct ib_uverbs_qp_cap cap;
	bool sig_all;
	struct ib_uverbs_qp_dest dest; /* as last set: the device does not keep all of it */
	uint8_t port_num;
	uint32_t posted;
};

/** Values of create_flags that Linux takes for RC QPs and libibverbs does not (linux/rdma/ib_verbs.h). */
enum {
	UVERBS_QP_CROSS_CHANNEL = 1 << 2,
	UVERBS_QP_MANAGED_SEND = 1 << 3,
	UVERBS_QP_MANAGED_RECV = 1 << 4,
};

/**
 * @req: of the extended command; the others leave its last members 0. Answers NIC_AGAIN, -EOPNOTSUPP for QP
 * types and flags that the device lacks, -EINVAL for the rest.
 */
int uverbs_qp_create(struct uverbs_file *file, struct nic_call *call,
	const struct ib_uverbs_ex_create_qp *req, struct uverbs_channel *async,
	const struct mlx5_ib_create_qp *drv, struct uverbs_qp **qp);
uint32_t uverbs_qp_number(const struct uverbs_qp *qp); /* 0: it has none yet */
int uverbs_qp_destroy(struct uverbs_qp *qp, uint32_t *events_reported);
int uverbs_qp_find(struct uverbs_file *file, uint64_t handle, struct uverbs_qp **qp);

/** @dctn: set when a target gets its number; NULL: there is no room for it, and a target refuses. */
int uverbs_qp_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn);
int uverbs_qp_query(const struct uverbs_qp *qp, struct ib_uverbs_query_qp_resp *resp);

/*
 * write.c: the commands of write(2), also reachable through the ioctl method INVOKE_WRITE.
 *
 * A command is found by its number. Its minimum length and the room for its answer are checked before the
 * handler runs. Handlers may return NIC_AGAIN.
 */

struct uverbs_cmd {
	struct uverbs_udata core, drv;
};

struct uverbs_method {
	uint16_t req, resp; /* bytes of the core structures, without driver data */
	bool responds;      /* legacy commands: the core structure starts with the address of the answer */
	int (*run)(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd);
};

/** @command: with IB_USER_VERBS_CMD_FLAG_EXTENDED for an extended one. -EINVAL, -EOPNOTSUPP. */
int uverbs_method_find(uint32_t command, const struct uverbs_method **method);
/** -EINVAL for anything but GET_CONTEXT before there is a context. */
int uverbs_method_run(const struct uverbs_method *method, struct uverbs_file *file, struct nic_call *call,
	const struct uverbs_cmd *cmd);

/** GET_CONTEXT without the core answer, which the two ABIs give differently. */
int uverbs_context_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_udata *drv);

/*
 * ioctl.c: the attributes of an RDMA_VERBS_IOCTL call, and the table of its methods.
 *
 * A method declares the attributes it knows. Before it runs, every attribute that is there has
 * been checked against its declaration and everything mandatory is present. Unknown attributes
 * that the application marks mandatory, and unknown methods, give -EPROTONOSUPPORT: libibverbs
 * then takes the older way.
 */

struct uverbs_bundle {
	struct uverbs_file *file;
	struct nic_call *call;
	const struct ib_uverbs_attr *attrs;
	unsigned num;
};

enum uverbs_attr_kind {
	UVERBS_A_IN,     /* bytes; inline up to 8 */
	UVERBS_A_VALUE,  /* a number of 4 or 8 bytes */
	UVERBS_A_OUT,    /* place for an answer */
	UVERBS_A_HANDLE, /* an object */
	UVERBS_A_NEW,    /* a handle or descriptor to be given out */
	UVERBS_A_FD,     /* a descriptor of the caller */
};

struct uverbs_attr_spec {
	uint16_t id;
	enum uverbs_attr_kind kind;
	bool mandatory;
	uint16_t min; /* bytes, of UVERBS_A_IN and UVERBS_A_OUT */
};

#define UVERBS_MAX_ATTRS 16

struct uverbs_ioctl_method {
	uint16_t object, method;
	bool before_context; /* allowed before GET_CONTEXT */
	int (*run)(struct uverbs_bundle *b);
	struct uverbs_attr_spec attrs[UVERBS_MAX_ATTRS]; /* ends with UVERBS_ATTR_END */
};

/* Attributes of a method; without MAYBE they are mandatory. @min: bytes at least. */
#define UVERBS_HANDLE(id)                                                                                    \
	{                                                                                                    \
		id, UVERBS_A_HANDLE, true, 0                                                                 \
	}
#define UVERBS_MAYBE_HANDLE(id)                                                                              \
	{                                                                                                    \
		id, UVERBS_A_HANDLE, false, 0                                                                \
	}
#define UVERBS_NEW(id)                                                                                       \
	{                                                                                                    \
		id, UVERBS_A_NEW, true, 0                                                                    \
	}
#define UVERBS_FD(id)                                                                                        \
	{                                                                                                    \
		id, UVERBS_A_FD, true, 0                                                                     \
	}
#define UVERBS_MAYBE_FD(id)                                                                                  \
	{                                                                                                    \
		id, UVERBS_A_FD, false, 0                                                                    \
	}
#define UVERBS_VALUE(id)                                                                                     \
	{                                                                                                    \
		id, UVERBS_A_VALUE, true, 0                                                                  \
	}
#define UVERBS_MAYBE_VALUE(id)                                                                               \
	{                                                                                                    \
		id, UVERBS_A_VALUE, false, 0                                                                 \
	}
#define UVERBS_IN(id, min)                                                                                   \
	{                                                                                                    \
		id, UVERBS_A_IN, true, min                                                                   \
	}
#define UVERBS_MAYBE_IN(id, min)                                                                             \
	{                                                                                                    \
		id, UVERBS_A_IN, false, min                                                                  \
	}
#define UVERBS_OUT(id, min)                                                                                  \
	{                                                                                                    \
		id, UVERBS_A_OUT, true, min                                                                  \
	}
#define UVERBS_MAYBE_OUT(id, min)                                                                            \
	{                                                                                                    \
		id, UVERBS_A_OUT, false, min                                                                 \
	}
#define UVERBS_ATTR_END                                                                                      \
	{                                                                                                    \
		0xffff, UVERBS_A_IN, false, 0                                                                \
	}
#define UVERBS_ATTR_UHW                                                                                      \
	{UVERBS_ATTR_UHW_IN, UVERBS_A_IN, false, 0},                                                         \
	{                                                                                                    \
		UVERBS_ATTR_UHW_OUT, UVERBS_A_OUT, false, 0                                                  \
	}

extern const struct uverbs_ioctl_method uverbs_mlx5_methods[];
extern const unsigned uverbs_mlx5_methods_len;

/** NULL when the attribute is not there. */
const struct ib_uverbs_attr *uverbs_attr(const struct uverbs_bundle *b, uint16_t id);
/** Value of an UVERBS_A_VALUE, UVERBS_A_HANDLE or UVERBS_A_FD; 0 when it is not there. */
uint64_t uverbs_attr_value(const struct uverbs_bundle *b, uint16_t id);
/** Bytes of an input attribute, NULL with length 0 when it is not there or empty. */
const void *uverbs_attr_bytes(const struct uverbs_bundle *b, uint16_t id, size_t *len);
/** Stores as much of the answer as fits; nothing when the attribute is not there. */
int uverbs_attr_out(const struct uverbs_bundle *b, uint16_t id, const void *src, size_t len);
int uverbs_attr_new_handle(const struct uverbs_bundle *b, uint16_t id, uint32_t handle);
int uverbs_attr_new_fd(const struct uverbs_bundle *b, uint16_t id, int fd);
/** The object that attribute @id names. */
int uverbs_attr_obj(
	const struct uverbs_bundle *b, uint16_t id, enum uverbs_type type, struct uverbs_obj **obj);

/*
 * devx.c: DEVX: user memory for firmware objects, firmware commands from the application,
 * events of their objects.
 *
 * A command that firmware refuses makes the ioctl fail with -EREMOTEIO and leaves status and
 * syndrome in the out mailbox (Linux 5.18 and newer). Commands that the kernel itself refuses (an opcode that
 * does not fit the method, another object's number) give -EINVAL and no mailbox.
 */

/** Subscriptions that somebody can still read the events of. */
unsigned uverbs_devx_subscriptions(const struct uverbs_file *file);

#endif
