/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool is_open;
static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
	(void)signal;
	ended = 1;
}

bool screen_open(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
		return false;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	is_open = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	return is_open;
}

void screen_close(void)
{
	if (is_open)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	is_open = false;
}

static struct winsize size(void)
{
	struct winsize w = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	return w;
}

unsigned screen_columns(void)
{
	unsigned columns = size().ws_col;

	return columns ? columns : 80;
}

unsigned screen_lines(void)
{
	unsigned lines = size().ws_row;

	return lines ? lines : 24;
}

int screen_key(int ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char key;
	int r = ended ? 0 : poll(&p, 1, ms);

	if (ended || (r > 0 && read(STDIN_FILENO, &key, 1) != 1))
		return 'q';
	return r > 0 ? key : 0;
}
