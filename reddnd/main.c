/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"
#include "reddnd/control/control.h"
#include "reddnd/control/listener.h"
#include "reddnd/generation/generation.h"
#include "reddnd/server/enforcement.h"
#include "reddnd/server/server.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <time.h>

enum { STATUS_INTERVAL_US = 5000000 };

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
};

static const char usage[] =
	"usage: reddnd [OPTIONS]\n"
	"\n"
	"Lets the NIC answer requests on the data of this machine.\n"
	"\n"
	"  -c, --config FILE   configuration (default " REDDND_CONFIG ")\n"
	"  -t, --check-config  say what is wrong with it, and stop\n"
	"  -v, --verbose       log more\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"SIGTERM and SIGINT stop it, SIGHUP reads the configuration again, SIGUSR1 logs what\n"
	"it does. reddnctl asks and tells a running daemon.\n";

DEFINE_CLEANUP(struct catalog *, catalog_free)
DEFINE_CLEANUP(struct control *, control_free)
DEFINE_CLEANUP(struct listener *, listener_free)
DEFINE_CLEANUP(struct server *, server_free)

static void daemon_deinit(struct daemon *d)
{
	listener_freep(&d->listener);
	control_freep(&d->control);
	server_freep(&d->server);
	sd_event_unref(d->event);
}

/* 0: go on; 1: done, well; negative: done, badly */
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

static int load(const char *path, struct catalog **catalog)
{
	CLEANUP(cleanup_free) char *errors = NULL;
	int r = catalog_load(path, catalog, &errors);

	for (char *save, *line = errors ? strtok_r(errors, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save))
		log_error("%s", line);
	if (r < 0 && r != -EINVAL)
		log_errno(r, "%s", path);
	return r;
}

/* ---- running
 * ------------------------------------------------------------------------------------------------ */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *d = arg;

	(void)source;
	log_info("stopping: %s", strsignal((int)info->ssi_signo));
	sd_notify(false, "STOPPING=1");
	return sd_event_exit(d->event, 0);
}

static void tell_reloading(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%jd", (intmax_t)t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

/* A catalog with mistakes, or one that cannot be opened, changes nothing */
static int reload(void *arg)
{
	CLEANUP(catalog_freep) struct catalog *catalog = NULL;
	struct daemon *d = arg;
	int r;

	tell_reloading();
	r = load(d->config, &catalog);
	if (r == 0)
		r = server_reload(d->server, steal_ptr(&catalog));
	if (r < 0)
		warden_reload_failed(server_warden(d->server),
			"the configuration in force stays as it was: the new one has mistakes");
	sd_notify(false, "READY=1");
	return r;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	(void)source;
	(void)info;
	reload(arg);
	return 0;
}

static void log_session(void *arg, const struct server_session *s)
{
	(void)arg;
	log_at(LOG_NOTICE, s->id, "client %s, offload %s: %" PRIu64 " requests", s->peer, s->offload,
		s->requests);
}

static int on_show(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *d = arg;
	struct server_status s;
	struct timespec cpu;

	(void)source;
	(void)info;
	server_status(d->server, &s);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	log_notice("%u sessions now, %" PRIu64 " ever, %" PRIu64 " refused; %" PRIu64
		   " requests; %jd.%03ld s of CPU; %" PRIu64 " of %" PRIu64 " bytes of the arena in use",
		s.sessions, s.sessions_total, s.refused, s.requests, (intmax_t)cpu.tv_sec,
		cpu.tv_nsec / 1000000, s.arena_used, s.arena_size);
	server_each_session(d->server, log_session, NULL);
	return 0;
}

static int on_status(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	struct server_status s;
	int r;

	(void)usec;
	server_status(d->server, &s);
	sd_notifyf(false, "STATUS=%u sessions, %" PRIu64 " requests served", s.sessions, s.requests);
	r = sd_event_source_set_time_relative(source, STATUS_INTERVAL_US);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int watch_signals(struct daemon *d)
{
	const struct {
		int signal;
		sd_event_signal_handler_t handler;
	} handlers[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_hangup}, {SIGUSR1, on_show}};
	sigset_t set;
	int r = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(handlers) / sizeof(*handlers); i++)
		sigaddset(&set, handlers[i].signal);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(handlers) / sizeof(*handlers) && r >= 0; i++)
		r = sd_event_add_signal(d->event, NULL, handlers[i].signal, handlers[i].handler, d);
	return r < 0 ? r : 0;
}

/* Where the catalog says; else in the directory that systemd made; else there is none */
static int open_control(struct daemon *d, const struct catalog *catalog)
{
	const struct commands commands = {.server = d->server, .reload = reload, .arg = d};
	const char *runtime = getenv("RUNTIME_DIRECTORY");
	char path[PATH_MAX];

	if (catalog->control)
		snprintf(path, sizeof(path), "%s", catalog->control);
	else if (runtime)
		snprintf(path, sizeof(path), "%s/control", runtime);
	else
		return 0;
	return control_new(&d->control, path, &commands, d->event);
}

static int run(struct daemon *d, struct catalog *catalog)
{
	int r;

	r = sd_event_default(&d->event);
	if (r >= 0)
		r = watch_signals(d);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true);
	if (r < 0) {
		catalog_free(catalog);
		return log_errno(r, "cannot make an event loop");
	}
	r = server_new(&d->server, catalog, d->event);
	if (r < 0)
		return r;
	catalog = server_generation(d->server)->catalog;
	r = open_control(d, catalog);
	if (r == 0 && catalog->serves_metrics)
		r = listener_new(&d->listener, &catalog->metrics, d->server, d->event);
	if (r < 0)
		return r;
	/* Slack as large as the interval: nobody waits for this */
	r = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, 0, STATUS_INTERVAL_US, on_status, d);
	if (r < 0)
		return log_errno(r, "cannot make an event loop");
	sd_notify(false, "READY=1");
	return sd_event_loop(d->event);
}

int main(int argc, char **argv)
{
	CLEANUP(catalog_freep) struct catalog *catalog = NULL;
	CLEANUP(daemon_deinit) struct daemon d = {0};
	struct options o;
	int r;

	r = parse_options(argc, argv, &o);
	if (r)
		return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	log_init(o.verbose ? LOG_DEBUG : LOG_INFO);
	d.config = o.config;
	r = load(o.config, &catalog);
	/* No restart helps: the unit has RestartPreventExitStatus= for this */
	if (r < 0)
		return EXIT_FAILURE;
	if (o.check) {
		printf("%s: %u regions, %u offloads, no mistakes\n", o.config, catalog->nregions,
			catalog->noffloads);
		return EXIT_SUCCESS;
	}
	return run(&d, steal_ptr(&catalog)) < 0 ? EX_UNAVAILABLE : EXIT_SUCCESS;
}
