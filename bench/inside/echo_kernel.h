/* A kernel that answers: times from the CPU's store to the CPU's load of the answer. */
#ifndef BENCH_ECHO_KERNEL_H
#define BENCH_ECHO_KERNEL_H

#include <gpumem/driver.h>
#include <stdbool.h>
#include <stdint.h>

#define ECHO_PAYLOAD 64 /* bytes */

/* False if kernels cannot run, with the reason printed. */
bool echo_open(const gpumem_driver_api *cu);
void echo_close(void);

/*
 * Starts the kernel on memory at `address`: an aligned payload of ECHO_PAYLOAD bytes, followed by
 * the flag. It waits until the flag is 1, 2, 3 and so on, and answers each with the smallest word
 * of the payload, or with the flag if `payload` is false. It ends after the answer `last`, or if no
 * flag has arrived for 5 seconds. Flag and payload must be 0 initially.
 */
void echo_start(uint64_t address, uint32_t last, bool payload);
/* Waits for an answer. Ends the program if the kernel has given up. */
void echo_await(uint32_t answer);
/* Waits for the kernel's end. */
void echo_end(void);

#endif
