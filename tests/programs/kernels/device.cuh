// What the programs' kernels use of the device: our own names for the built-ins of clang's NVPTX
// back end. No header of CUDA is included.
#ifndef PROGRAMS_DEVICE_CUH
#define PROGRAMS_DEVICE_CUH

#define KERNEL   extern "C" __attribute__((global)) void
#define DEVICE   __attribute__((device))
#define INLINE   static __attribute__((device, always_inline, unused)) inline
#define SHARED   static __attribute__((shared))
#define DYNAMIC  extern __attribute__((shared))
#define CONSTANT __attribute__((constant))
#define FULL     0xffffffffu

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef __SIZE_TYPE__ size_t;

INLINE u32 thread() {
    return (u32)__nvvm_read_ptx_sreg_tid_x();
}
INLINE u32 thread_y() {
    return (u32)__nvvm_read_ptx_sreg_tid_y();
}
INLINE u32 thread_z() {
    return (u32)__nvvm_read_ptx_sreg_tid_z();
}
INLINE u32 threads() {
    return (u32)__nvvm_read_ptx_sreg_ntid_x();
}
INLINE u32 block() {
    return (u32)__nvvm_read_ptx_sreg_ctaid_x();
}
INLINE u32 block_y() {
    return (u32)__nvvm_read_ptx_sreg_ctaid_y();
}
INLINE u32 block_z() {
    return (u32)__nvvm_read_ptx_sreg_ctaid_z();
}
INLINE u32 blocks() {
    return (u32)__nvvm_read_ptx_sreg_nctaid_x();
}
INLINE u32 index() {
    return block() * threads() + thread();
}
INLINE u32 all_threads() {
    return blocks() * threads();
}
INLINE u32 lane() {
    return thread() & 31;
}
// Not __syncthreads(): clang 14 moves loads of static shared variables over it, because no built-in
// changes a variable of which nobody has the address.
INLINE void sync() {
    asm volatile("bar.sync 0;" ::: "memory");
}

INLINE u32 shuffle_down(u32 value, u32 distance) {
    return (u32)__nvvm_shfl_sync_down_i32(FULL, (int)value, (int)distance, 31);
}
INLINE u32 shuffle_up(u32 value, u32 distance) {
    return (u32)__nvvm_shfl_sync_up_i32(FULL, (int)value, (int)distance, 0);
}
INLINE u32 shuffle_xor(u32 value, u32 mask) {
    return (u32)__nvvm_shfl_sync_bfly_i32(FULL, (int)value, (int)mask, 31);
}
INLINE u32 shuffle(u32 value, u32 from) {
    return (u32)__nvvm_shfl_sync_idx_i32(FULL, (int)value, (int)from, 31);
}
INLINE float shuffle_down(float value, u32 distance) {
    return __nvvm_shfl_sync_down_f32(FULL, value, (int)distance, 31);
}
INLINE u32 ballot(bool which) {
    return __nvvm_vote_ballot_sync(FULL, which);
}

template <typename T> INLINE T atomic_add(T *at, T value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
INLINE u32 atomic_min(u32 *at, u32 value) {
    return __atomic_fetch_min(at, value, __ATOMIC_RELAXED);
}
INLINE u32 atomic_or(u32 *at, u32 value) {
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
// What was there; `value` is there then if that was `old`.
INLINE u32 atomic_swap_if(u32 *at, u32 old, u32 value) {
    u32 found;
    asm volatile("atom.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(at), "r"(old), "r"(value)
                 : "memory");
    return found;
}

INLINE void fence() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
INLINE u32 load_acquire(const u32 *at) {
    u32 value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
INLINE void store_release(u32 *at, u32 value) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
INLINE u64 load_acquire(const u64 *at) {
    u64 value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
INLINE void store_release(u64 *at, u64 value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

INLINE float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
INLINE double fused(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
INLINE float root(float a) {
    return __nvvm_sqrt_rn_f(a);
}
// The 32-bit address within shared memory, for inline PTX.
INLINE u32 shared_address(const void *at) {
    u64 address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(at));
    return (u32)address;
}

#endif
