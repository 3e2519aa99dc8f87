/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/spark.h"

#include <string.h>

enum { HEIGHTS = 8 };

void spark_add(struct spark *s, uint64_t number)
{
	if (s->n == SPARK_MAX)
		memmove(s->number, s->number + 1, (SPARK_MAX - 1) * sizeof(*s->number));
	else
		s->n++;
	s->number[s->n - 1] = number;
}

void spark_draw(const struct spark *s, unsigned most, bool utf8, char text[SPARK_TEXT])
{
	static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[HEIGHTS] = {"_", ".", ",", "-", "=", "+", "*", "#"};
	unsigned first = s->n > most ? s->n - most : 0;
	uint64_t largest = 0;

	*text = '\0';
	for (unsigned i = first; i < s->n; i++)
		largest = s->number[i] > largest ? s->number[i] : largest;
	for (unsigned i = first; i < s->n; i++) {
		double part = largest ? (double)s->number[i] / (double)largest : 0;
		unsigned height = (unsigned)(part * (HEIGHTS - 1) + 0.5);

		/* what is not 0 is not drawn as 0 */
		height = !height && s->number[i] ? 1 : height;
		strcat(text, (utf8 ? blocks : ascii)[height]);
	}
}
