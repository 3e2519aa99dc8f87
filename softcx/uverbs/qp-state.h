/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp-state.h - the state of queue pairs of the verbs ABI: transitions, with the attributes that each one
 * requires and allows, and queries.
 */
#ifndef SOFTCX_UVERBS_QP_STATE_H
#define SOFTCX_UVERBS_QP_STATE_H

#include "softcx/uverbs/qp.h"

/** @dctn: set when a target gets its number; NULL: there is no room for it, and a target refuses. */
int uverbs_qp_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn);
int uverbs_qp_query(const struct uverbs_qp *qp, struct ib_uverbs_query_qp_resp *resp);

/** For dc.c: the attributes of @a, whatever the transition, have values that the device takes. */
int uverbs_qp_check_values(const struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *a);

#endif
