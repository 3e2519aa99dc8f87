/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/sysfs.h"
#include "softcx/nic/ident.h"

#include "softcx/proto/call.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <ftw.h>
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
	uint8_t gids[16][16] = {{0}};
	unsigned ngids;

	nic_dev_gids(dev, gids, &ngids);
	write_state(rc, dir, port, true);
	attr(rc, dir, port, "rate", "%s", rates[p->value[PROFILE_SPEED]]);
	attr(rc, dir, port, "link_layer", "Ethernet");
	attr(rc, dir, port, "lid", "0x0");
	attr(rc, dir, port, "lid_mask_count", "0");
	attr(rc, dir, port, "sm_lid", "0x0");
	attr(rc, dir, port, "sm_sl", "0");
	attr(rc, dir, port, "cap_mask", "0x04010000");
	attr(rc, dir, port, "pkeys/0", "0xffff");
	for (unsigned i = 0; i < 16; i++) {
		const uint8_t *g = gids[i];
		char name[48];

		snprintf(name, sizeof(name), "gids/%u", i);
		attr(rc, dir, port, name,
			"%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1],
			g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
			g[15]);
		snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		attr(rc, dir, port, name, "RoCE v2");
		if (i >= ngids)
			continue;
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		attr(rc, dir, port, name, "lo");
	}
}

static void write_dev(int *rc, const struct host *host, const struct profile *p, unsigned number)
{
	static const char *const numa[][2] = {{"numa_node", "-1"}, {"local_cpus", "ffffffff"}};
	const char *dir = host->dir;
	unsigned dev = host->first + number;
	char verbs[64], ib[64], port[80], text[20], version[32];
	unsigned pci = (unsigned)p->value[PROFILE_PCI];

	snprintf(verbs, sizeof(verbs), "class/infiniband_verbs/uverbs%u", number);
	snprintf(ib, sizeof(ib), "class/infiniband/mlx5_%u", number);
	snprintf(port, sizeof(port), "%s/ports/1", ib);
	guid(text, nic_dev_guid(dev));
	profile_fact_text(p, PROFILE_FIRMWARE, version, sizeof(version));

	attr(rc, dir, verbs, "ibdev", "mlx5_%u", number);
	attr(rc, dir, verbs, "dev", "%u:%u", major(SOFTCX_UVERBS_DEV(number)),
		minor(SOFTCX_UVERBS_DEV(number)));
	attr(rc, dir, verbs, "abi_version", "1"); /* of mlx5: MLX5_IB_UVERBS_ABI_VERSION */
	attr(rc, dir, ib, "node_type", "1: CA");
	attr(rc, dir, ib, "node_guid", "%s", text);
	attr(rc, dir, ib, "sys_image_guid", "%s", text);
	attr(rc, dir, ib, "node_desc", "%s mlx5_%u", host->name, number);
	attr(rc, dir, ib, "fw_ver", "%s", version);
	attr(rc, dir, ib, "hw_rev", "0");
	attr(rc, dir, ib, "hca_type", "MT%u", (unsigned)p->value[PROFILE_PART]);
	attr(rc, dir, ib, "board_id", "SOFTCX0000000001");
	for (unsigned i = 0; i < 2; i++) {
		char device[96];

		snprintf(device, sizeof(device), "%s/device", i ? ib : verbs);
		attr(rc, dir, device, "vendor", "0x15b3");
		attr(rc, dir, device, "device", "0x%04x", pci);
		attr(rc, dir, device, "modalias", "pci:v000015B3d%08Xsv000015B3sd00000091bc02sc00i00", pci);
		for (unsigned k = 0; k < COUNT(numa); k++)
			attr(rc, dir, device, numa[k][0], "%s", numa[k][1]);
	}
	write_port(rc, dir, port, p, dev);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int sysfs_write(const struct host *host, const struct profile *profile)
{
	const char *dir = host->dir;
	char tree[PATH_MAX];
	int rc = 0;

	snprintf(tree, sizeof(tree), "%s/" SOFTCX_SYSFS, dir);
	if (nftw(tree, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
		return -errno;
	attr(&rc, dir, "class/infiniband_verbs", "abi_version", "6");
	attr(&rc, dir, "class/misc/rdma_cm", "abi_version", "4");
	attr(&rc, dir, "class/misc/rdma_cm", "dev", "%u:%u", major(SOFTCX_RDMA_CM_DEV),
		minor(SOFTCX_RDMA_CM_DEV));
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
