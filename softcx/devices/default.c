/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/devices/profile.h"

const struct profile *profile_default(void)
{
	static const struct profile cx5 = {
#include "profile-cx5.inc"
	};

	return &cx5;
}
