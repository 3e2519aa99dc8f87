/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restart.h - makes the queues of a session that ended ready for another one (spares.h). The QPs of its code
 * are connected again, from RESET, where indices begin with 0. There is no such state for CQs: they go on
 * with the numbers that they have come to, and the rings of the next session begin there. Where these rings
 * cannot, or where a queue had failed, all are made anew, in the same memory.
 */
#ifndef SESSION_RESTART_H
#define SESSION_RESTART_H

#include "reddnd/session/session.h"

/** After session_destroy_qps(), of an intact session. -errno of the device, logged: they can only be
 * destroyed. */
int session_restart(struct session *s);

#endif
