/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * screen.h - a terminal that a tool fills again and again, and the keys that are pressed meanwhile.
 *
 * Thread rules: one thread. The terminal gets back what it was like on screen_close(), and on SIGINT and
 * SIGTERM.
 */
#ifndef TOOLS_REDDNCTL_SCREEN_H
#define TOOLS_REDDNCTL_SCREEN_H

#include <stdbool.h>

/** False: standard input or output is no terminal, and nothing has been changed. */
bool screen_open(void);
void screen_close(void); /* fine without screen_open() */

/** Characters of a line, and lines. */
unsigned screen_columns(void);
unsigned screen_lines(void);

/** The next key, as soon as there is one; 0 after @ms milliseconds without, 'q' when a signal ends it. */
int screen_key(int ms);

#endif
