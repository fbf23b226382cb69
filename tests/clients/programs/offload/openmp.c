/* Loops that OpenMP runs on a device. Each line of the output is the same wherever
 * they run, but the first. */
#include <omp.h>
#include <stdio.h>

enum { N = 3000, SIDE = 33 };

static int values[N];
static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];

#pragma omp declare target
static int calls;
static int collatz(unsigned long n) {
    int steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}
#pragma omp end declare target

static void loops(void) {
    long sum = 0;
    int most = 0;
#pragma omp target teams distribute parallel for map(from : values)
    for (int i = 0; i < N; i++)
        values[i] = collatz((unsigned long)i + 1);
#pragma omp target teams distribute parallel for reduction(+ : sum) map(to : values)
    for (int i = 0; i < N; i++)
        sum += values[i];
#pragma omp target teams distribute parallel for reduction(max : most) map(to : values)
    for (int i = 0; i < N; i++)
        most = values[i] > most ? values[i] : most;
    printf("loops %d %ld %d\n", values[26], sum, most);
}

static void product(void) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = i + j * 0.5;
            b[i][j] = i - j;
        }
#pragma omp target teams distribute parallel for collapse(2) map(to : a, b) map(from : c)
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    printf("product %.1f %.1f %.1f\n", c[0][0], c[SIDE - 1][1], c[7][SIDE - 1]);
}

static void data(void) {
    int bins[16] = {0};
#pragma omp target data map(tofrom : bins)
    {
#pragma omp target teams distribute parallel for
        for (int i = 0; i < N; i++) {
#pragma omp atomic
            bins[i * 7 % 16]++;
        }
#pragma omp target update from(bins)
        bins[3] += 1000;
#pragma omp target update to(bins)
#pragma omp target
        for (int i = 0; i < 16; i++)
            bins[i] *= 2;
    }
    printf("data %d %d %d\n", bins[0], bins[3], bins[15]);
}

static void parallel(void) {
    int threads = 0, sections = 0, order = 0, total = 0;
#pragma omp target map(tofrom : threads, sections, order, total)
    {
#pragma omp parallel num_threads(8)
        {
#pragma omp master
            threads = omp_get_num_threads();
#pragma omp for ordered schedule(static, 1)
            for (int i = 0; i < 40; i++) {
#pragma omp ordered
                order = order * 3 + i;
            }
#pragma omp critical
            total += 5;
#pragma omp barrier
#pragma omp single
            sections = total;
        }
        calls++;
    }
#pragma omp target update from(calls)
    printf("parallel %d %d %d %d\n", threads, sections, order, calls);
}

static void tasks(void) {
    int first[64], second[64];
#pragma omp target teams distribute parallel for nowait depend(out : first) map(from : first)
    for (int i = 0; i < 64; i++)
        first[i] = i * i;
#pragma omp target teams distribute parallel for nowait depend(in                                  \
                                                               : first) depend(out                 \
                                                                               : second)           \
    map(to                                                                                         \
        : first) map(from                                                                          \
                     : second)
    for (int i = 0; i < 64; i++)
        second[i] = first[63 - i] + 1;
#pragma omp taskwait
    printf("tasks %d %d\n", second[0], second[63]);
}

int main(void) {
    int host = 1;
#pragma omp target map(from : host)
    host = omp_is_initial_device();
    printf("ran on the %s\n", host ? "host" : "device");
    loops();
    product();
    data();
    parallel();
    tasks();
    return 0;
}
