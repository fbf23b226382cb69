// target sm_80
// Products of f16 matrices with sums in f32 by mma.m16n8k16: a warp has 16 x 8 of the result, and
// loads its fragments from shared memory by ldmatrix. The sizes are multiples of 16.
#include "device.cuh"

#define ROWS  16
#define INNER 16

INLINE void load_left(u32 *a, const u16 *tile) {
    u32 at = shared_address(tile + (lane() % 16) * INNER + lane() / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
}

// Of rows of b, eight numbers each.
INLINE void load_right(u32 *b, const u16 *tile) {
    u32 at = shared_address(tile + (lane() % 16) * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(at)
                 : "memory");
}

INLINE void multiply_add(float *c, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

KERNEL multiply(const u16 *a, const u16 *b, float *c, u32 inner, u32 columns) {
    SHARED __attribute__((aligned(16))) u16 left[ROWS * INNER], right[INNER * 8];
    u32 row = block_y() * ROWS, column = block() * 8, fragment[4], other[2];
    float sum[4] = {0, 0, 0, 0};
    for (u32 first = 0; first < inner; first += INNER) {
        for (u32 i = lane(); i < ROWS * INNER; i += 32)
            left[i] = a[(row + i / INNER) * inner + first + i % INNER];
        for (u32 i = lane(); i < INNER * 8; i += 32)
            right[i] = b[(first + i / 8) * columns + column + i % 8];
        sync();
        load_left(fragment, left);
        load_right(other, right);
        multiply_add(sum, fragment, other);
        sync();
    }
    float *own = c + (row + lane() / 4) * columns + column + lane() % 4 * 2;
    own[0] = sum[0];
    own[1] = sum[1];
    own[8 * columns] = sum[2];
    own[8 * columns + 1] = sum[3];
}
