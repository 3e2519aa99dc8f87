/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock-info.h - the page by which libraries turn time stamps into wall-clock time: one per device, which
 * applications map for reading (Linux hw/mlx5/main.c, mlx5_ib_mmap_clock_info_page; core/lib/clock.c).
 * Pages live as long as the process. uverbs_timers() of call.h updates them.
 */
#ifndef SOFTCX_UVERBS_CLOCK_INFO_H
#define SOFTCX_UVERBS_CLOCK_INFO_H

#include "softcx/uverbs/uverbs.h"

/** A descriptor of the page, which stays ours. 0 or -errno. */
int uverbs_clock_info(struct hw_dev *dev, int *fd);

#endif
