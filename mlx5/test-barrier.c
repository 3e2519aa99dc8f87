/* SPDX-License-Identifier: BSD-2-Clause */
/* For test-barrier.sh, which compiles it for other architectures and looks for the instructions */
#include "mlx5/barrier.h"

void to_device(void);
void from_device(void);
void doorbell(void);

void to_device(void)
{
	barrier_to_device();
}

void from_device(void)
{
	barrier_from_device();
}

void doorbell(void)
{
	barrier_doorbell();
}
