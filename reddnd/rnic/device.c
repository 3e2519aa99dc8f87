/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/prm.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- the doorbell page (a UAR), which all queues ring ---- */

static void free_page(struct rnic_device *dev)
{
	if (rnic_devx_destroy(dev->ctx->cmd_fd, RNIC_DEVX_UAR, dev->uar.handle) == 0)
		ledger_gone(dev->slot, LEDGER_UAR, dev->uar.handle);
}

static int map_page(struct rnic_device *dev)
{
	void *page = mmap(
		NULL, dev->uar.mmap_size, PROT_WRITE, MAP_SHARED, dev->ctx->cmd_fd, (off_t)dev->uar.mmap_off);

	if (page == MAP_FAILED)
		return -errno;
	dev->uar_page = page;
	return 0;
}

/* Makes a page, records it in the slot of the device, and maps it. Errors are those of the device. */
static int rnic_uar_make(struct rnic_device *dev)
{
	int r = rnic_devx_uar_alloc(dev->ctx->cmd_fd, &dev->uar);

	if (r < 0)
		return r;
	ledger_made(dev->slot, &(struct ledger_object){.type = LEDGER_UAR,
				       .handle = dev->uar.handle,
				       .number = dev->uar.page_id,
				       .offset = dev->uar.mmap_off});
	r = map_page(dev);
	if (r < 0)
		free_page(dev);
	return r;
}

/* Maps the page that the slot of the device has: queues go on ringing the one that they were made with.
 * -EBADMSG: it has none. All queues ring the page that they were made with: the successor maps the same one
 */
static int rnic_uar_adopt(struct rnic_device *dev)
{
	for (const struct ledger_object *o = dev->slot->object; o < dev->slot->object + LEDGER_OBJECTS; o++) {
		if (o->type != LEDGER_UAR)
			continue;
		dev->uar = (struct rnic_devx_uar){.handle = o->handle,
			.page_id = o->number,
			.mmap_off = o->offset,
			.mmap_size = (uint64_t)sysconf(_SC_PAGESIZE)};
		return map_page(dev);
	}
	return -EBADMSG;
}

/* After all queues. Fine without a page. */
static void rnic_uar_free(struct rnic_device *dev)
{
	if (!dev->uar_page)
		return;
	munmap(dev->uar_page, dev->uar.mmap_size);
	free_page(dev);
}

/* ---- the device ---- */

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int query_caps(struct ibv_context *ctx, enum prm_cap_type type, uint8_t page[static 4096])
{
	uint8_t in[PRM_SIZE_query_hca_cap_in] = {0}, out[PRM_SIZE_query_hca_cap_out] = {0};
	int r;

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_HCA_CAP);
	prm_set(in, PRM_in_op_mod, (uint64_t)type << 1 | 1);
	r = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
	if (r)
		return r > 0 ? -r : r;
	memcpy(page, out + PRM_query_hca_cap_out_capability_byte, 4096);
	return 0;
}

static int probe(struct rnic_device *dev)
{
	uint8_t general[4096], roce[4096], atomic[4096];
	bool has_roce, has_atomic;
	char text[512], lacks[RNIC_LACKS - sizeof("it lacks: ")];
	int r;

	r = query_caps(dev->ctx, PRM_CAP_GENERAL, general);
	if (r < 0)
		return log_errno(r, "%s: cannot query its capabilities", rnic_device_name(dev));
	has_roce = prm_get(general, PRM_cmd_hca_cap_roce) && query_caps(dev->ctx, PRM_CAP_ROCE, roce) == 0;
	has_atomic =
		prm_get(general, PRM_cmd_hca_cap_atomic) && query_caps(dev->ctx, PRM_CAP_ATOMIC, atomic) == 0;
	rnic_caps_parse(&dev->caps, general, has_roce ? roce : NULL, has_atomic ? atomic : NULL);
	rnic_caps_describe(&dev->caps, text, sizeof(text));
	log_info("%s: %s", rnic_device_name(dev), text);
	if (!rnic_caps_sufficient(&dev->caps, lacks, sizeof(lacks))) {
		snprintf(text, sizeof(text), "it lacks: %s", lacks);
		rnic_device_deny_chains(dev, text);
	}
	return 0;
}

static int probe_plain(struct rnic_device *dev, const char *why)
{
	struct ibv_port_attr port;
	int r = ibv_query_port(dev->ctx, RNIC_PORT, &port);

	if (r)
		return log_errno(-abs(r), "%s: cannot query its port", rnic_device_name(dev));
	dev->caps.infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
	rnic_device_deny_chains(dev, why);
	return 0;
}

static int make_parts(struct rnic_device *dev)
{
	int r = rnic_device_take_slot(dev, LEDGER_DEVICE, &dev->slot);

	if (r == 0)
		r = rnic_pd_new(&dev->pd, dev, dev->slot);
	if (r < 0 || !dev->direct)
		return r;
	r = rnic_uar_make(dev);
	return r < 0 ? log_errno(r, "%s: cannot get a doorbell page", rnic_device_name(dev)) : 0;
}

static int adopt_parts(struct rnic_device *dev)
{
	int r;

	dev->slot = ledger_unclaimed(dev->ledger, LEDGER_DEVICE, NULL);
	if (!dev->slot)
		return log_errno(-EBADMSG, "%s: the ledger has nothing of it", rnic_device_name(dev));
	ledger_claim(dev->ledger, dev->slot);
	r = rnic_pd_adopt(&dev->pd, dev, dev->slot);
	if (r < 0)
		return r;
	r = rnic_uar_adopt(dev);
	return r < 0 ? log_errno(r, "%s: cannot go on with its doorbell page", rnic_device_name(dev)) : 0;
}

/* What direct commands need */
static int prepare_direct(struct rnic_device *dev)
{
	int r = *dev->caps.no_chains ? 0 : rnic_own_path_find(dev);

	if (r < 0)
		return r;
	r = mlx5dv_devx_query_eqn(dev->ctx, 0, &dev->eqn);
	if (r)
		return log_errno(-abs(r), "%s: cannot get its event queue", rnic_device_name(dev));
	r = rnic_devx_event_fd(dev->ctx->cmd_fd, &dev->events);
	return r < 0 ? log_errno(r, "%s: cannot make an event channel", rnic_device_name(dev)) : 0;
}

static int prepare(struct rnic_device *dev, int (*get_parts)(struct rnic_device *dev))
{
	int r;

	if (getrandom(&dev->psn_secret, sizeof(dev->psn_secret), 0) != sizeof(dev->psn_secret))
		return log_errno(-errno, "cannot get random numbers");
	dev->caps.no_immediates = dev->ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	r = get_parts(dev);
	if (r == 0 && dev->direct)
		r = prepare_direct(dev);
	if (r == 0)
		r = set_nonblocking(dev->ctx->async_fd);
	if (r == 0 && dev->ledger)
		ledger_set_device(dev->ledger, rnic_device_name(dev));
	if (r == 0 && dev->slot)
		ledger_live(dev->slot);
	return r;
}

/* Without a name, those that may run chains come first */
static struct ibv_device *choose(struct ibv_device **list, int n, const char *name)
{
	struct ibv_device *found = NULL;
	bool any_direct = false;

	for (int i = 0; i < n; i++)
		any_direct |= mlx5dv_is_supported(list[i]);
	for (int i = 0; i < n; i++) {
		if (*name ? strcmp(ibv_get_device_name(list[i]), name) != 0
			  : any_direct && !mlx5dv_is_supported(list[i]))
			continue;
		if (found) {
			log_error("%s and %s could serve: set \"device\" to one of them",
				ibv_get_device_name(found), ibv_get_device_name(list[i]));
			return NULL;
		}
		found = list[i];
	}
	if (!found && *name)
		log_error("there is no RDMA device \"%s\" (%d found)", name, n);
	else if (!found)
		log_error("there is no RDMA device");
	return found;
}

DEFINE_CLEANUP(struct rnic_device *, rnic_device_close)
DEFINE_CLEANUP(struct ibv_device **, ibv_free_device_list)

bool rnic_device_exists(const char *name)
{
	int n = 0;
	CLEANUP(ibv_free_device_listp) struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			return true;
	return false;
}

/* For direct commands if it takes them, else as any device */
static int open_device(struct rnic_device *dev, struct ibv_device *chosen)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	bool direct = mlx5dv_is_supported(chosen);
	int e = 0;

	if (direct) {
		errno = 0;
		dev->ctx = mlx5dv_open_device(chosen, &attr);
		e = errno;
	}
	if (direct && !dev->ctx && rnic_is_shortage(-e))
		return log_errno(-e, "%s: cannot be opened for direct commands", ibv_get_device_name(chosen));
	dev->direct = dev->ctx;
	if (dev->direct)
		return probe(dev);
	dev->ctx = ibv_open_device(chosen);
	if (!dev->ctx)
		return log_errno(errno ? -errno : -EIO, "cannot open %s", ibv_get_device_name(chosen));
	return probe_plain(dev, !direct       ? "it is no ConnectX"
				: e == EINVAL ? "it takes no direct commands (DEVX); its firmware may need "
						"UCTX_EN=1 (mlxconfig)"
					      : "it takes no direct commands (DEVX)");
}

int rnic_device_open(struct rnic_device **out, const char *name, struct ledger *ledger)
{
	CLEANUP(rnic_device_closep) struct rnic_device *dev = calloc(1, sizeof(*dev));
	CLEANUP(ibv_free_device_listp) struct ibv_device **list = NULL;
	struct ibv_device *chosen;
	int n = 0, r;

	if (!dev)
		return -ENOMEM;
	dev->events = dev->watches = -1;
	dev->ledger = ledger;
	list = ibv_get_device_list(&n);
	if (!list && errno == ENOSYS) {
		log_error("there is no RDMA device: this kernel has no verbs; modprobe ib_uverbs loads them");
		return -ENODEV;
	}
	if (!list)
		return log_errno(-errno, "cannot list RDMA devices");
	chosen = choose(list, n, name);
	if (!chosen)
		return -ENODEV;
	r = open_device(dev, chosen);
	if (r == 0)
		r = prepare(dev, make_parts);
	if (r < 0)
		return r;
	*out = steal_ptr(&dev);
	return 0;
}

int rnic_device_open_for_chains(struct rnic_device **out, const char *name, struct ledger *ledger)
{
	CLEANUP(rnic_device_closep) struct rnic_device *dev = NULL;
	int r = rnic_device_open(&dev, name, ledger);

	if (r < 0)
		return r;
	if (*dev->caps.no_chains) {
		log_error("%s runs no chains: %s", rnic_device_name(dev), dev->caps.no_chains);
		return -EOPNOTSUPP;
	}
	*out = steal_ptr(&dev);
	return 0;
}

int rnic_device_import(struct rnic_device **out, int fd, struct ledger *ledger)
{
	struct rnic_device *dev = calloc(1, sizeof(*dev));
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (!dev || own < 0)
		return -ENOMEM;
	dev->events = dev->watches = -1;
	dev->ledger = ledger;
	dev->ctx = ibv_import_device(own);
	if (!dev->ctx)
		return log_errno(errno ? -errno : -EIO, "cannot go on with the device file");
	dev->direct = true;
	r = probe(dev);
	if (r == 0)
		r = prepare(dev, adopt_parts);
	/* After an error all stays as it is, for the next one to try: nothing is closed */
	if (r == 0)
		*out = dev;
	return r;
}

void rnic_device_close(struct rnic_device *dev)
{
	if (dev->slot)
		ledger_ending(dev->slot);
	if (dev->events >= 0)
		close(dev->events);
	if (dev->watches >= 0)
		close(dev->watches);
	rnic_uar_free(dev);
	if (dev->pd)
		rnic_pd_free(dev->pd);
	rnic_device_drop_slot(dev, dev->slot);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	free(dev);
}

void rnic_device_set_watches(struct rnic_device *dev, int watches)
{
	dev->watches = watches;
}

struct ledger *rnic_device_ledger(const struct rnic_device *dev)
{
	return dev->ledger;
}

int rnic_device_take_slot(struct rnic_device *dev, enum ledger_kind kind, struct ledger_slot **slot)
{
	bool records = dev->ledger && (dev->direct || kind == LEDGER_SESSION);

	*slot = records ? ledger_take(dev->ledger, kind) : NULL;
	return records && !*slot ? -ENOSPC : 0;
}

void rnic_device_drop_slot(struct rnic_device *dev, struct ledger_slot *slot)
{
	if (slot)
		ledger_drop(dev->ledger, slot);
}

int rnic_device_fd(const struct rnic_device *dev)
{
	return dev->ctx->cmd_fd;
}

const char *rnic_device_name(const struct rnic_device *dev)
{
	return rnic_name(dev);
}

struct rnic_pd *rnic_device_pd(struct rnic_device *dev)
{
	return dev->pd;
}

const struct rnic_caps *rnic_device_caps(const struct rnic_device *dev)
{
	return &dev->caps;
}

bool rnic_device_outlives(const struct rnic_device *dev)
{
	return dev->direct;
}

/* -EBUSY, -ENOMEM, -EAGAIN: also what the firmware reports as such (devx.c). -ENOSPC: of the arena and of the
 * ledger */
bool rnic_is_shortage(int error)
{
	static const int shortages[] = {-ENOMEM, -ENOSPC, -EAGAIN, -EBUSY, -EMFILE, -ENFILE};

	for (size_t i = 0; i < COUNT(shortages); i++)
		if (error == shortages[i])
			return true;
	return false;
}

void rnic_device_deny_chains(struct rnic_device *dev, const char *why)
{
	snprintf(dev->caps.no_chains, sizeof(dev->caps.no_chains), "%s", why);
}

void rnic_device_set_observed(struct rnic_device *dev, const struct rnic_observed *observed)
{
	dev->caps.observed = *observed;
}

int rnic_device_event_fd(const struct rnic_device *dev)
{
	return dev->events;
}

int rnic_device_next_event(struct rnic_device *dev, uint64_t *cookie)
{
	return rnic_devx_next_event(dev->events, cookie);
}

int rnic_device_async_fd(const struct rnic_device *dev)
{
	return dev->ctx->async_fd;
}

int rnic_device_read_async(struct rnic_device *dev)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(dev->ctx, &event) == 0) {
		log_at(event.event_type == IBV_EVENT_DEVICE_FATAL ? LOG_ERR : LOG_NOTICE, 0, "%s: %s",
			rnic_device_name(dev), ibv_event_type_str(event.event_type));
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			dev->lost = true;
		ibv_ack_async_event(&event);
	}
	return dev->lost;
}

void rnic_device_lose(struct rnic_device *dev)
{
	dev->lost = true;
}

bool rnic_device_is_lost(const struct rnic_device *dev)
{
	return dev->lost;
}

enum { DAY = 86400 };

static const uint64_t second = 1000000000;

bool rnic_stamp_is_real_time(uint64_t stamp)
{
	int64_t seconds = (int64_t)(stamp >> 32) - time(NULL);

	return seconds > -DAY && seconds < DAY;
}

uint64_t rnic_stamps_of_clock(uint64_t khz, uint64_t from, uint64_t to)
{
	if (khz == 0)
		return (to >> 32) * second + (uint32_t)to - (from >> 32) * second - (uint32_t)from;
	return (uint64_t)((double)(to - from) * 1e6 / (double)khz + 0.5);
}

bool rnic_stamps_between(struct rnic_device *dev, uint64_t from, uint64_t to, uint64_t *ns)
{
	struct rnic_identity id;

	if (!dev->clock.known) {
		dev->clock.known = true;
		dev->clock.real_time = rnic_stamp_is_real_time(to);
		if (rnic_identity_read(dev, &id) == 0)
			dev->clock.khz = id.clock_khz;
	}
	if (to < from || (!dev->clock.real_time && dev->clock.khz == 0))
		return false;
	*ns = rnic_stamps_of_clock(dev->clock.real_time ? 0 : dev->clock.khz, from, to);
	return true;
}

/* rdma-core providers/mlx5/mlx5.c (hca_table) and Linux drivers/net/ethernet/mellanox/mlx5/core/main.c: the
 * part is the PCI device id */
static const struct {
	uint32_t part;
	const char *model;
} models[] = {
	{0x1013, "ConnectX-4"},
	{0x1014, "ConnectX-4 VF"},
	{0x1015, "ConnectX-4 Lx"},
	{0x1016, "ConnectX-4 Lx VF"},
	{0x1017, "ConnectX-5"},
	{0x1018, "ConnectX-5 VF"},
	{0x1019, "ConnectX-5 Ex"},
	{0x101a, "ConnectX-5 Ex VF"},
	{0x101b, "ConnectX-6"},
	{0x101c, "ConnectX-6 VF"},
	{0x101d, "ConnectX-6 Dx"},
	{0x101e, "ConnectX family VF"},
	{0x101f, "ConnectX-6 Lx"},
	{0x1021, "ConnectX-7"},
	{0x1023, "ConnectX-8"},
	{0xa2d2, "BlueField"},
	{0xa2d3, "BlueField VF"},
	{0xa2d6, "BlueField-2"},
	{0xa2dc, "BlueField-3"},
};

DEFINE_CLEANUP(FILE *, fclose)

static void read_board(const struct rnic_device *dev, char *board, size_t size)
{
	CLEANUP(fclosep) FILE *f = NULL;
	char path[320];

	snprintf(path, sizeof(path), "%s/board_id", dev->ctx->device->ibdev_path);
	f = fopen(path, "re");
	if (!f || !fgets(board, (int)size, f))
		board[0] = '\0';
	board[strcspn(board, "\n")] = '\0';
}

static void read_address(const struct rnic_device *dev, unsigned most, char *address, size_t size)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	CLEANUP(cleanup_free) struct ibv_gid_entry *all = calloc(most + 1, sizeof(*all));
	ssize_t n = all ? ibv_query_gid_table(dev->ctx, all, most, 0) : 0;

	for (ssize_t i = 0; i < n && !*address; i++) {
		const union ibv_gid *gid = &all[i].gid;
		bool is_ipv4 = memcmp(gid->raw, ipv4, sizeof(ipv4)) == 0;

		if (all[i].port_num == RNIC_PORT && all[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
			!rnic_gid_is_link_local(gid))
			inet_ntop(is_ipv4 ? AF_INET : AF_INET6, gid->raw + (is_ipv4 ? sizeof(ipv4) : 0),
				address, (socklen_t)size);
	}
}

int rnic_identity_read(const struct rnic_device *dev, struct rnic_identity *id)
{
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	int r = ibv_query_device_ex(dev->ctx, NULL, &device);

	if (r == 0)
		r = ibv_query_port(dev->ctx, RNIC_PORT, &port);
	if (r)
		return -abs(r);
	*id = (struct rnic_identity){.vendor = device.orig_attr.vendor_id,
		.part = device.orig_attr.vendor_part_id,
		.model = "unknown",
		.state = ibv_port_state_str(port.state),
		.mtu = 128u << port.active_mtu,
		.gids = (unsigned long)port.gid_tbl_len,
		.clock_khz = device.hca_core_clock};
	for (size_t i = 0; i < COUNT(models); i++)
		if (models[i].part == id->part)
			id->model = models[i].model;
	snprintf(id->firmware, sizeof(id->firmware), "%s", device.orig_attr.fw_ver);
	read_address(dev, (unsigned)port.gid_tbl_len, id->address, sizeof(id->address));
	read_board(dev, id->board, sizeof(id->board));
	return 0;
}

DEFINE_CLEANUP(struct rnic_pd *, rnic_pd_free)

static int number_pd(struct rnic_pd *pd)
{
	struct mlx5dv_pd dv = {0};
	struct mlx5dv_obj obj = {0};
	int r;

	obj.pd.in = pd->pd;
	obj.pd.out = &dv;
	r = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
	if (r)
		return log_errno(
			-abs(r), "%s: cannot get the number of a protection domain", rnic_name(pd->dev));
	pd->pdn = dv.pdn;
	return 0;
}

int rnic_pd_new(struct rnic_pd **out, struct rnic_device *dev, struct ledger_slot *slot)
{
	CLEANUP(rnic_pd_freep) struct rnic_pd *pd = calloc(1, sizeof(*pd));
	int r;

	if (!pd)
		return -ENOMEM;
	pd->dev = dev;
	pd->pd = ibv_alloc_pd(dev->ctx);
	if (!pd->pd)
		return log_errno(-errno, "%s: cannot make a protection domain", rnic_name(dev));
	pd->slot = slot;
	ledger_made(slot, &(struct ledger_object){.type = LEDGER_PD, .handle = pd->pd->handle});
	r = dev->direct ? number_pd(pd) : 0;
	if (r == 0)
		*out = steal_ptr(&pd);
	return r;
}

int rnic_pd_adopt(struct rnic_pd **out, struct rnic_device *dev, struct ledger_slot *slot)
{
	const struct ledger_object *o = rnic_find_object(slot, LEDGER_PD, 0);
	struct rnic_pd *pd = o ? calloc(1, sizeof(*pd)) : NULL;
	int r;

	if (!pd)
		return o ? -ENOMEM : -EBADMSG;
	pd->dev = dev;
	pd->pd = ibv_import_pd(dev->ctx, o->handle);
	r = pd->pd ? number_pd(pd)
		   : log_errno(-errno, "%s: cannot go on with a protection domain", rnic_name(dev));
	if (r < 0) { /* what it is stays in its slot */
		if (pd->pd)
			ibv_unimport_pd(pd->pd);
		free(pd);
		return r;
	}
	pd->slot = slot;
	*out = pd;
	return 0;
}

void rnic_pd_free(struct rnic_pd *pd)
{
	uint32_t handle = pd->pd ? pd->pd->handle : 0;

	if (pd->pd && ibv_dealloc_pd(pd->pd))
		log_warning("%s: a protection domain is still in use", rnic_name(pd->dev));
	else if (pd->pd)
		ledger_gone(pd->slot, LEDGER_PD, handle);
	free(pd);
}

struct rnic_device *rnic_pd_device(const struct rnic_pd *pd)
{
	return pd->dev;
}
