/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ioctl.h - the attributes of an RDMA_VERBS_IOCTL call, and the table of its methods.
 *
 * A method declares the attributes it knows. Before it runs, every attribute that is there has
 * been checked against its declaration and everything mandatory is present. Unknown attributes
 * that the application marks mandatory, and unknown methods, give -EPROTONOSUPPORT: libibverbs
 * then takes the older way.
 */
#ifndef SOFTCX_UVERBS_IOCTL_H
#define SOFTCX_UVERBS_IOCTL_H

#include "softcx/uverbs/event.h"
#include "softcx/uverbs/uverbs.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

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

#endif
