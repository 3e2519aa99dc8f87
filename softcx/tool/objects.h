/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.h - prints the objects of open files, and those that files left behind.
 */
#ifndef SOFTCX_TOOL_OBJECTS_H
#define SOFTCX_TOOL_OBJECTS_H

#include <json-c/json.h>
#include <stdio.h>

/** Sends @word and receives the JSON that the NIC answers in a file; NULL when it does not. The caller puts
 * it. */
struct json_object *tool_ask_json(int fd, const char *word);

/** One paragraph for each file of the array: a line for the file, then one for each object. */
void tool_print_files(FILE *out, struct json_object *files);

/**
 * Runs the program at @path and waits for its end, then prints on stderr what it and its children left
 * behind.
 * @fd: a control connection of this process, closed on exec. Returns the exit status: the program's; 128 + N
 * when signal N ended it; LEAKED when it succeeded and left something behind; 125 when it could not be
 * watched.
 */
enum { TOOL_LEAKED = 3 };
int tool_run_watched(int fd, const char *path, char **argv);

#endif
