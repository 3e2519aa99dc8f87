/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - softcx-nic: the emulated network adapter. Started by the softcx tool. */
#include "costs/costs.h"
#include "softcx/nic/server.h"
#include "softcx/proto/options.h"
#include "softcx/proto/proto.h"
#include "util/output.h"

#include <errno.h>
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

static int read_options(struct options *o, int argc, char **argv)
{
	char why[200];
	int first;

	if (options_parse(o, VERB_NIC, argc, argv, &first, why, sizeof(why)) == 0) {
		if (first == argc)
			return 0;
		fprintf(stderr, "softcx-nic: \"%s\" is not an option\n", argv[first]);
	} else if (why[0]) {
		fprintf(stderr, "softcx-nic: %s\n", why);
	}
	return 2;
}

/* Reads the costs of a modelled clock, if one is asked for. Returns an exit status. */
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

/* Reads the profile of the device. Returns an exit status. */
static int read_device(struct server_config *cfg, struct profile *profile)
{
	char path[PATH_MAX], why[PROFILE_WHY];

	if (profile_find(cfg->device, path, sizeof(path)) < 0) {
		fprintf(stderr, "softcx-nic: --device: a name of at most %d bytes\n", PATH_MAX);
		return 2;
	}
	if (profile_read(path, profile, why) < 0) {
		fprintf(stderr, "softcx-nic: --device %s: %s\n", cfg->device, why);
		return 2;
	}
	cfg->hw.profile = profile;
	hw_config_complete(&cfg->hw);
	return 0;
}

/* Makes the directories of the hosts. Returns an exit status. */
static int make_dirs(struct hosts *hosts, const struct options *o)
{
	const char *list = o->text[OPTION_HOSTS], *dir = o->text[OPTION_DIR];
	char own[SOFTCX_MAX_DIR + 1], why[160];
	int rc = dir ? 0 : softcx_dir(own, sizeof(own));

	if (!dir)
		dir = own;
	if (hosts_parse(hosts, list, (unsigned)o->number[OPTION_DEVICES], why, sizeof(why)) < 0) {
		fprintf(stderr, "softcx-nic: --%s: %s\n", list ? "hosts" : "devices", why);
		return 2;
	}
	if (options_check_pu(o, hosts->ndevs, why, sizeof(why)) < 0) {
		fprintf(stderr, "softcx-nic: %s\n", why);
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
			"choose another with --dir\n",
			SOFTCX_MAX_DIR);
	else if (rc < 0)
		fprintf(stderr, "softcx-nic: %s: %s\n", dir, strerror(-rc));
	return rc == -ENAMETOOLONG ? 2 : rc < 0;
}

static void report_ready(int fd)
{
	if (write(fd, "ready\n", 6) < 0)
		fprintf(stderr, "softcx-nic: --ready-fd %d: %s\n", fd, strerror(errno));
	close(fd);
}

int main(int argc, char **argv)
{
	static struct hosts hosts;
	static struct costs costs;
	static struct profile profile;
	struct sigaction act = {.sa_handler = on_signal};
	struct server_config cfg;
	struct options o;
	int rc;

	output_begin(2);
	rc = read_options(&o, argc, argv);
	if (rc)
		return rc;
	if (options_given(&o, OPTION_HELP)) {
		options_help_verb(stdout, "softcx nic", VERB_NIC);
		return 0;
	}
	cfg = (struct server_config){
		.hosts = &hosts,
		.hw = {.seed = o.number[OPTION_SEED],
			.lenient = options_given(&o, OPTION_LENIENT),
			.no_index_check = options_given(&o, OPTION_NO_INDEX_CHECK),
			.no_qpn_check = options_given(&o, OPTION_NO_QPN_CHECK),
			.no_sync_fence = options_given(&o, OPTION_NO_SYNC_FENCE)},
		.device = options_device(&o),
		.clock = o.text[OPTION_CLOCK],
		.pus = (unsigned)o.number[OPTION_PU],
		.linger = (unsigned)o.number[OPTION_LINGER],
	};
	rc = read_device(&cfg, &profile);
	if (rc == 0)
		rc = read_clock(&cfg, &costs);
	if (rc == 0)
		rc = make_dirs(&hosts, &o);
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
	if (options_given(&o, OPTION_READY_FD))
		report_ready((int)o.number[OPTION_READY_FD]);
	rc = server_run(server);
	server_free(server);
	return rc < 0;
}
