/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger-audit - started like a daemon after the one before it died: compares the ledger with what
 * is in the device file, and prints one line:
 *
 *   unrecorded N gone N live N building N ending N
 *
 * unrecorded: objects that no slot has; gone: recorded ones that do not exist. Doorbell pages are not
 * compared: the library has some of its own.
 */
#include "reddnd/ledger/ledger.h"
#include "util/array.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <systemd/sd-daemon.h>

enum { MOST = UINT16_MAX / sizeof(uint32_t) };

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "ledger-audit: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static unsigned list_handles(int fd, uint16_t object, uint32_t handles[MOST])
{
	uint32_t n = 0;
	struct {
		uint16_t length, object, method, num_attrs;
		uint64_t reserved1;
		uint32_t driver, reserved2;
		struct ib_uverbs_attr attrs[3];
	} c = {
		.length = sizeof(c),
		.object = UVERBS_OBJECT_DEVICE,
		.method = UVERBS_METHOD_INFO_HANDLES,
		.num_attrs = 3,
		.driver = RDMA_DRIVER_MLX5,
		.attrs = {{.attr_id = UVERBS_ATTR_INFO_OBJECT_ID, .len = 8, .flags = 1, .data = object},
			{.attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES,
				.len = 4,
				.flags = 1,
				.data = (uintptr_t)&n},
			{.attr_id = UVERBS_ATTR_INFO_HANDLES_LIST,
				.len = MOST * sizeof(uint32_t),
				.flags = 1,
				.data = (uintptr_t)handles}},
	};

	need(ioctl(fd, RDMA_VERBS_IOCTL, &c) == 0, "INFO_HANDLES");
	return n;
}

/* The object with that handle of one of these types, in a slot of any state. */
static bool is_recorded(const struct ledger_view *v, uint32_t types, uint32_t handle)
{
	const struct ledger_slot *slot;

	for (unsigned type = LEDGER_QP; type <= LEDGER_PD; type++)
		if (types >> type & 1 && ledger_find(v, (enum ledger_type)type, handle, &slot))
			return true;
	return false;
}

int main(void)
{
	static const struct {
		uint16_t object;
		uint32_t types;
	} kinds[] = {
		{MLX5_IB_OBJECT_DEVX_OBJ, 1 << LEDGER_QP | 1 << LEDGER_CQ},
		{MLX5_IB_OBJECT_DEVX_UMEM, 1 << LEDGER_UMEM},
		{UVERBS_OBJECT_MR, 1 << LEDGER_MR},
		{UVERBS_OBJECT_PD, 1 << LEDGER_PD},
	};
	static uint32_t handles[MOST];
	unsigned states[LEDGER_ENDING + 1] = {0}, unrecorded = 0, gone = 0;
	int n, device = -1, file = -1;
	struct ledger_view *v;
	const char *why = "";
	char **names;

	n = sd_listen_fds_with_names(1, &names);
	for (int i = 0; i < n; i++) {
		if (strncmp(names[i], "uverbs-", 7) == 0)
			device = SD_LISTEN_FDS_START + i;
		if (strncmp(names[i], "ledger-", 7) == 0)
			file = SD_LISTEN_FDS_START + i;
	}
	if (device < 0 || file < 0) {
		puts("nothing was left");
		return 0;
	}
	need(ledger_load(file, &v, &why) == 0, why);
	for (uint32_t i = 0; i < v->head.used; i++)
		states[v->slots[i].state] += v->slots[i].kind == LEDGER_SESSION;
	for (size_t k = 0; k < COUNT(kinds); k++) {
		unsigned found = list_handles(device, kinds[k].object, handles);

		for (unsigned i = 0; i < found; i++)
			unrecorded += !is_recorded(v, kinds[k].types, handles[i]);
		for (uint32_t i = 0; i < v->head.used; i++) {
			for (unsigned o = 0; v->slots[i].state != LEDGER_FREE && o < LEDGER_OBJECTS; o++) {
				const struct ledger_object *object = &v->slots[i].object[o];
				unsigned at = 0;

				if (object->type == LEDGER_NONE || !(kinds[k].types >> object->type & 1))
					continue;
				while (at < found && handles[at] != object->handle)
					at++;
				gone += at == found;
			}
		}
	}
	printf("unrecorded %u gone %u live %u building %u ending %u\n", unrecorded, gone, states[LEDGER_LIVE],
		states[LEDGER_BUILDING], states[LEDGER_ENDING]);
	return 0;
}
