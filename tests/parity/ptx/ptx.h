/*
 * The recorder of PTX: runs kernels on whatever driver is chosen (GPUMEM_DRIVER) and prints what
 * they answer, the same text on every driver that computes the same. See README.md.
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

/* Opens the driver with device 0's primary context current; ends the process with status 2 when
 * there is none. NULL: what GPUMEM_DRIVER says. */
void ptx_open(const char *choice);
/* Ends the process with status 3, saying which call failed with what: for calls that must work. */
void ptx_must(CUresult result, const char *call);
#define MUST(call) ptx_must((call), #call)
const char *ptx_result_name(CUresult result);

/* ---- work in many processes (fan_out.c) ------------------------------------------------------ */

/*
 * Calls work(item, file) for each item, in `jobs` processes; an item prints one line. What they
 * printed comes to `to` in order of the items. An item whose process ends without having returned
 * leaves the line "<name of the item>\tended: how"; its process is started again behind it.
 * Each process opens the driver itself: begin() is called once in it. `chunk` items in a row are of
 * one process.
 */
struct ptx_work {
    unsigned count, chunk, jobs;
    unsigned seconds; /* an item that takes longer is ended */
    void (*begin)(void);
    bool (*work)(unsigned item, FILE *file); /* false: this process can do no more */
    void (*name)(unsigned item, FILE *file);
};
/* The number of items that ended badly. */
unsigned ptx_fan_out(const struct ptx_work *work, FILE *to);

/* ---- values to try (values.c) ---------------------------------------------------------------- */

#define PTX_MOST_INS  24
#define PTX_MOST_OUTS 8
#define PTX_MOST      1024 /* threads of a form */
#define PTX_BLOCK     128u

/* Fills values[operand * PTX_MOST + i] for the classes named in `ins`, and returns how many
 * threads there are; a multiple of PTX_BLOCK. `*asked`: how many of them count. */
unsigned ptx_values(const char *ins, uint64_t *values, unsigned *asked);
unsigned ptx_operands(const char *ins);
/* Bits of the register for the nth class: 1 for a predicate. */
unsigned ptx_operand_bits(const char *ins, unsigned n);
/* Of what all classes give, alone and with themselves: answers to other values mean nothing. */
uint64_t ptx_values_hash(void);
uint64_t ptx_mix(uint64_t x);

/* ---- what is recorded ------------------------------------------------------------------------ */

struct ptx_options {
    unsigned jobs;
    const char *only;  /* forms that contain this; NULL: all */
    uint64_t from, to; /* seeds of programs */
    const char *drop;  /* statements of a program to leave out: "3,17" */
    unsigned every;    /* of the approximate functions' blocks, one in so many */
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
