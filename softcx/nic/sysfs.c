/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/sysfs.h"
#include "softcx/nic/ident.h"

#include "softcx/proto/call.h"
#include "softcx/proto/proto.h"
#include "util/tree.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Creates @path and the directories above it that are below @root bytes of it. */
static int make_parents(char *path, size_t root)
{
	for (char *p = path + root + 1; (p = strchr(p, '/')); p++) {
		int rc;

		*p = '\0';
		rc = mkdir(path, 0755);
		*p = '/';
		if (rc < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/** One attribute: @name below @base, which is below @dir/sys. @rc carries the first error through. */
__attribute__((format(printf, 5, 6))) static void attr(
	int *rc, const char *dir, const char *base, const char *name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	if (*rc < 0)
		return;
	if (snprintf(path, sizeof(path), "%s/" SOFTCX_SYSFS "/%s/%s", dir, base, name) >= (int)sizeof(path)) {
		*rc = -ENAMETOOLONG;
		return;
	}
	*rc = make_parents(path, strlen(dir));
	if (*rc < 0)
		return;
	f = fopen(path, "we");
	if (!f) {
		*rc = -errno;
		return;
	}
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	if (fclose(f) != 0)
		*rc = -errno;
}

/** A symbolic link @name to @target, which is below @dir/sys too: relative, as the kernel's are. */
static void link_to(int *rc, const char *dir, const char *name, const char *target)
{
	char path[PATH_MAX], up[PATH_MAX] = "";

	if (*rc < 0)
		return;
	for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/'))
		strcat(up, "../");
	if (snprintf(path, sizeof(path), "%s/" SOFTCX_SYSFS "/%s", dir, name) >= (int)sizeof(path) ||
		strlen(up) + strlen(target) >= sizeof(up)) {
		*rc = -ENAMETOOLONG;
		return;
	}
	strcat(up, target);
	*rc = make_parents(path, strlen(dir));
	if (*rc == 0 && symlink(up, path) < 0)
		*rc = -errno;
}

static void guid(char text[20], uint64_t be)
{
	uint64_t v = be64toh(be);

	snprintf(text, 20, "%04x:%04x:%04x:%04x", (unsigned)(v >> 48), (unsigned)(v >> 32) & 0xffff,
		(unsigned)(v >> 16) & 0xffff, (unsigned)v & 0xffff);
}

static void write_state(int *rc, const char *dir, const char *port, bool up)
{
	attr(rc, dir, port, "state", up ? "4: ACTIVE" : "1: DOWN");
	attr(rc, dir, port, "phys_state", up ? "5: LinkUp" : "3: Disabled");
}

static void write_port(int *rc, const char *dir, const char *port, const struct profile *p, unsigned dev)
{
	static const char *const rates[] = {[PROFILE_EDR] = "100 Gb/sec (4X EDR)",
		[PROFILE_HDR] = "200 Gb/sec (4X HDR)",
		[PROFILE_NDR] = "400 Gb/sec (4X NDR)"};
	bool infiniband = p->value[PROFILE_LINK] == PROFILE_INFINIBAND;
	struct hw_gid gids[HW_GIDS] = {0};
	unsigned ngids;

	ident_gids(p, dev, gids, &ngids);
	write_state(rc, dir, port, true);
	attr(rc, dir, port, "rate", "%s", rates[p->value[PROFILE_SPEED]]);
	attr(rc, dir, port, "link_layer", infiniband ? "InfiniBand" : "Ethernet");
	attr(rc, dir, port, "lid", "0x%x", infiniband ? ident_lid(dev) : 0);
	attr(rc, dir, port, "lid_mask_count", "0");
	attr(rc, dir, port, "sm_lid", infiniband ? "0x1" : "0x0");
	attr(rc, dir, port, "sm_sl", "0");
	attr(rc, dir, port, "cap_mask", infiniband ? "0x00010000" : "0x04010000");
	attr(rc, dir, port, "pkeys/0", "0xffff");
	for (unsigned i = 0; i < HW_GIDS; i++) {
		const uint8_t *g = gids[i].raw;
		char name[48];

		snprintf(name, sizeof(name), "gids/%u", i);
		attr(rc, dir, port, name,
			"%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1],
			g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
			g[15]);
		snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		/* Those of an empty GID cannot be read: driver/sysfs.h */
		attr(rc, dir, port, name, "%s",
			i >= ngids                      ? ""
			: infiniband || gids[i].roce_v1 ? "IB/RoCE v1"
							: "RoCE v2");
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		attr(rc, dir, port, name, "%s", i >= ngids || infiniband ? "" : "lo");
	}
}

/* ---- the PCI function ------------------------------------------------------------------- */

/* A domain that no machine has: SOFTCX_PCI of proto.h. The port stands for the bridge above the device. */
#define PCI_ROOT "devices/" SOFTCX_PCI_ROOT "/" SOFTCX_PCI_DOMAIN ":00:00.0"

struct function {
	char slot[32], path[96];
	unsigned id;
};

static void name_function(struct function *f, const struct profile *p, unsigned number)
{
	snprintf(f->slot, sizeof(f->slot), SOFTCX_PCI_DOMAIN ":01:%02x.%x", number / 8, number % 8);
	snprintf(f->path, sizeof(f->path), PCI_ROOT "/%s", f->slot);
	f->id = (unsigned)p->value[PROFILE_PCI];
}

/** All CPUs: those of the machine are near each of its devices. */
static void write_cpus(int *rc, const char *dir, const char *path)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	char mask[1024] = "";
	size_t len = 0;

	for (long word = (n - 1) / 32; word >= 0 && len + 16 < sizeof(mask); word--) {
		unsigned bits = n - word * 32 >= 32 ? 0xffffffff : (1u << (n - word * 32)) - 1;

		len += (size_t)snprintf(mask + len, sizeof(mask) - len,
			len      ? ",%08x"
			: n % 32 ? "%x"
				 : "%08x",
			bits);
	}
	attr(rc, dir, path, "local_cpus", "%s", mask);
	attr(rc, dir, path, "local_cpulist", n > 1 ? "0-%ld" : "0", n - 1);
}

static void write_function(
	int *rc, const struct host *host, const struct profile *p, const struct function *f)
{
	/* of the slots that such cards are made for: assumed */
	static const char *const speeds[] = {[PROFILE_EDR] = "8.0 GT/s PCIe",
		[PROFILE_HDR] = "16.0 GT/s PCIe",
		[PROFILE_NDR] = "32.0 GT/s PCIe"};
	const char *dir = host->dir, *speed = speeds[p->value[PROFILE_SPEED]];
	char name[160], alias[64];

	snprintf(alias, sizeof(alias), "pci:v000015B3d%08Xsv000015B3sd00000091bc02sc00i00", f->id);
	attr(rc, dir, f->path, "vendor", "0x15b3");
	attr(rc, dir, f->path, "device", "0x%04x", f->id);
	attr(rc, dir, f->path, "subsystem_vendor", "0x15b3");
	attr(rc, dir, f->path, "subsystem_device", "0x0091");
	attr(rc, dir, f->path, "class", "0x020000");
	attr(rc, dir, f->path, "revision", "0x00");
	attr(rc, dir, f->path, "modalias", "%s", alias);
	attr(rc, dir, f->path, "numa_node", "-1");
	attr(rc, dir, f->path, "current_link_speed", "%s", speed);
	attr(rc, dir, f->path, "current_link_width", "16");
	attr(rc, dir, f->path, "max_link_speed", "%s", speed);
	attr(rc, dir, f->path, "max_link_width", "16");
	attr(rc, dir, f->path, "uevent",
		"DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:%04X\nPCI_SUBSYS_ID=15B3:0091\nPCI_SLOT_NAME="
		"%s\n"
		"MODALIAS=%s",
		f->id, f->slot, alias);
	write_cpus(rc, dir, f->path);
	/* the interface is that of the GIDs */
	snprintf(name, sizeof(name), "%s/net/lo", f->path);
	attr(rc, dir, name, "ifindex", "%d", NIC_DEV_IFINDEX);
	attr(rc, dir, name, "dev_id", "0x0");
	attr(rc, dir, name, "dev_port", "0");
	attr(rc, dir, name, "uevent", "INTERFACE=lo\nIFINDEX=%d", NIC_DEV_IFINDEX);
	snprintf(name, sizeof(name), "bus/pci/devices/%s", f->slot);
	link_to(rc, dir, name, f->path);
	snprintf(name, sizeof(name), "%s/driver", f->path);
	link_to(rc, dir, name, "bus/pci/drivers/mlx5_core");
	snprintf(name, sizeof(name), "%s/subsystem", f->path);
	link_to(rc, dir, name, "bus/pci");
}

static void write_dev(int *rc, const struct host *host, const struct profile *p, unsigned number)
{
	const char *dir = host->dir;
	unsigned dev = host->first + number;
	char verbs[160], ib[160], port[176], name[200], text[20], version[32];
	struct function f;

	name_function(&f, p, number);
	snprintf(verbs, sizeof(verbs), "%s/infiniband_verbs/uverbs%u", f.path, number);
	snprintf(ib, sizeof(ib), "%s/infiniband/mlx5_%u", f.path, number);
	snprintf(port, sizeof(port), "%s/ports/1", ib);
	guid(text, nic_dev_guid(dev));
	profile_fact_text(p, PROFILE_FIRMWARE, version, sizeof(version));
	write_function(rc, host, p, &f);

	attr(rc, dir, verbs, "ibdev", "mlx5_%u", number);
	attr(rc, dir, verbs, "dev", "%u:%u", major(SOFTCX_UVERBS_DEV(number)),
		minor(SOFTCX_UVERBS_DEV(number)));
	attr(rc, dir, verbs, "abi_version", "1"); /* of mlx5: MLX5_IB_UVERBS_ABI_VERSION */
	attr(rc, dir, verbs, "uevent", "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/uverbs%u\nDEVMODE=0666",
		major(SOFTCX_UVERBS_DEV(number)), minor(SOFTCX_UVERBS_DEV(number)), number);
	attr(rc, dir, ib, "node_type", p->value[PROFILE_IMMEDIATES] ? "1: CA" : "4: RNIC");
	attr(rc, dir, ib, "node_guid", "%s", text);
	attr(rc, dir, ib, "sys_image_guid", "%s", text);
	attr(rc, dir, ib, "node_desc", "%s mlx5_%u", host->name, number);
	attr(rc, dir, ib, "fw_ver", "%s", version);
	attr(rc, dir, ib, "hw_rev", "0");
	attr(rc, dir, ib, "hca_type", "MT%u", (unsigned)p->value[PROFILE_PART]);
	attr(rc, dir, ib, "board_id", "SOFTCX0000000001");
	attr(rc, dir, ib, "uevent", "NAME=mlx5_%u", number);
	write_port(rc, dir, port, p, dev);
	for (unsigned i = 0; i < 2; i++) {
		const char *class = i ? "infiniband" : "infiniband_verbs", *path = i ? ib : verbs;

		snprintf(name, sizeof(name), "%s/device", path);
		link_to(rc, dir, name, f.path);
		snprintf(name, sizeof(name), "%s/subsystem", path);
		link_to(rc, dir, name, i ? "class/infiniband" : "class/infiniband_verbs");
		snprintf(name, sizeof(name), "class/%s/%s", class, strrchr(path, '/') + 1);
		link_to(rc, dir, name, path);
	}
	snprintf(name, sizeof(name), "bus/pci/drivers/mlx5_core/%s", f.slot);
	link_to(rc, dir, name, f.path);
}

int sysfs_write(const struct host *host, const struct profile *profile)
{
	const char *dir = host->dir;
	char tree[PATH_MAX];
	int rc;

	snprintf(tree, sizeof(tree), "%s/" SOFTCX_SYSFS, dir);
	rc = tree_remove(tree);
	if (rc < 0)
		return rc;
	attr(&rc, dir, "class/infiniband_verbs", "abi_version", "6");
	attr(&rc, dir, "class/infiniband_mad", "abi_version", "5");
	attr(&rc, dir, "devices/virtual/misc/rdma_cm", "abi_version", "4");
	attr(&rc, dir, "devices/virtual/misc/rdma_cm", "dev", "%u:%u", major(SOFTCX_RDMA_CM_DEV),
		minor(SOFTCX_RDMA_CM_DEV));
	link_to(&rc, dir, "class/misc/rdma_cm", "devices/virtual/misc/rdma_cm");
	for (unsigned i = 0; i < host->ndevs; i++)
		write_dev(&rc, host, profile, i);
	return rc;
}

int sysfs_port(unsigned dev, bool up)
{
	const struct host *host = ident_host(dev);
	char port[80];
	int rc = 0;

	snprintf(port, sizeof(port), "class/infiniband/mlx5_%u/ports/1", dev - host->first);
	write_state(&rc, host->dir, port, up);
	return rc;
}
