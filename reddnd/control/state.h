/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * state.h - a snapshot of the daemon as JSON: the answers to the commands of the same names, which
 * docs/man/reddnctl.8 describes.
 */
#ifndef CONTROL_STATE_H
#define CONTROL_STATE_H

#include "reddnd/server/stats.h"

#include <json-c/json.h>

struct json_object *state_status(const struct stats *st);
struct json_object *state_sessions(const struct stats *st);
struct json_object *state_offloads(const struct stats *st);
struct json_object *state_regions(const struct stats *st);
struct json_object *state_tenants(const struct stats *st);

#endif
