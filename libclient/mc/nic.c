/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/nic.h"

#include "libclient/pause.h"
#include "util/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A pause is so much longer than the attempt to connect took, for which a get has waited */
enum { SHARE = 20 };

void mc_nic_lose(struct mc_nic *nic, uint64_t now_ms, const char *why)
{
	if (why != nic->why)
		snprintf(nic->why, sizeof(nic->why), "%s", why);
	nic->lost = nic->c != NULL;
	nic->flying = 0;
	nic->pause_ms = reddn_pause_next(nic->pause_ms, REDDN_PAUSE_LEAST_MS, REDDN_PAUSE_MOST_MS);
	nic->retry_ms = now_ms + reddn_jitter(nic->pause_ms);
}

void mc_nic_release(struct mc_nic *nic)
{
	if (nic->lost) {
		reddn_close(nic->c);
		nic->c = NULL;
		nic->lost = false;
	} else if (nic->c) {
		reddn_release(nic->c);
	}
}

static bool is_program(const struct mc_nic *nic, uint32_t offset_bytes)
{
	enum reddn_arg_kind kind;
	struct reddn_info info;
	uint32_t bytes;

	reddn_get_info(nic->c, &info);
	return info.nargs == 1 && reddn_get_arg(nic->c, 0, &kind, &bytes) == 0 && kind == REDDN_OFFSET &&
	       bytes == offset_bytes;
}

bool mc_nic_ready(struct mc_nic *nic, const struct mc_where *where, const char *offload,
	const struct reddn_mc_options *options, const char *program, uint32_t offset_bytes)
{
	const struct reddn_options connect = {.host = where->host,
		.offload = offload,
		.port = where->port,
		.depth = options->depth,
		.timeout_ms = options->connect_ms,
		/* Another memcached may be there by then */
		.flags = REDDN_NO_RECONNECT,
		.token_file = options->token_file};
	uint64_t now_ms;

	if (nic->c)
		return !nic->lost;
	now_ms = clock_ms();
	if (!*where->host || now_ms < nic->retry_ms)
		return false;
	nic->refused = reddn_connect(&nic->c, &connect, nic->why, sizeof(nic->why));
	if (nic->refused < 0) {
		uint64_t took_ms = clock_ms() - now_ms;

		nic->c = NULL;
		mc_nic_lose(nic, now_ms + took_ms, nic->why);
		nic->retry_ms += SHARE * took_ms;
		return false;
	}
	if (is_program(nic, offset_bytes))
		return true;
	snprintf(nic->why, sizeof(nic->why), "offload %s is not %s", offload, program);
	mc_nic_lose(nic, now_ms, nic->why);
	return false;
}

int mc_nic_ask(struct mc_nic *nic, uint64_t offset, uint64_t cookie)
{
	const struct reddn_arg at = {.number = offset};
	int r = reddn_call_submit(nic->c, &at, 1, cookie);

	if (r == 0 && !nic->flying++)
		nic->heard_ms = clock_tick_ms();
	return r;
}

int mc_nic_poll(struct mc_nic *nic, struct reddn_result *got, int max, uint32_t limit_ms, uint64_t *now_ms,
	const char **why)
{
	int k = reddn_poll(nic->c, got, max), failed = k < 0 ? k : 0;

	for (int i = 0; i < k && !failed; i++)
		failed = got[i].status < 0 ? got[i].status : 0;
	if (failed) {
		*why = *reddn_errmsg(nic->c) ? reddn_errmsg(nic->c) : strerror(-failed);
		return failed;
	}
	if (k > 0) {
		*now_ms = clock_ms();
		nic->heard_ms = clock_tick_ms();
		nic->flying -= (uint32_t)k;
	} else if (clock_tick_ms() - nic->heard_ms > limit_ms) {
		*why = "it does not answer";
		return -ETIMEDOUT;
	}
	return k;
}
