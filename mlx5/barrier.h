/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * barrier.h - order between the CPU's accesses and those of a device, which the fences of C do not give.
 *
 * C's fences order accesses among the CPUs of the inner shareable domain. A device is outside of it, and a
 * doorbell is no normal memory. The forms are those of rdma-core's util/udma_barrier.h:
 *
 *   barrier_to_device     udma_to_device_barrier: what was stored is visible to the device before what is
 *                         stored behind it: WQEs before the doorbell record
 *   barrier_from_device   udma_from_device_barrier: what is loaded behind it is not older than what a load
 *                         before it saw: a CQE behind its owner bit
 *   barrier_doorbell      mmio_wc_start, mmio_flush_writes: before and after a store to a doorbell page
 */
#ifndef MLX5_BARRIER_H
#define MLX5_BARRIER_H

static inline void barrier_to_device(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" ::: "memory"); /* stores become visible in their order */
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
#error "add this architecture's form of udma_to_device_barrier (rdma-core util/udma_barrier.h)"
#endif
}

static inline void barrier_from_device(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
#error "add this architecture's form of udma_from_device_barrier (rdma-core util/udma_barrier.h)"
#endif
}

static inline void barrier_doorbell(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
#error "add this architecture's form of mmio_flush_writes (rdma-core util/udma_barrier.h)"
#endif
}

#endif
