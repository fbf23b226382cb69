/* Loops that OpenACC runs on a device. Each line of the output is the same wherever
 * they run, but the first. */
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 5000, ROWS = 40, COLUMNS = 70 };

#pragma acc routine seq
static unsigned mixed(unsigned x) {
    x ^= x >> 16;
    x *= 0x45d9f3bU;
    return x ^ x >> 16;
}

static void loops(void) {
    static unsigned values[N];
    unsigned all = 0, least = ~0U;
#pragma acc parallel loop gang vector copyout(values)
    for (int i = 0; i < N; i++)
        values[i] = mixed((unsigned)i);
#pragma acc parallel loop copyin(values) reduction(^ : all) reduction(min : least)
    for (int i = 0; i < N; i++) {
        all ^= values[i];
        least = values[i] < least ? values[i] : least;
    }
    printf("loops %u %u %u\n", values[77], all, least);
}

static void levels(void) {
    static int grid[ROWS][COLUMNS];
    int sums[ROWS];
#pragma acc data create(grid) copyout(sums)
    {
#pragma acc parallel loop gang num_gangs(8) num_workers(4) vector_length(32)
        for (int i = 0; i < ROWS; i++) {
#pragma acc loop worker vector
            for (int j = 0; j < COLUMNS; j++)
                grid[i][j] = i * j % 11;
        }
#pragma acc parallel loop gang
        for (int i = 0; i < ROWS; i++) {
            int sum = 0;
#pragma acc loop vector reduction(+ : sum)
            for (int j = 0; j < COLUMNS; j++)
                sum += grid[i][j];
            sums[i] = sum;
        }
    }
    printf("levels %d %d %d\n", sums[0], sums[1], sums[ROWS - 1]);
}

static void queues(void) {
    int left[256], right[256], both = 0;
#pragma acc enter data create(left, right)
#pragma acc parallel loop async(1) present(left)
    for (int i = 0; i < 256; i++)
        left[i] = i;
#pragma acc parallel loop async(2) present(right)
    for (int i = 0; i < 256; i++)
        right[i] = 2 * i;
#pragma acc wait(1) async(2)
#pragma acc parallel loop async(2) present(left, right) reduction(+ : both) copy(both)
    for (int i = 0; i < 256; i++)
        both += left[i] + right[255 - i];
#pragma acc wait
#pragma acc exit data copyout(left, right)
    printf("queues %d %d %d\n", left[255], right[255], both);
}

static void counted(void) {
    int bins[8] = {0}, last = 0;
#pragma acc parallel loop copy(bins)
    for (int i = 0; i < N; i++) {
#pragma acc atomic update
        bins[mixed((unsigned)i) % 8]++;
    }
#pragma acc kernels copyin(bins) copyout(last)
    last = bins[7];
    printf("counted %d %d\n", bins[0], last);
}

static void memory(void) {
    double *host = malloc(sizeof *host * 100), *device = acc_malloc(sizeof *host * 100);
#pragma acc parallel loop deviceptr(device)
    for (int i = 0; i < 100; i++)
        device[i] = i / 4.0;
    acc_memcpy_from_device(host, device, sizeof *host * 100);
    acc_free(device);
    printf("memory %.2f %.2f\n", host[1], host[99]);
    free(host);
}

int main(void) {
    int host = 1;
#pragma acc parallel copyout(host)
    host = acc_on_device(acc_device_host);
    printf("ran on the %s\n", host ? "host" : "device");
    loops();
    levels();
    queues();
    counted();
    memory();
    return 0;
}
