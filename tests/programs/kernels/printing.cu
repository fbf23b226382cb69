// What kernels print: the threads of a block in turn.
#include "device.cuh"

extern "C" DEVICE int printf(const char *format, ...);

KERNEL formats(const char *name, double number) {
    printf("%s: %d %5d|%-5d|%05d %u %x %X %o %c%%\n", name, -7, 42, 42, 42, 4000000000u, 48879,
           48879, 8, 'q');
    printf("%lld %llu %llx %hd %p\n", -1234567890123ll, 12345678901234567890ull, 0xfeedfacecafell,
           (short)-5, (void *)0x1000);
    printf("%f %.3f %10.2f|%-10.1f|%e %g %G %a\n", number, number, number, number, number, number,
           number * 1e20, 0.5);
    printf("%*d|%-*d|%.*f\n", 6, 12, 6, 12, 2, number);
    printf("%s and %.3s\n", "a string", "another");
    int printed = printf("nothing to convert\n");
    printf("that returned %d\n", printed);
}

KERNEL in_turn(const u32 *values) {
    for (u32 turn = 0; turn < threads(); turn++) {
        if (turn == thread())
            printf("block %u thread %u has %u and %g\n", block(), thread(), values[index()],
                   (double)values[index()] / 8);
        sync();
    }
}
