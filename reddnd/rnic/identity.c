/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/identity.h"

#include "reddnd/rnic/internal.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
