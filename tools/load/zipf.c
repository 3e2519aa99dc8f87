/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/zipf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int zipf_init(struct zipf *z, size_t n, double s)
{
	double sum = 0;

	z->n = n;
	z->until = malloc(n * sizeof(*z->until));
	if (!z->until)
		return -ENOMEM;
	for (size_t r = 0; r < n; r++)
		z->until[r] = sum += pow((double)(r + 1), -s);
	for (size_t r = 0; r < n; r++)
		z->until[r] /= sum;
	return 0;
}

void zipf_deinit(struct zipf *z)
{
	free(z->until);
	*z = (struct zipf){0};
}

size_t zipf_rank(const struct zipf *z, uint64_t random)
{
	double u = (double)(random >> 11) / (double)(1ull << 53);
	size_t low = 0, high = z->n - 1;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (z->until[middle] > u)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
