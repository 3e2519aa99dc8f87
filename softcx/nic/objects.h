/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.h - the objects of open files in JSON, for the tool: those that exist now, and those that files
 * left behind when they were closed.
 *
 * A file is {"file", "pid", "program", "objects": [...]}; each object has "kind" and members that depend on
 * it. The tool prints members that it does not know as they are.
 */
#ifndef SOFTCX_NIC_OBJECTS_H
#define SOFTCX_NIC_OBJECTS_H

#include "softcx/nic/files.h"

#include <json-c/json.h>
#include <sys/queue.h>

/** An array of all open files. The caller puts it. */
struct json_object *objects_of_files(const struct files *files);

/** Watches of process trees: notes of what the files of a process's descendants leave behind. */
struct watch;
struct watches {
	LIST_HEAD(, watch) list;
	unsigned last;
};

void watches_init(struct watches *w, struct files *files); /* takes the hooks of @files */
/** Watches the files that descendants of @pid open from now on. */
int watch_new(struct watches *w, pid_t pid, struct watch **watch);
void watch_free(struct watch *watch); /* NULL is fine */
/**
 * {"left", "open"}. left: array of the files that were closed with objects which the program itself should
 * have destroyed, all but the doorbell pages and event channels of its libraries. open: how many of the
 * watched files somebody still has. The caller puts it.
 */
struct json_object *watch_report(const struct watch *watch, const struct files *files);

#endif
