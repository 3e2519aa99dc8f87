/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - softcx-nic: the emulated network adapter. Started by the softcx tool. */
#include "costs/costs.h"
#include "softcx/nic/server.h"

#include "softcx/proto/paths.h"
#include "softcx/proto/proto.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server *server;

static void on_signal(int sig)
{
	(void)sig;
	server_stop(server);
}

static void usage(FILE *to)
{
	fputs("Usage: softcx-nic [OPTION...]\n"
	      "The emulated ConnectX of softcx; `softcx nic` and `softcx run` start it.\n\n"
	      "  --dir DIR          where its sockets are (default: $SOFTCX_DIR, $XDG_RUNTIME_DIR/softcx)\n"
	      "  --seed N           of every choice that the hardware is free to make (default 1)\n"
	      "  --lenient          always make the friendliest choice\n"
	      "  --no-index-check   execute WQEs whose index field is wrong\n"
	      "  --no-qpn-check     execute WQEs whose QPN field is wrong\n"
	      "  --no-sync-fence    WAIT, SEND_EN and RECV_EN heed no fence\n"
	      "  --clock NAME|FILE  timestamps of a NIC with these costs: cx5, cx6 or a file (default: the "
	      "machine's clock)\n"
	      "  --devices N        number of devices of a host, mlx5_0.. (default 1)\n"
	      "  --hosts A[:N],...  emulated hosts and their numbers of devices (default: one)\n"
	      "  --linger SECONDS   end when there was no client for so long (default: never)\n"
	      "  --ready-fd FD      write a line to FD when ready\n"
	      "  --help\n",
		to);
}

static int number(const char *option, const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno == 0 && end != text && *end == '\0' && text[0] != '-' && *out <= max)
		return 0;
	fprintf(stderr, "softcx-nic: --%s %s: not a number between 0 and %llu\n", option, text,
		(unsigned long long)max);
	return -EINVAL;
}

/* What the command line says besides the configuration of the server. */
struct place {
	const char *dir, *hosts;
	unsigned ndevs;
	int ready_fd;
};

static int parse(int argc, char **argv, struct server_config *cfg, struct place *place)
{
	enum {
		DIR_ = 1,
		SEED,
		LENIENT,
		NO_INDEX,
		NO_QPN,
		NO_FENCE,
		CLOCK,
		DEVICES,
		HOSTS,
		LINGER,
		READY,
		HELP
	};
	static const struct option options[] = {
		{"dir", required_argument, NULL, DIR_},
		{"seed", required_argument, NULL, SEED},
		{"lenient", no_argument, NULL, LENIENT},
		{"no-index-check", no_argument, NULL, NO_INDEX},
		{"no-qpn-check", no_argument, NULL, NO_QPN},
		{"no-sync-fence", no_argument, NULL, NO_FENCE},
		{"clock", required_argument, NULL, CLOCK},
		{"devices", required_argument, NULL, DEVICES},
		{"hosts", required_argument, NULL, HOSTS},
		{"linger", required_argument, NULL, LINGER},
		{"ready-fd", required_argument, NULL, READY},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	uint64_t n;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		rc = 0;
		switch (c) {
		case DIR_:
			place->dir = optarg;
			break;
		case SEED:
			rc = number("seed", optarg, UINT64_MAX, &cfg->hw.seed);
			break;
		case LENIENT:
			cfg->hw.lenient = true;
			break;
		case NO_INDEX:
			cfg->hw.no_index_check = true;
			break;
		case NO_FENCE:
			cfg->hw.no_sync_fence = true;
			break;
		case NO_QPN:
			cfg->hw.no_qpn_check = true;
			break;
		case CLOCK:
			cfg->clock = optarg;
			break;
		case DEVICES:
			rc = number("devices", optarg, HOSTS_MAX_DEVS, &n);
			place->ndevs = (unsigned)n;
			break;
		case HOSTS:
			place->hosts = optarg;
			break;
		case LINGER:
			rc = number("linger", optarg, UINT_MAX, &n);
			cfg->linger = (unsigned)n;
			break;
		case READY:
			rc = number("ready-fd", optarg, INT_MAX, &n);
			place->ready_fd = (int)n;
			break;
		case HELP:
			usage(stdout);
			exit(0);
		default:
			return -EINVAL;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* An exit status, 0: there is none to read, or it was read. */
static int read_clock(struct server_config *cfg, struct costs *costs)
{
	char path[PATH_MAX], why[160];

	if (!cfg->clock)
		return 0;
	if (costs_find(cfg->clock, path, sizeof(path)) < 0) {
		fprintf(stderr, "softcx-nic: --clock: a name of at most %d bytes\n", PATH_MAX);
		return 2;
	}
	if (costs_read(path, costs, why, sizeof(why)) < 0) {
		fprintf(stderr, "softcx-nic: --clock %s: %s: %s\n", cfg->clock, path, why);
		return 2;
	}
	cfg->hw.costs = costs;
	return 0;
}

/* Makes the directories of the hosts. An exit status, 0: done. */
static int find_places(struct hosts *hosts, const struct place *place)
{
	char own[SOFTCX_MAX_DIR + 1], why[160];
	const char *dir = place->dir ? place->dir : own;
	int rc = place->dir ? 0 : softcx_dir(own, sizeof(own));

	if (hosts_parse(hosts, place->hosts, place->ndevs, why, sizeof(why)) < 0) {
		fprintf(stderr, "softcx-nic: --%s: %s\n", place->hosts ? "hosts" : "devices", why);
		return 2;
	}
	if (rc == 0 && mkdir(dir, 0755) < 0 && errno != EEXIST)
		rc = -errno;
	if (rc == 0)
		rc = hosts_set_dir(hosts, dir);
	for (unsigned i = 1; i < hosts->n && rc == 0; i++)
		if (mkdir(hosts->host[i].dir, 0755) < 0 && errno != EEXIST)
			rc = -errno;
	if (rc == -ENAMETOOLONG)
		fprintf(stderr,
			"softcx-nic: the directory's name, with that of a host, is longer than %d bytes: "
			"choose "
			"another with --dir\n",
			SOFTCX_MAX_DIR);
	else if (rc < 0)
		fprintf(stderr, "softcx-nic: %s: %s\n", dir, strerror(-rc));
	return rc == -ENAMETOOLONG ? 2 : rc < 0;
}

int main(int argc, char **argv)
{
	static struct hosts hosts;
	static struct costs costs;
	struct server_config cfg = {.hosts = &hosts, .hw = {.seed = 1}};
	struct place place = {.ndevs = 1, .ready_fd = -1};
	struct sigaction act = {.sa_handler = on_signal};
	int rc;

	if (parse(argc, argv, &cfg, &place) < 0)
		return 2;
	rc = read_clock(&cfg, &costs);
	if (rc == 0)
		rc = find_places(&hosts, &place);
	if (rc)
		return rc;
	rc = server_new(&server, &cfg);
	if (rc < 0) {
		fprintf(stderr, "softcx-nic: %s: %s\n", hosts.host[0].dir,
			rc == -EADDRINUSE ? "another NIC runs there" : strerror(-rc));
		return 1;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	if (place.ready_fd >= 0) {
		if (write(place.ready_fd, "ready\n", 6) < 0)
			fprintf(stderr, "softcx-nic: --ready-fd %d: %s\n", place.ready_fd, strerror(errno));
		close(place.ready_fd);
	}
	rc = server_run(server);
	server_free(server);
	return rc < 0;
}
