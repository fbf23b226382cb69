/*
 * The tables that describe the C interface to the extension: enums, structs and calls. Their rows
 * are generated (structs.c, calls.c, numbers.h); python/core/table.c reads them.
 */
#ifndef GPUMEM_PYTHON_TABLES_H
#define GPUMEM_PYTHON_TABLES_H

#include "numbers.h"

#include <gpumem/gpumem.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a member or a parameter is. Those with OUT and NEW are results. */
enum kind {
    KIND_BOOL,
    KIND_INT,
    KIND_UNSIGNED,
    KIND_BYTE,
    KIND_SIZE,
    KIND_UINT64,
    KIND_DOUBLE,
    KIND_FLOAT,
    KIND_ENUM,   /* extra: which choices */
    KIND_TEXT,   /* const char * */
    KIND_CHARS,  /* char[extra] */
    KIND_BYTES,  /* unsigned char[extra] */
    KIND_STREAM, /* None: NULL, which names no stream */
    KIND_EVENT,
    KIND_POINTER, /* an int in Python */
    KIND_INTS,    /* of a struct: extra is where the count is; of a call: pointer and count */
    KIND_BLOB,    /* bytes of a result; extra is where their number is */
    KIND_UUID,    /* const unsigned char[16] */
    KIND_READ,    /* an object with the buffer protocol: const void *, size_t */
    KIND_WRITE,   /* a writable one: void *, size_t */
    KIND_STRUCT,  /* extra: which layout; a dict, or None */
    KIND_OBJECT,  /* extra: of which kind */
    KIND_BUFFER,
    KIND_RESOURCE,
    KIND_NEW_BUFFER,
    KIND_NEW_RESOURCE, /* Python gives the MemoryResource that receives it */
    KIND_NEW_OBJECT,
    KIND_OUT_STRUCT,
    KIND_OUT_BOOL,
    KIND_OUT_INT,
    KIND_OUT_SIZE,
    KIND_OUT_UINT64,
    KIND_OUT_FLOAT,
    KIND_OUT_ENUM,
    KIND_OUT_POINTER,
    KIND_OUT_TEXT, /* freed by free() */
};

struct choice {
    const char *word; /* NULL ends the rows */
    int value;
};

struct choices {
    const char *name;
    const struct choice *rows;
};

struct member {
    const char *name; /* NULL ends the rows */
    size_t offset;
    enum kind kind;
    size_t extra;
};

struct layout {
    const char *name;
    size_t size;
    const struct member *members; /* without `size`, which every struct here begins with */
};

struct parameter {
    const char *name; /* NULL ends the row */
    enum kind kind;
    size_t extra;
};

/* The value of one parameter, as C passes it. */
union value {
    struct {
        void *pointer;
        size_t count;
    };
    size_t size;
    unsigned long long wide;
    uint64_t word;
    int number;
    bool flag;
    double real;
    float single;
};

struct cold {
    const char *name; /* NULL ends the table */
    gpumem_status (*call)(union value *values);
    const struct parameter *parameters;
};

extern const struct choices core_choices[];
extern const struct layout core_layouts[];
extern const struct cold core_calls[];

#endif
