/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.h - where a NIC lives: a directory with its sockets, its sysfs tree and its log. */
#ifndef SOFTCX_PROTO_PATHS_H
#define SOFTCX_PROTO_PATHS_H

#include <stddef.h>

/** $SOFTCX_DIR, else $XDG_RUNTIME_DIR/softcx, else /tmp/softcx-UID. -ENAMETOOLONG above SOFTCX_MAX_DIR. */
int softcx_dir(char *buf, size_t size);

#endif
