/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/status.h"

#include "softcx/nic/ident.h"
#include "softcx/nic/server.h"
#include "softcx/proto/proto.h"
#include "softcx/ucma/net.h"
#include "util/array.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

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

struct json_object *status_of(const struct server_config *cfg, const struct files *files, bool tracing)
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
	json_object_object_add(o, "message_limit", json_object_new_boolean(!cfg->hw.no_msg_limit));
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
