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

#endif
