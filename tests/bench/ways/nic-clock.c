/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/nic-clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *device;
static uint64_t khz;

int nic_clock_open(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_device_attr_ex attr;

	device = list ? list[0] : NULL; /* librdmacm keeps it open */
	if (list)
		rdma_free_devices(list);
	if (!device || ibv_query_device_ex(device, NULL, &attr) || !attr.hca_core_clock) {
		fputs("the NIC has no clock\n", stderr);
		return -EOPNOTSUPP;
	}
	khz = attr.hca_core_clock;
	return 0;
}

uint64_t nic_clock_now(void)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int r = ibv_query_rt_values_ex(device, &v);

	if (r) {
		fprintf(stderr, "cannot read the clock of the NIC: %s\n", strerror(r));
		exit(2);
	}
	/* the library makes a timespec of the ticks */
	return (uint64_t)((unsigned __int128)((uint64_t)v.raw_clock.tv_sec * 1000000000u +
					      (uint64_t)v.raw_clock.tv_nsec) *
			  1000000u / khz);
}
