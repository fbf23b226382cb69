// The queens' problem: each thread places the first rows by its number and counts the rest, once by
// calls of a function that calls itself, once with a stack of its own in local memory.
#include "device.cuh"

static DEVICE __attribute__((noinline)) u32 place(u32 all, u32 columns, u32 left, u32 right) {
    if (columns == all)
        return 1;
    u32 count = 0;
    for (u32 open = all & ~(columns | left | right); open; open &= open - 1) {
        u32 own = open & -open;
        count += place(all, columns | own, (left | own) << 1, (right | own) >> 1);
    }
    return count;
}

static DEVICE __attribute__((noinline)) u32 with_stack(u32 all, u32 columns, u32 left, u32 right) {
    u32 open[20], c[20], l[20], r[20], depth = 0, count = 0;
    c[0] = columns;
    l[0] = left;
    r[0] = right;
    open[0] = all & ~(columns | left | right);
    for (;;) {
        if (c[depth] == all || !open[depth]) {
            count += c[depth] == all;
            if (!depth--)
                return count;
            continue;
        }
        u32 own = open[depth] & -open[depth];
        open[depth] &= open[depth] - 1;
        c[depth + 1] = c[depth] | own;
        l[depth + 1] = (l[depth] | own) << 1;
        r[depth + 1] = (r[depth] | own) >> 1;
        depth++;
        open[depth] = all & ~(c[depth] | l[depth] | r[depth]);
    }
}

KERNEL solve(u32 size, u32 recursive, u32 *counts, u32 *total) {
    u32 all = (1u << size) - 1, first = index() % size, second = index() / size;
    u32 count = 0;
    if (second < size) {
        u32 a = 1u << first, b = 1u << second, left = a << 1, right = a >> 1;
        if (!(b & (a | left | right))) {
            left = (left | b) << 1;
            right = (right | b) >> 1;
            count = recursive ? place(all, a | b, left, right) : with_stack(all, a | b, left, right);
        }
        counts[index()] = count;
    }
    atomic_add(total, count);
}
