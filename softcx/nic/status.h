/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - what the NIC process is and has, in JSON, for "softcx status": its configuration, its hosts, and
 * the objects of each device and of the connection manager.
 */
#ifndef SOFTCX_NIC_STATUS_H
#define SOFTCX_NIC_STATUS_H

#include "softcx/nic/files.h"

#include <json-c/json.h>
#include <stdbool.h>

struct server_config;

/** @tracing: a trace is being read. The caller has the hardware (hardware.h), and puts the object. */
struct json_object *status_of(const struct server_config *cfg, const struct files *files, bool tracing);

#endif
