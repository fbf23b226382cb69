/*
 * The recorder of PTX: runs kernels on the chosen driver (GPUMEM_DRIVER) and prints their results,
 * as the same text on every driver that computes the same. See README.md.
 */
#ifndef PTX_H
#define PTX_H

#include <gpumem/driver.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PTX_HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

/* ---- the driver of this process (driver.c) --------------------------------------------------- */

extern const gpumem_driver_api *cu;

/* Opens the driver `choice`, or if it is NULL the one that GPUMEM_DRIVER names, and makes device
 * 0's primary context current. Without a driver or device the process ends with status 2. */
void ptx_open(const char *choice);
/* For calls that must succeed: on failure prints the call and its result, and ends the process with
 * status 3. */
void ptx_must(CUresult result, const char *call);
#define MUST(call) ptx_must((call), #call)
const char *ptx_result_name(CUresult result);

/* ---- work in many processes (fan_out.c) ------------------------------------------------------ */

/*
 * Calls work(item, file) for each item, in `jobs` processes. Each item prints one line; the lines
 * are written to `to` in the order of the items. If a process ends inside an item, that item's line
 * is "<name of the item>\tended: how", and a new process goes on after it. Each process opens the
 * driver itself: begin() is called once in it. One process takes `chunk` consecutive items at a
 * time.
 */
struct ptx_work {
    unsigned count, chunk, jobs;
    unsigned seconds; /* an item that takes longer is killed */
    void (*begin)(void);
    bool (*work)(unsigned item, FILE *file); /* false: this process is of no more use */
    void (*name)(unsigned item, FILE *file);
};
/* Returns the number of items whose process ended. */
unsigned ptx_fan_out(const struct ptx_work *work, FILE *to);

/* ---- values to try (values.c) ---------------------------------------------------------------- */

#define PTX_MOST_INS  24
#define PTX_MOST_OUTS 8
#define PTX_MOST      1024 /* threads at most, of a form */
#define PTX_BLOCK     128u

/* Fills values[operand * PTX_MOST + i] for the classes named in `ins`, and returns the number of
 * threads, a multiple of PTX_BLOCK. Only the first *asked of them count. */
unsigned ptx_values(const char *ins, uint64_t *values, unsigned *asked);
unsigned ptx_operands(const char *ins);
/* Width in bits of the nth class's register; 1 for a predicate. */
unsigned ptx_operand_bits(const char *ins, unsigned n);
/* Hash of the values of all classes, alone and in pairs. Results for other values cannot be
 * compared. */
uint64_t ptx_values_hash(void);
uint64_t ptx_mix(uint64_t x);

/* ---- what is recorded ------------------------------------------------------------------------ */

struct ptx_options {
    unsigned jobs;
    const char *only;  /* only forms that contain this; NULL: all */
    uint64_t from, to; /* seeds of programs */
    const char *drop;  /* statements of a program to leave out: "3,17" */
    unsigned every;    /* compare one in so many blocks of an approximate function */
};

int ptx_forms_record(const struct ptx_options *options, FILE *to);
int ptx_forms_inputs(const char *form);
int ptx_approximate_record(const struct ptx_options *options, FILE *to);
int ptx_approximate_steps(const struct ptx_options *options, FILE *to);
int ptx_approximate_count(const struct ptx_options *options, FILE *to);
int ptx_scenes_record(const struct ptx_options *options, FILE *to);
int ptx_programs_record(const struct ptx_options *options, FILE *to);
int ptx_programs_record_plain(const struct ptx_options *options, FILE *to);
int ptx_program_show(const struct ptx_options *options);
int ptx_program_answer(const struct ptx_options *options);

#endif
