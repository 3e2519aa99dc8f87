/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/tool.h"
#include "softcx/tool/trace-text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static bool ask(int fd, const struct trace_options *opt)
{
	char word[16 * (SOFTCX_TRACE_QPS + 3)] = "trace";
	size_t len = strlen(word);

	if (opt->pid)
		len += (size_t)snprintf(word + len, sizeof(word) - len, " pid=%u", opt->pid);
	if (opt->kinds)
		len += (size_t)snprintf(word + len, sizeof(word) - len, " kinds=%u", opt->kinds);
	for (unsigned i = 0; i < opt->nqpns; i++)
		len += (size_t)snprintf(word + len, sizeof(word) - len, " qp=%u", opt->qpns[i]);
	return send(fd, word, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static void print(FILE *out, const struct softcx_trace *rec, const struct trace_options *opt)
{
	struct json_object *o;

	if (opt->pcapng) {
		trace_pcap(out, rec);
	} else if (opt->json) {
		o = trace_json(rec);
		fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
		json_object_put(o);
	} else {
		trace_text(out, rec);
	}
}

static FILE *output(const struct trace_options *opt)
{
	FILE *out = stdout;

	if (!opt->pcapng)
		return out;
	if (strcmp(opt->pcapng, "-") != 0)
		out = fopen(opt->pcapng, "we");
	if (out)
		trace_pcap_begin(out);
	else
		fprintf(stderr, "softcx: %s: %s\n", opt->pcapng, strerror(errno));
	return out;
}

int tool_trace(int fd, const struct trace_options *opt)
{
	static struct softcx_trace packet[SOFTCX_TRACE_PACKET];
	struct sigaction action = {.sa_handler = on_signal};
	struct pollfd input = {.fd = fd, .events = POLLIN};
	sigset_t signals, before;
	uint64_t seen = 0, lost = 0;
	bool ending = false;
	FILE *out = output(opt);

	if (!out)
		return 1;
	/* They come while ppoll() waits and at no other time. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!ask(fd, opt)) {
		fprintf(stderr, "softcx: the NIC has ended\n");
		return 1;
	}
	for (;;) {
		ssize_t n;

		if (interrupted && !ending) {
			/* what has been executed until now still comes */
			send(fd, "end", 3, MSG_NOSIGNAL);
			ending = true;
		}
		if (ppoll(&input, 1, NULL, ending ? NULL : &before) < 0)
			continue;
		n = recv(fd, packet, sizeof(packet), 0);
		if (n <= 0)
			break;
		for (size_t i = 0; i < (size_t)n / sizeof(packet[0]); i++) {
			print(out, &packet[i], opt);
			lost += packet[i].lost;
			seen += packet[i].lost == 0;
			if (opt->count && seen == opt->count)
				break;
		}
		if (fflush(out) != 0) {
			if (out != stdout)
				fprintf(stderr, "softcx: %s: %s\n", opt->pcapng, strerror(errno));
			return 1;
		}
		if (opt->count && seen == opt->count)
			break;
	}
	if (lost)
		fprintf(stderr, "softcx: %llu records are missing: this program was too slow for them\n",
			(unsigned long long)lost);
	return 0;
}
