/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"
#include "reddnd/control/control.h"
#include "reddnd/control/listener.h"
#include "reddnd/rnic/arena.h"
#include "reddnd/server/configuration.h"
#include "reddnd/server/devices.h"
#include "reddnd/server/operator.h"
#include "reddnd/server/renewal.h"
#include "reddnd/server/server.h"
#include "reddnd/util/log.h"
#include "reddnd/util/notify.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/output.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* The line for the service manager is made after this time, or twice that: nobody waits for it, so the slack
 * is as large */
enum { STATUS_US = 5000000, RETRY_S = 5 };

struct options {
	const char *config;
	bool check, verbose;
};

struct daemon {
	const char *config;
	struct server *server;
	struct control *control;
	struct listener *listener;
	sd_event *event;
	uint64_t watchdog_us; /* WATCHDOG=1 comes at least so often */
};

static const char usage[] =
	"usage: reddnd [OPTIONS]\n"
	"\n"
	"Lets the NIC answer requests on the data of this machine.\n"
	"\n"
	"  -c, --config FILE   configuration (default " REDDND_CONFIG ")\n"
	"  -t, --check-config  report its mistakes, and stop\n"
	"  -v, --verbose       log more\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"SIGTERM and SIGINT stop it, SIGUSR2 leaves its sessions to the next daemon, SIGHUP reads\n"
	"the configuration again, SIGUSR1 logs what it does. reddnctl controls and inspects a\n"
	"running daemon.\n"
	"\n"
	"Examples:\n"
	"  reddnd --check-config --config reddnd.conf\n"
	"  systemctl enable --now reddnd\n";

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct control *, control_free)
DEFINE_CLEANUP(struct listener *, listener_free)
DEFINE_CLEANUP(struct rnic_arena *, rnic_arena_free)
DEFINE_CLEANUP(struct server *, server_free)
DEFINE_CLEANUP(struct stats *, stats_free)

static void daemon_deinit(struct daemon *d)
{
	listener_freep(&d->listener);
	control_freep(&d->control);
	server_freep(&d->server);
	sd_event_unref(d->event);
}

/* 0: go on; 1: exit with success; negative: exit with failure */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, 't'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct options){.config = REDDND_CONFIG};
	while ((c = getopt_long(argc, argv, "c:tvhV", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 't':
			o->check = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'V':
			puts("reddnd " REDDND_VERSION);
			return 1;
		default:
			fputs("reddnd --help lists the options\n", stderr);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "reddnd: unexpected argument \"%s\"; reddnd --help lists the options\n",
			argv[optind]);
		return -EINVAL;
	}
	return 0;
}

/* ---- running ---- */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *d = arg;

	(void)source;
	log_info("stopping: %s", strsignal((int)info->ssi_signo));
	notify_send("STOPPING=1", -1);
	return sd_event_exit(d->event, 0);
}

static int on_restart(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *d = arg;

	(void)source;
	(void)info;
	log_info("leaving the sessions to the next daemon");
	server_leave(d->server);
}

static uint64_t reload(void *arg)
{
	struct daemon *d = arg;
	char text[60];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
	notify_send(text, -1);
	return server_reload(d->server);
}

static void on_reloaded(void *arg, uint64_t number, int error, const char *errors)
{
	struct daemon *d = arg;

	notify_send("READY=1", -1);
	if (d->control)
		control_reloaded(d->control, number, error, errors);
}

static void on_taken(void *arg, uint64_t number, int error, const char *errors)
{
	struct daemon *d = arg;

	if (d->control)
		control_taken(d->control, number, error, errors);
}

static const struct server_ops server_ops = {.reloaded = on_reloaded, .taken = on_taken};

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	(void)source;
	(void)info;
	reload(arg);
	return 0;
}

static int on_show(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *d = arg;
	CLEANUP(stats_freep) struct stats *stats = operator_snapshot(d->server);
	uint64_t cpu_ms = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000;
	const struct stats_status *s;

	(void)source;
	(void)info;
	if (!stats)
		return 0;
	s = &stats->status;
	log_notice("%u sessions now, %" PRIu64 " ever, %" PRIu64 " refused; %" PRIu64 " requests; %" PRIu64
		   ".%03" PRIu64 " s of CPU; %" PRIu64 " of %" PRIu64 " bytes of the arena in use",
		s->sessions, s->sessions_total, s->counts.refused, s->counts.requests, cpu_ms / 1000,
		cpu_ms % 1000, s->arena_used, s->arena_size);
	for (unsigned i = 0; i < stats->nsessions; i++)
		log_at(LOG_NOTICE, stats->sessions[i].id, "client %s, offload %s: %" PRIu64 " requests",
			stats->sessions[i].peer, stats->sessions[i].offload, stats->sessions[i].requests);
	return 0;
}

static int on_status(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	struct stats stats;
	const struct stats_status *s = &stats.status;
	char disabled[40] = "";
	int r;

	(void)usec;
	operator_glance(d->server, &stats);
	if (s->disabled)
		snprintf(disabled, sizeof(disabled), ", %u offload%s disabled", s->disabled,
			s->disabled == 1 ? "" : "s");
	notify_status("STATUS=%u sessions%s%s", s->sessions, disabled,
		*s->configuration_refused ? ", the configuration has mistakes and the one before is in force"
					  : "");
	r = sd_event_source_set_time_relative(source, STATUS_US);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* sd_event_set_watchdog(3) sends it with sd_notify(3), which waits for a manager that does not read */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *arg)
{
	const struct daemon *d = arg;
	int r;

	(void)usec;
	notify_status("WATCHDOG=1");
	r = sd_event_source_set_time_relative(source, d->watchdog_us / 4);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int begin_watchdog(struct daemon *d)
{
	int r = sd_watchdog_enabled(false, &d->watchdog_us);

	if (r > 0)
		r = sd_event_add_time_relative(
			d->event, NULL, CLOCK_MONOTONIC, 0, d->watchdog_us / 4, on_watchdog, d);
	return r < 0 ? log_errno(r, "cannot begin to answer the watchdog") : 0;
}

static int watch_signals(struct daemon *d)
{
	const struct {
		int signal;
		sd_event_signal_handler_t handler;
	} handlers[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGUSR2, on_restart}, {SIGHUP, on_hangup},
		{SIGUSR1, on_show}};
	sigset_t set;
	int r = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(handlers); i++)
		sigaddset(&set, handlers[i].signal);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < COUNT(handlers) && r >= 0; i++)
		r = sd_event_add_signal(d->event, NULL, handlers[i].signal, handlers[i].handler, d);
	return r < 0 ? r : 0;
}

/* That of the catalog; else in the directory that systemd made. False: there is no socket */
static bool control_path(const struct catalog *catalog, char path[PATH_MAX])
{
	const char *runtime = getenv("RUNTIME_DIRECTORY");

	if (catalog->control)
		snprintf(path, PATH_MAX, "%s", catalog->control);
	else if (runtime)
		snprintf(path, PATH_MAX, "%s/control", runtime);
	return catalog->control || runtime;
}

/* Before the daemon listens. Not with sessions of the one before, which need the device first */
static int check_control(const struct configuration *begin)
{
	char path[PATH_MAX];

	return fd_store_is_empty(&begin->store) && control_path(begin->catalog, path) ? control_check(path)
										      : 0;
}

static int open_control(struct daemon *d, const struct catalog *catalog)
{
	const struct commands commands = {.server = d->server, .reload = reload, .arg = d};
	char path[PATH_MAX];

	return control_path(catalog, path) ? control_new(&d->control, path, &commands, d->event) : 0;
}

static int run(struct daemon *d, struct configuration *begin)
{
	struct server_parts parts = {.config = d->config, .ops = &server_ops, .arg = d};
	const struct catalog *in_force;
	int r;

	r = sd_event_default(&d->event);
	if (r >= 0)
		r = watch_signals(d);
	if (r < 0)
		return log_errno(r, "cannot make an event loop");
	r = check_control(begin);
	if (r < 0)
		return r;
	parts.event = d->event;
	r = server_new(&d->server, &parts, begin);
	if (r < 0)
		return r;
	in_force = server_catalog(d->server);
	r = open_control(d, in_force);
	if (r == 0 && in_force->serves_metrics)
		r = listener_new(&d->listener, &in_force->metrics, d->server, d->event);
	/* What is missing can be corrected, and no session needs it */
	if (r < 0 && server_has_sessions(d->server))
		server_distrust_catalog(d->server);
	if (r < 0)
		return r;
	server_trust_catalog(d->server);
	r = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, 0, STATUS_US, on_status, d);
	if (r < 0)
		return log_errno(r, "cannot make an event loop");
	notify_send("READY=1", -1);
	/* Not before: no loop answers while the device is tried and tables are pinned */
	r = begin_watchdog(d);
	return r < 0 ? r : sd_event_loop(d->event);
}

static int check(const char *path)
{
	CLEANUP(catalog_freep) struct catalog *catalog = NULL;
	CLEANUP(rnic_arena_freep) struct rnic_arena *arena = NULL;
	int r = renewal_load(path, &catalog);

	if (r == 0)
		r = devices_make_arena(&arena, catalog->arena);
	if (r == 0)
		printf("%s: %u regions, %u offloads, no mistakes\n", path, catalog->nregions,
			catalog->noffloads);
	return r;
}

/* Sessions of the daemon before this one would end with this process. If it has kept no configuration that
 * can be used, their clients are served by the NIC until somebody corrects the mistake. */
static int load(const struct options *o, struct configuration *begin)
{
	int r;

	while ((r = configuration_load(begin, o->config)) < 0 && !fd_store_is_empty(&begin->store)) {
		log_error("the configuration is read again every %u s, because sessions of the daemon before "
			  "this one go on meanwhile",
			RETRY_S);
		sleep(RETRY_S);
	}
	return r;
}

/* Until the loop begins, however long that takes. They would end the process, and an end by SIGHUP is a
 * success to systemd, which would start no other one and close what it keeps (basic/exit-status.c,
 * is_clean_exit()) */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	CLEANUP(configuration_deinit) struct configuration begin = {0};
	CLEANUP(daemon_deinit) struct daemon d = {0};
	struct options o;
	int r;

	output_begin(EX_IOERR);
	r = parse_options(argc, argv, &o);
	if (r)
		return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	/* Worker threads allocate what the event loop frees. An arena for each kept 4 MiB after storms. */
	mallopt(M_ARENA_MAX, 1);
	log_init(o.verbose ? LOG_DEBUG : LOG_INFO);
	d.config = o.config;
	/* A limit of files is an error of what meets it */
	signal(SIGXFSZ, SIG_IGN);
	if (o.check)
		return check(o.config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	/* Whoever reads the log may leave, or stand still */
	signal(SIGPIPE, SIG_IGN);
	file_unblock_stderr();
	hold_signals();
	configuration_init(&begin);
	r = load(&o, &begin);
	/* No restart helps: the unit has RestartPreventExitStatus= for this */
	if (r < 0)
		return EXIT_FAILURE;
	return run(&d, &begin) < 0 ? EX_UNAVAILABLE : EXIT_SUCCESS;
}
