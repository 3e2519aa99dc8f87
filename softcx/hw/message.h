/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * message.h - work requests that send a message or ask for one: which local and remote memory they name, and
 * what moves. Internal to softcx/hw.
 *
 * Each takes a WQE of such an opcode, of a queue that may have it, and returns as hw_op_exec() does. The peer
 * of an initiator is found already.
 */
#ifndef SOFTCX_HW_MESSAGE_H
#define SOFTCX_HW_MESSAGE_H

#include "softcx/hw/exec.h"

int hw_message_send(struct hw_wqe *w);     /* to a connected queue, or a target */
int hw_message_datagram(struct hw_wqe *w); /* of UD */
int hw_message_write(struct hw_wqe *w);
int hw_message_read(struct hw_wqe *w);
int hw_message_atomic(struct hw_wqe *w);

#endif
