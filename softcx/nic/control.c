/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/ident.h"
#include "softcx/nic/server.h"
#include "softcx/proto/proto.h"
#include "softcx/ucma/net.h"
#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- members ---------------------------------------------------------------------------- */

static void add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static void add_hex(struct json_object *o, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_object_object_add(o, name, json_object_new_string(text));
}

static void add_text(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, json_object_new_string(value));
}

static struct json_object *new_object(struct json_object *list, const char *kind)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "kind", kind);
	json_object_array_add(list, o);
	return o;
}

/* ---- uverbs ----------------------------------------------------------------------------- */

static void describe_access(struct json_object *o, unsigned access)
{
	static const char *const words[] = {
		"local write", "remote write", "remote read", "remote atomic", "window bind", "zero based"};
	char text[96] = "local read";

	for (unsigned i = 0; i < COUNT(words); i++)
		if (access & 1u << i)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "+%s", words[i]);
	add_text(o, "access", text);
}

static void describe_mr(struct json_object *o, const struct uverbs_mr *mr)
{
	add_hex(o, "key", mr->key);
	add_number(o, "pdn", mr->pd->pdn);
	add_hex(o, "address", mr->va);
	add_number(o, "length", mr->len);
	if (mr->iova != mr->va)
		add_hex(o, "iova", mr->iova);
	describe_access(o, mr->access);
}

static void describe_cq(struct json_object *o, const struct hw_cq *cq)
{
	add_number(o, "cqn", hw_cqn(cq));
	add_number(o, "producer", hw_cq_producer(cq));
}

static void describe_qp(struct json_object *o, const struct hw_qp *qp)
{
	static const char *const types[] = {
		[HW_RC] = "RC", [HW_UC] = "UC", [HW_UD] = "UD", [HW_DCI] = "DCI", [HW_DCT] = "DCT"};
	static const char *const states[] = {[HW_RST] = "RESET",
		[HW_INIT] = "INIT",
		[HW_RTR] = "RTR",
		[HW_RTS] = "RTS",
		[HW_SQER] = "SQE",
		[HW_SQD] = "SQD",
		[HW_ERR] = "ERR"};
	struct hw_qp_progress p;
	struct hw_qp_mod mod;
	uint16_t sq, rq;

	hw_qp_progress(qp, &p);
	hw_qp_query(qp, &mod, &sq, &rq);
	add_hex(o, "qpn", hw_qpn(qp));
	add_text(o, "type", types[p.type]);
	add_text(o, "state", states[hw_qp_state(qp)]);
	add_number(o, "pdn", p.pdn);
	if ((p.type == HW_RC || p.type == HW_UC) && hw_qp_state(qp) != HW_RST && hw_qp_state(qp) != HW_INIT)
		add_hex(o, "dest_qpn", mod.dest_qpn);
	if (mod.mask & HW_QP_ACK_FREQ)
		add_number(o, "asks_ack_every", 1u << mod.log_ack_freq);
	if (p.sq_wqebbs) {
		add_number(o, "sq_wqebbs", p.sq_wqebbs);
		add_number(o, "sq_done", p.sq_done);
		add_number(o, "sq_fetched", p.sq_fetched);
		add_number(o, "sq_enabled", p.sq_enabled);
	}
	if (p.rq_wqes) {
		add_number(o, "rq_wqes", p.rq_wqes);
		add_number(o, "rq_done", p.rq_done);
	}
	if (p.wait_cq) {
		add_number(o, "waits_for_cq", hw_cqn(p.wait_cq));
		add_number(o, "waits_for_index", p.wait_index);
	}
	if (p.pauses)
		json_object_object_add(o, "pauses", json_object_new_boolean(true));
}

static void describe_srq(struct json_object *o, const struct uverbs_srq *srq)
{
	add_number(o, "srqn", hw_srqn(srq->hw));
	add_number(o, "max_wr", srq->max_wr);
	add_number(o, "limit", srq->limit);
}

static const char *devx_kind(const struct uverbs_devx *devx)
{
	return devx->cq     ? "devx cq"
	       : devx->qp   ? "devx qp"
	       : devx->srq  ? "devx receive memory pool"
	       : devx->rate ? "devx scheduling element"
			    : "devx mkey";
}

static void describe(struct json_object *list, const struct uverbs_obj *obj)
{
	static const char *const kinds[] = {[UVERBS_PD] = "pd",
		[UVERBS_MR] = "mr",
		[UVERBS_CQ] = "cq",
		[UVERBS_QP] = "qp",
		[UVERBS_SRQ] = "srq",
		[UVERBS_AH] = "ah",
		[UVERBS_MW] = "mw",
		[UVERBS_UAR] = "uar",
		[UVERBS_UMEM] = "umem"};
	const struct uverbs_devx *devx = obj->type == UVERBS_DEVX ? (const struct uverbs_devx *)obj : NULL;
	struct json_object *o = new_object(list, devx ? devx_kind(devx) : kinds[obj->type]);

	add_number(o, "handle", obj->handle);
	switch (obj->type) {
	case UVERBS_PD:
		add_number(o, "pdn", ((const struct uverbs_pd *)obj)->pdn);
		break;
	case UVERBS_MR:
		describe_mr(o, (const struct uverbs_mr *)obj);
		break;
	case UVERBS_CQ:
		describe_cq(o, ((const struct uverbs_cq *)obj)->hw);
		add_number(o, "cqes", ((const struct uverbs_cq *)obj)->cqe + 1);
		break;
	case UVERBS_QP:
		describe_qp(o, ((const struct uverbs_qp *)obj)->hw);
		break;
	case UVERBS_SRQ:
		describe_srq(o, (const struct uverbs_srq *)obj);
		break;
	case UVERBS_MW:
		add_hex(o, "key", ((const struct uverbs_mw *)obj)->key);
		break;
	case UVERBS_AH:
		break;
	case UVERBS_UAR:
		add_number(o, "page", hw_uar_index(((const struct uverbs_uar *)obj)->hw));
		break;
	case UVERBS_UMEM:
		add_hex(o, "address", ((const struct uverbs_umem *)obj)->va);
		add_number(o, "length", ((const struct uverbs_umem *)obj)->len);
		break;
	case UVERBS_DEVX:
		if (devx->cq)
			describe_cq(o, devx->cq);
		else if (devx->qp)
			describe_qp(o, devx->qp);
		else if (devx->srq)
			add_number(o, "rmpn", hw_srqn(devx->srq));
		else if (devx->rate)
			add_number(o, "id", hw_rate_id(devx->rate));
		else
			add_hex(o, "key", devx->mkey);
		break;
	}
}

static void describe_channels(struct json_object *list, const struct uverbs_file *file)
{
	static const char *const kinds[] = {[UVERBS_CH_COMP] = "completion channels",
		[UVERBS_CH_ASYNC] = "asynchronous event channels",
		[UVERBS_CH_DEVX] = "devx event channels",
		[UVERBS_CH_DEVX_OMIT] = "devx event channels without data",
		[UVERBS_CH_DEVX_CMD] = "devx command channels"};

	for (unsigned kind = 0; kind < COUNT(kinds); kind++) {
		unsigned n = uverbs_channels_count(file, (enum uverbs_channel_kind)kind);

		if (n)
			add_number(new_object(list, kinds[kind]), "count", n);
	}
	if (uverbs_devx_subscriptions(file))
		add_number(new_object(list, "devx subscriptions"), "count", uverbs_devx_subscriptions(file));
}

static void describe_uverbs(struct json_object *list, const struct uverbs_file *file, bool libraries)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		const struct uverbs_obj *obj = file->table[h];

		if (obj && obj->live && (libraries || obj->type != UVERBS_UAR))
			describe(list, obj);
	}
	if (libraries)
		describe_channels(list, file);
}

/* ---- rdma_cm ---------------------------------------------------------------------------- */

static void add_address(struct json_object *o, const char *name, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 16];

	if (addr->ss_family == AF_INET && inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host)))
		snprintf(text, sizeof(text), "%s:%u", host, ntohs(in4->sin_port));
	else if (addr->ss_family == AF_INET6 && inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)))
		snprintf(text, sizeof(text), "[%s]:%u", host, ntohs(in6->sin6_port));
	else
		return;
	add_text(o, name, text);
}

static void describe_id(struct json_object *list, const struct ucma_id *id)
{
	static const char *const states[] = {[UCMA_IDLE] = "idle",
		[UCMA_ADDR_BOUND] = "bound",
		[UCMA_ADDR_QUERY] = "resolving address",
		[UCMA_ADDR_RESOLVED] = "address resolved",
		[UCMA_ROUTE_QUERY] = "resolving route",
		[UCMA_ROUTE_RESOLVED] = "route resolved",
		[UCMA_CONNECT] = "connected",
		[UCMA_DISCONNECT] = "disconnected",
		[UCMA_LISTEN] = "listening"};
	struct json_object *o = new_object(list, "cm id");
	bool begun = id->state == UCMA_CONNECT && id->cm != UCMA_CM_ESTABLISHED;

	add_number(o, "handle", id->handle);
	add_text(o, "state", begun ? "connecting" : states[id->state]);
	add_address(o, "source", &id->src);
	add_address(o, "destination", &id->dst);
	if (id->qpn)
		add_hex(o, "qpn", id->qpn);
	if (id->remote_qpn)
		add_hex(o, "remote_qpn", id->remote_qpn);
}

/* ---- files ------------------------------------------------------------------------------ */

static struct json_object *describe_file(const struct file_view *view, bool libraries)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	const struct ucma_id *id;
	char name[SOFTCX_MAX_LABEL];

	add_text(o, "file", ident_file(view->host, view->dev, name));
	add_number(o, "pid", (uint64_t)view->pid);
	add_text(o, "program", view->program);
	if (view->uverbs)
		describe_uverbs(list, view->uverbs, libraries);
	if (view->ucma)
		TAILQ_FOREACH (id, &view->ucma->ids, in_file)
			describe_id(list, id);
	json_object_object_add(o, "objects", list);
	return o;
}

static void add_file(void *arg, const struct file_view *view)
{
	json_object_array_add(arg, describe_file(view, true));
}

/* An array of all open files. The caller puts it. */
static struct json_object *objects_of_files(const struct files *files)
{
	struct json_object *list = json_object_new_array();

	files_each(files, add_file, list);
	return list;
}

/* ---- watches ---------------------------------------------------------------------------- */

struct watch {
	unsigned mark; /* not 0 */
	pid_t pid;
	struct json_object *left;
	LIST_ENTRY(watch) link;
};

/* 0: it has none, or is not to be seen. */
static pid_t parent(pid_t pid)
{
	char path[32], text[256], *end;
	size_t n;
	FILE *f;
	int up;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')'); /* of the name, which may contain anything */
	return end && sscanf(end, ") %*c %d", &up) == 1 ? up : 0;
}

/* Orphans are adopted by the watching process (see the tool), so the way up always leads to it. */
static unsigned on_open(void *arg, pid_t pid)
{
	const struct watches *w = arg;
	const struct watch *watch;

	if (LIST_EMPTY(&w->list))
		return 0;
	for (int depth = 0; pid > 1 && depth < 1000; depth++) {
		LIST_FOREACH (watch, &w->list, link)
			if (watch->pid == pid)
				return watch->mark;
		pid = parent(pid);
	}
	return 0;
}

static void on_closing(void *arg, const struct file_view *view)
{
	const struct watches *w = arg;
	struct watch *watch;

	LIST_FOREACH (watch, &w->list, link) {
		struct json_object *file, *objects;

		if (watch->mark != view->mark)
			continue;
		file = describe_file(view, false);
		if (json_object_object_get_ex(file, "objects", &objects) && json_object_array_length(objects))
			json_object_array_add(watch->left, file);
		else
			json_object_put(file);
	}
}

/* takes the hooks of @files */
static void watches_init(struct watches *w, struct files *files)
{
	LIST_INIT(&w->list);
	w->last = 0;
	files->hooks = (struct files_hooks){on_open, on_closing, w};
}

/* Watches the files that descendants of @pid open from now on. */
static int watch_new(struct watches *w, pid_t pid, struct watch **out)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	*watch = (struct watch){.mark = ++w->last, .pid = pid, .left = json_object_new_array()};
	LIST_INSERT_HEAD(&w->list, watch, link);
	*out = watch;
	return 0;
}

/* NULL is fine */
static void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	LIST_REMOVE(watch, link);
	json_object_put(watch->left);
	free(watch);
}

struct count {
	unsigned mark, n;
};

static void count_file(void *arg, const struct file_view *view)
{
	struct count *count = arg;

	count->n += view->mark == count->mark;
}

/*
 * {"left", "open"}. left: array of the files that were closed with objects which the program itself should
 * have destroyed, all but the doorbell pages and event channels of its libraries. open: how many of the
 * watched files somebody still has. The caller puts it.
 */
static struct json_object *watch_report(const struct watch *watch, const struct files *files)
{
	struct json_object *o = json_object_new_object();
	struct count open = {.mark = watch->mark};

	files_each(files, count_file, &open);
	json_object_object_add(o, "left", json_object_get(watch->left));
	add_number(o, "open", open.n);
	return o;
}

/*
 * What the NIC process is and has, in JSON, for "softcx status": its configuration, its hosts, and
 * the objects of each device and of the connection manager.
 */

static void add_counts(struct json_object *o, const struct hw_counts *c)
{
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {{"pds", c->pds}, {"mkeys", c->mkeys}, {"uars", c->uars},
		{"uars_asleep", c->uars_asleep}, {"cqs", c->cqs}, {"qps", c->qps}, {"srqs", c->srqs},
		{"mems", c->mems}, {"wqes", c->wqes}, {"cqes", c->cqes}, {"uars_woken", c->uars_woken},
		{"passes", c->passes}, {"bytes", c->bytes}};

	for (unsigned i = 0; i < COUNT(counts); i++)
		json_object_object_add(o, counts[i].name, json_object_new_uint64(counts[i].n));
}

static struct json_object *device_status(const struct hw_dev *device, unsigned dev)
{
	struct json_object *o = json_object_new_object();
	const struct host *host = ident_host(dev);
	char label[SOFTCX_MAX_LABEL], folder[PATH_MAX];
	struct hw_counts c;

	json_object_object_add(o, "name", json_object_new_string(ident_dev(dev, label)));
	snprintf(folder, sizeof(folder), "%s/" SOFTCX_SYSFS "/class/infiniband/mlx5_%u", host->dir,
		dev - host->first);
	json_object_object_add(o, "sysfs", json_object_new_string(folder));
	hw_counts(device, &c);
	add_counts(o, &c);
	return o;
}

static struct json_object *host_status(const struct host *host)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(host->name));
	json_object_object_add(o, "dir", json_object_new_string(host->dir));
	json_object_object_add(o, "devices", json_object_new_int64(host->ndevs));
	return o;
}

/* @tracing: a trace is being read. The caller has the hardware (hardware.h), and puts the object. */
static struct json_object *status_of(const struct server_config *cfg, const struct files *files, bool tracing)
{
	struct json_object *o = json_object_new_object(), *devs = json_object_new_array();
	struct json_object *cm = json_object_new_object(), *hosts = json_object_new_array();
	struct ucma_counts ids;

	json_object_object_add(o, "pid", json_object_new_int(getpid()));
	json_object_object_add(o, "dir", json_object_new_string(cfg->hosts->host[0].dir));
	json_object_object_add(o, "device", json_object_new_string(cfg->device));
	json_object_object_add(o, "seed", json_object_new_uint64(cfg->hw.seed));
	json_object_object_add(o, "pu", json_object_new_int64(cfg->pus));
	json_object_object_add(o, "lenient", json_object_new_boolean(cfg->hw.lenient));
	json_object_object_add(o, "index_check", json_object_new_boolean(!cfg->hw.no_index_check));
	json_object_object_add(o, "sync_fence", json_object_new_boolean(!cfg->hw.no_sync_fence));
	json_object_object_add(o, "qpn_check", json_object_new_boolean(!cfg->hw.no_qpn_check));
	json_object_object_add(o, "clock", cfg->clock ? json_object_new_string(cfg->clock) : NULL);
	json_object_object_add(o, "files", json_object_new_int64(files->count));
	for (unsigned i = 0; i < cfg->hosts->n; i++)
		json_object_array_add(hosts, host_status(&cfg->hosts->host[i]));
	json_object_object_add(o, "hosts", hosts);
	for (unsigned i = 0; i < cfg->hosts->ndevs; i++)
		json_object_array_add(devs, device_status(files->devs[i], i));
	json_object_object_add(o, "devices", devs);
	ucma_counts(files->net, &ids);
	json_object_object_add(cm, "ids", json_object_new_int64(ids.ids));
	json_object_object_add(cm, "listeners", json_object_new_int64(ids.listeners));
	json_object_object_add(cm, "connections", json_object_new_int64(ids.connections));
	json_object_object_add(o, "cm", cm);
	json_object_object_add(o, "tracing", json_object_new_boolean(tracing));
	return o;
}

struct control {
	struct source source; /* first */
	struct controls *of;
	bool hold;
	struct tracer *tracer; /* or NULL */
	struct watch *watch;   /* or NULL */
	LIST_ENTRY(control) link;
};

static struct json_object *status(const struct controls *c)
{
	return status_of(c->cfg, c->files, !LIST_EMPTY(&c->tracers.list));
}

static void send_status(const struct controls *c, int fd)
{
	struct json_object *o = status(c);
	const char *text =
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	json_object_put(o);
}

/** Text of any length: in a file whose descriptor goes with one byte. Puts @o. */
static void send_file(int fd, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	int file = memfd_create("softcx-json", MFD_CLOEXEC);
	size_t len = strlen(text);
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {(char[]){"+"}, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	softcx_put_fds(&msg, &control.hdr, &file, 1);
	if (file >= 0 && pwrite(file, text, len, 0) == (ssize_t)len)
		sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		send(fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (file >= 0)
		close(file);
	json_object_put(o);
}

static void send_objects(const struct controls *c, int fd)
{
	struct json_object *o = status(c);

	json_object_object_add(o, "open_files", objects_of_files(c->files));
	send_file(fd, o);
}

static int start_watch(struct control *c)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (getsockopt(c->source.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	watch_free(c->watch);
	c->watch = NULL;
	return watch_new(&c->of->watches, cred.pid, &c->watch);
}

static bool control_input(struct source *source)
{
	struct control *c = (struct control *)source;
	char word[16 * (SOFTCX_TRACE_QPS + 2)] = "";
	ssize_t n = recv(source->fd, word, sizeof(word) - 1, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (strcmp(word, "status") == 0) {
		send_status(c->of, source->fd);
	} else if (strcmp(word, "stop") == 0) {
		c->of->stop = true;
	} else if (strcmp(word, "hold") == 0) {
		c->of->holds += !c->hold;
		c->hold = true;
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strncmp(word, "fault ", 6) == 0) {
		faults_command(c->of->faults, word + 6, source->fd);
	} else if (strcmp(word, "objects") == 0) {
		send_objects(c->of, source->fd);
	} else if (strcmp(word, "watch") == 0 && start_watch(c) == 0) {
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strcmp(word, "left") == 0 && c->watch) {
		send_file(source->fd, watch_report(c->watch, c->of->files));
	} else if (strncmp(word, "trace", 5) == 0 && !c->tracer) {
		return tracer_new(&c->of->tracers, source->fd, word + 5, &c->tracer) == 0;
	} else if (strcmp(word, "end") == 0 && c->tracer) {
		tracer_end(c->tracer);
	} else {
		send(source->fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return true;
}

static void control_destroy(struct source *source)
{
	struct control *c = (struct control *)source;

	c->of->holds -= c->hold;
	tracer_free(c->tracer);
	watch_free(c->watch);
	LIST_REMOVE(c, link);
	free(c);
}

void controls_init(struct controls *all, const struct server_config *cfg, struct event_loop *loop,
	struct files *files, struct faults *faults)
{
	*all = (struct controls){.cfg = cfg, .loop = loop, .files = files, .faults = faults};
	tracers_init(&all->tracers, files, cfg->hosts->ndevs);
	watches_init(&all->watches, files);
}

int controls_add(struct controls *all, int fd)
{
	struct control *c = calloc(1, sizeof(*c));
	int rc = c ? 0 : -ENOMEM;

	if (rc == 0) {
		*c = (struct control){
			.source = {.fd = fd, .rank = 1, .input = control_input, .destroy = control_destroy},
			.of = all};
		rc = event_loop_add(all->loop, &c->source);
	}
	if (rc < 0) {
		free(c);
		close(fd);
		return rc;
	}
	LIST_INSERT_HEAD(&all->list, c, link);
	return 0;
}

void controls_clear(struct controls *all)
{
	struct control *c;

	LIST_FOREACH (c, &all->list, link)
		event_loop_remove(all->loop, &c->source);
}
