/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/uar.h"

#include "softcx/hw/cq.h"
#include "softcx/hw/qp.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UAR_BYTES = 4096 };

/* ---- life ------------------------------------------------------------------------------- */

static void discard(struct hw_uar *uar)
{
	if (uar->page && uar->page != MAP_FAILED)
		munmap(uar->page, UAR_BYTES);
	if (uar->fd >= 0)
		close(uar->fd);
	free(uar);
}

static int new_page(struct hw_dev *dev, struct hw_uar **out)
{
	struct hw_uar *uar = calloc(1, sizeof(*uar));
	int err = 0;

	if (!uar)
		return -ENOMEM;
	uar->dev = dev;
	uar->fd = memfd_create("softcx-uar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* An application that made it shorter would have this process killed */
	if (uar->fd < 0 || ftruncate(uar->fd, UAR_BYTES) < 0 ||
		fcntl(uar->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		err = -errno;
	if (!err) {
		uar->page = mmap(NULL, UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, uar->fd, 0);
		err = uar->page == MAP_FAILED ? -errno : 0;
	}
	if (err) {
		discard(uar);
		return err;
	}
	LIST_INIT(&uar->guards);
	TAILQ_INIT(&uar->qps);
	TAILQ_INIT(&uar->cqs);
	uar->sq.step = uar->arm.step = HW_UAR_MIN_STEP;
	uar->rung_at = dev->now;
	*out = uar;
	return 0;
}

static void enlist(struct hw_uar *uar)
{
	TAILQ_INSERT_HEAD(&uar->dev->awake, uar, link);
	uar->dev->nawake++;
	uar->dev->ntimes_awake += uar->kind == HW_UAR_TIME;
}

static void delist(struct hw_uar *uar)
{
	struct hw_dev *dev = uar->dev;

	TAILQ_REMOVE(uar->asleep ? &dev->asleep : &dev->awake, uar, link);
	dev->nawake -= !uar->asleep;
	dev->ntimes_awake -= uar->kind == HW_UAR_TIME && !uar->asleep;
}

int hw_uar_alloc(struct hw_dev *dev, struct hw_uar **out)
{
	struct hw_uar *uar;
	int err = new_page(dev, &uar);

	if (err)
		return err;
	err = hw_table_add(&dev->uars, uar, &uar->index);
	if (err) {
		discard(uar);
		return err;
	}
	enlist(uar);
	*out = uar;
	return 0;
}

/* Sets the time that the page shows. */
static void uar_set_time(struct hw_uar *uar, uint64_t ticks)
{
	__atomic_store_n(uar->page, htobe64(ticks), __ATOMIC_RELEASE);
}

int hw_uar_alloc_time(struct hw_dev *dev, struct hw_uar **out)
{
	int err = new_page(dev, out);

	if (err)
		return err;
	(*out)->kind = dev->clock ? HW_UAR_MODELLED : HW_UAR_TIME;
	if (dev->clock)
		uar_set_time(*out, 0); /* there is a page to look at before there is a CQE */
	else
		enlist(*out);
	return 0;
}

void hw_uar_show_time(struct hw_uar *uar, uint64_t ticks)
{
	if (ticks > be64toh(*uar->page))
		uar_set_time(uar, ticks);
}

int hw_uar_free(struct hw_dev *dev, struct hw_uar *uar)
{
	struct hw_uar_guard *guard;

	if (uar->queues)
		return -EBUSY;
	while ((guard = LIST_FIRST(&uar->guards))) {
		LIST_REMOVE(guard, link);
		guard->gone(guard->arg);
	}
	if (uar->kind == HW_UAR_RINGS)
		hw_table_del(&dev->uars, uar->index);
	if (uar->kind != HW_UAR_MODELLED)
		delist(uar);
	discard(uar);
	return 0;
}

uint32_t hw_uar_index(const struct hw_uar *uar)
{
	return uar->index;
}

int hw_uar_fd(const struct hw_uar *uar)
{
	return uar->fd;
}

struct hw_uar *hw_uar_find(struct hw_dev *dev, uint32_t index)
{
	return index >> 24 ? NULL : hw_table_get(&dev->uars, index);
}

void hw_uar_add_qp(struct hw_uar *uar, struct hw_qp *qp)
{
	qp->uar = uar;
	uar->queues++;
	if (!hw_qp_has_doorbell(qp))
		return;
	TAILQ_INSERT_HEAD(&uar->qps, qp, of_uar);
	uar->sq.of++;
	uar->sq.left += uar->sq.left > 0; /* a round under way may meet it, and still goes to all others */
}

void hw_uar_remove_qp(struct hw_qp *qp)
{
	qp->uar->queues--;
	if (!hw_qp_has_doorbell(qp))
		return;
	if (qp->uar->next_qp == qp)
		qp->uar->next_qp = TAILQ_NEXT(qp, of_uar);
	TAILQ_REMOVE(&qp->uar->qps, qp, of_uar);
	qp->uar->sq.of--;
}

void hw_uar_add_cq(struct hw_uar *uar, struct hw_cq *cq)
{
	cq->uar = uar;
	uar->queues++;
}

void hw_uar_remove_cq(struct hw_cq *cq)
{
	hw_uar_unlist_cq(cq);
	cq->uar->queues--;
}

void hw_uar_list_cq(struct hw_cq *cq)
{
	struct hw_uar *uar = cq->uar;

	if (cq->listed)
		return;
	cq->listed = true;
	/* a round under way comes here last, and so to all that were there when it began */
	if (uar->next_cq)
		TAILQ_INSERT_BEFORE(uar->next_cq, cq, of_uar);
	else
		TAILQ_INSERT_TAIL(&uar->cqs, cq, of_uar);
	uar->arm.of++;
}

void hw_uar_unlist_cq(struct hw_cq *cq)
{
	if (!cq->listed)
		return;
	cq->listed = false;
	if (cq->uar->next_cq == cq)
		cq->uar->next_cq = TAILQ_NEXT(cq, of_uar);
	TAILQ_REMOVE(&cq->uar->cqs, cq, of_uar);
	cq->uar->arm.of--;
}

/* ---- sleep ------------------------------------------------------------------------------ */

/* Takes the page out of its memfd, so that the next store faults. False: it stays awake. */
static bool uar_sleep(struct hw_uar *uar)
{
	struct hw_dev *dev = uar->dev;

	uar->rung_at = dev->now;
	if (fallocate(uar->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, UAR_BYTES) < 0)
		return false;
	delist(uar);
	uar->asleep = true;
	TAILQ_INSERT_TAIL(&dev->asleep, uar, link);
	return true;
}

/* With one write: no process may read the page before the time is in it. */
static bool come_back(struct hw_uar *uar)
{
	uint64_t ticks = htobe64(hw_clock_ticks(uar->rung_at));

	return pwrite(uar->fd, &ticks, sizeof(ticks), 0) == (ssize_t)sizeof(ticks);
}

void hw_uar_wake(struct hw_uar *uar)
{
	struct hw_dev *dev = uar->dev;
	uint64_t nothing = 0;

	if (!uar->asleep)
		return;
	delist(uar);
	uar->asleep = false;
	uar->rung_at = clock_ns();
	/* A store of nothing brings a page back that has nothing in it, and leaves alone one that has. (clang
	 * makes an OR of 0 a mere fence.) */
	if (uar->kind == HW_UAR_RINGS)
		__atomic_compare_exchange_n(
			uar->page, &nothing, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else if (!come_back(uar))
		uar_set_time(uar, hw_clock_ticks(uar->rung_at));
	dev->total.uars_woken += uar->kind == HW_UAR_RINGS;
	enlist(uar);
}

void hw_uar_mapped(struct hw_uar *uar)
{
	uar->mappings++;
	hw_uar_wake(uar);
}

void hw_uar_guard(struct hw_uar *uar, struct hw_uar_guard *guard)
{
	LIST_INSERT_HEAD(&uar->guards, guard, link);
	uar->guarded++;
}

void hw_uar_unguard(struct hw_uar *uar, struct hw_uar_guard *guard)
{
	LIST_REMOVE(guard, link);
	uar->guarded--;
	hw_uar_wake(uar);
}

bool hw_uar_check_asleep(struct hw_dev *dev)
{
	struct hw_uar *uar = TAILQ_FIRST(&dev->asleep), *next;
	unsigned looks = HW_UAR_LOOKS;

	for (struct hw_uar *last = TAILQ_LAST(&dev->asleep, hw_uar_list); uar && looks--; uar = next) {
		next = uar == last ? NULL : TAILQ_NEXT(uar, link);
		if (lseek(uar->fd, 0, SEEK_DATA) == 0) {
			hw_uar_wake(uar);
			continue;
		}
		TAILQ_REMOVE(&dev->asleep, uar, link);
		TAILQ_INSERT_TAIL(&dev->asleep, uar, link);
	}
	return hw_uar_any_asleep(dev);
}

bool hw_uar_any_asleep(const struct hw_dev *dev)
{
	return !TAILQ_EMPTY(&dev->asleep);
}

enum {
	WQES_PER_LOOK = 8, /* and more when much is executed between two scans: they come more seldom then */
	MAX_STEP = 1024,
	ALL_AT_ONCE = 64, /* pages awake, above which quiet ones wait for their turn when there is work */
};
static const uint64_t bedtime_ns = 20000000;

/*
 * Where software rings in a UAR page, in 8-byte words (linux/mlx5/doorbell.h; rdma-core mlx5.c): the CQ arm
 * doorbell and two BlueFlame registers of two halves each.
 */
static const unsigned cq_word = 0x20 / 8;
static const unsigned bf_word[] = {0x800 / 8, 0x900 / 8, 0xa00 / 8, 0xb00 / 8};

static uint64_t take(uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED) ? __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) : 0;
}

/* The number in the upper 24 bits of the second big-endian half (QPN and DS), or in the lower ones (CQN). */
static uint32_t second_half(uint64_t word)
{
	return (uint32_t)be64toh(word);
}

/* How many to look at in this scan. */
static unsigned portion(const struct hw_uar *uar, struct hw_uar_round *r)
{
	unsigned step = uar->dev->wqes_between_scans / WQES_PER_LOOK;

	if (step < r->step)
		step = r->step;
	if (r->left > r->of)
		r->left = r->of; /* some have left the list */
	return r->left < step ? r->left : step;
}

static void portion_done(struct hw_uar_round *r, unsigned looked, bool found)
{
	r->left -= looked;
	if (found)
		r->step = r->step * 2 < MAX_STEP ? r->step * 2 : MAX_STEP;
	else if (looked && r->step > HW_UAR_MIN_STEP)
		r->step--;
}

static void look_at_qps(struct hw_uar *uar)
{
	unsigned n = portion(uar, &uar->sq);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		struct hw_qp *qp = uar->next_qp ? uar->next_qp : TAILQ_FIRST(&uar->qps);
		uint16_t before = qp->sq_pi;

		uar->next_qp = TAILQ_NEXT(qp, of_uar);
		hw_qp_read_sq_doorbell(qp);
		found |= qp->sq_pi != before;
	}
	portion_done(&uar->sq, n, found);
}

static void look_at_cqs(struct hw_uar *uar)
{
	unsigned n = portion(uar, &uar->arm);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		struct hw_cq *cq = uar->next_cq ? uar->next_cq : TAILQ_FIRST(&uar->cqs);
		uint32_t before = cq->arm_word;

		uar->next_cq = TAILQ_NEXT(cq, of_uar);
		hw_cq_check_arm(cq);
		found |= cq->arm_word != before;
	}
	portion_done(&uar->arm, n, found);
}

static bool scan(struct hw_uar *uar)
{
	bool any = false;
	uint64_t word;

	for (size_t i = 0; i < COUNT(bf_word); i++) {
		struct hw_qp *qp;

		word = take(&uar->page[bf_word[i]]);
		if (!word)
			continue;
		any = true;
		uar->dev->total.rings++;
		uar->sq.left = uar->sq.of;
		qp = hw_qp_find(uar->dev, second_half(word) >> 8);
		if (qp && qp->uar == uar)
			hw_qp_rung(qp);
	}
	word = take(&uar->page[cq_word]);
	if (word) {
		struct hw_cq *cq = hw_cq_find(uar->dev, second_half(word) & 0xffffff);

		any = true;
		uar->dev->total.rings++;
		uar->arm.left = uar->arm.of;
		if (cq && cq->uar == uar)
			hw_cq_check_arm(cq);
	}
	if (uar->sq.left) {
		look_at_qps(uar);
		any = true;
	}
	if (uar->arm.left) {
		look_at_cqs(uar);
		any = true;
	}
	return any;
}

/*
 * After the page has gone every store faults. Rings before that show in the doorbell records, as software
 * orders its stores. So nothing is lost, whatever was in the page.
 */
static void fall_asleep(struct hw_uar *uar)
{
	struct hw_qp *qp;
	struct hw_cq *cq, *next;

	if (!uar_sleep(uar))
		return;
	TAILQ_FOREACH (qp, &uar->qps, of_uar)
		hw_qp_read_sq_doorbell(qp);
	for (cq = TAILQ_FIRST(&uar->cqs); cq; cq = next) {
		next = TAILQ_NEXT(cq, of_uar);
		hw_cq_check_arm(cq);
	}
}

bool hw_doorbell_scan(struct hw_dev *dev)
{
	bool any = false, hurry = dev->nready && dev->nawake > ALL_AT_ONCE;
	struct hw_uar *uar = TAILQ_FIRST(&dev->awake), *next;
	unsigned most = hurry ? ALL_AT_ONCE : dev->nawake;

	dev->wqes_between_scans = (unsigned)(dev->total.wqes - dev->wqes_at_scan);
	dev->wqes_at_scan = dev->total.wqes;
	for (unsigned i = 0; i < most && uar; i++, uar = next) {
		next = TAILQ_NEXT(uar, link);
		if (uar->kind == HW_UAR_TIME) {
			uar_set_time(uar, hw_clock_ticks(dev->now));
		} else if (scan(uar)) {
			any = true;
			uar->rung_at = dev->now;
			continue;
		}
		if (uar->mappings && uar->guarded == uar->mappings && dev->now - uar->rung_at > bedtime_ns) {
			fall_asleep(uar);
			continue;
		}
		/* those that ring stay in front */
		if (hurry) {
			TAILQ_REMOVE(&dev->awake, uar, link);
			TAILQ_INSERT_TAIL(&dev->awake, uar, link);
		}
	}
	return any;
}
