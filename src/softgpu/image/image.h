/*
 * Program images as data: what PTX text, a cubin or a fatbin says about its functions and
 * variables. Nothing here knows of contexts, handles or the lock: the parser is pure, so that it
 * can be fuzzed by itself.
 */
#ifndef SG_IMAGE_IMAGE_H
#define SG_IMAGE_IMAGE_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sg_parameter {
    uint32_t offset, size; /* bytes, in the parameter buffer */
};

struct sg_image_function {
    char *name;
    struct sg_parameter *parameters;
    unsigned parameter_count;
    unsigned parameter_bytes;     /* of the whole buffer */
    unsigned max_threads;         /* .maxntid's product; 0 when not given, .reqntid or not */
    unsigned required_threads[3]; /* .reqntid; zeros when not given */
    unsigned cluster[3];          /* .reqnctapercluster; zeros when not given */
    unsigned max_cluster_rank;    /* .maxclusterrank; 0 when not given */
    bool explicit_cluster;        /* .explicitcluster */
    bool visible;           /* other images of a link see it; of what was linked nobody asks */
    bool weak;              /* another image may define it too */
    unsigned registers;     /* a thread's; of PTX it is not known: 0 */
    unsigned static_shared; /* bytes a block */
    unsigned local;         /* bytes a thread */
    unsigned constant;      /* bytes of user constants, as CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES */
};

/* A word of a variable's initial value that is the address of something. */
struct sg_relocation {
    uint64_t offset; /* in the variable */
    unsigned size;   /* 4 or 8 bytes; 1 to 8 where PTX names them one by one, the lowest first */
    char *symbol;    /* a variable or function of the image */
    size_t target; /* the variable's number in the image + 1; 0: the first of that name, or code */
    int64_t addend;
    bool generic; /* .generic: an address as all spaces see it */
};

struct sg_image_variable {
    char *name;
    uint64_t size, alignment;
    bool constant;          /* .const rather than .global */
    bool managed;           /* .attribute(.managed) */
    bool external;          /* .extern: somebody else's, no storage */
    bool visible;           /* .visible, .weak or .common: other images of a link see it */
    bool weak;              /* .weak or .common: another image may define it too */
    bool common;            /* .common: as large as the largest of them */
    unsigned char *initial; /* `initial_size` bytes, the rest is zero; NULL for none */
    uint64_t initial_size;
    struct sg_relocation *relocations;
    size_t relocation_count;
};

/* Of an input of a link: a function with a body, or one that is called. */
struct sg_image_code {
    char *name;
    bool defined;     /* it has a body here */
    bool shared;      /* other inputs see it, or give it */
    bool needed;      /* whoever calls it: an entry, or a declaration that promises a body */
    size_t last_call; /* in the image's calls, + 1; 0: none */
};

struct sg_image_call {
    size_t to;   /* which function */
    size_t next; /* call of the same function, + 1; 0: none */
};

/* What it was made from: what a link gives is an ELF, and PTX when all that was linked is. */
enum sg_image_source { SG_IMAGE_PTX, SG_IMAGE_MACHINE };

struct sg_image {
    enum sg_image_source source;
    int ptx_version; /* 87 for .version 8.7; of machine code the version that it was made from, or 0
                      */
    int target;      /* 90 for sm_90; of what was linked, the newest that the inputs name */
    char target_suffix; /* 'a', 'f' or 0 */
    char *ptx; /* the text, kept for an engine that runs it; of a link, of its only input */
    struct sg_ptx_outline *outline; /* where what in the text, one block; NULL when not known */
    unsigned char *machine;         /* the ELF, kept likewise; NULL for text */
    size_t machine_size;
    bool to_be_linked;                   /* machine code that is an input of linkers */
    struct sg_image_function *functions; /* entries (kernels), in order of the image */
    size_t function_count;
    struct sg_image_variable *variables;
    size_t variable_count;
    char **textures, **surfaces; /* names of .texref and .surfref */
    size_t texture_count, surface_count;
    char **undefined; /* external functions that a link must give */
    size_t undefined_count;
    char **exported; /* device functions that other images of a link may name */
    size_t exported_count;
    char **weak; /* device functions likewise, which others may define too */
    size_t weak_count;
    struct sg_image_code *code; /* of an input of a link: who calls whom */
    size_t code_count;
    struct sg_image_call *calls;
    size_t call_count;
};

/* Messages for CU_JIT_INFO_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER; text is cut, never overrun. */
struct sg_image_log {
    char *info, *error;           /* may be NULL */
    size_t info_size, error_size; /* room */
    size_t info_used, error_used; /* written, without the final zero; all when text was cut */
};

struct sg_image_options {
    int architecture;     /* compute capability of the device: 90; -1 to take what there is */
    char suffix;          /* architecture-specific code that the device runs: 'a', or 0 */
    int newest_ptx;       /* 90 for 9.0: newer .version is refused with UNSUPPORTED_PTX_VERSION */
    bool prefer_machine;  /* CU_PREFER_BINARY, the default, rather than CU_PREFER_PTX */
    bool wrapped;         /* a fatbin wrapper is taken, as libraries do; modules refuse it */
    bool relocatable;     /* input of a link: external functions and variables are allowed */
    unsigned most_shared; /* bytes that a function of PTX may declare; 0 for any number */
    const char *name;     /* of the input in messages; may be NULL */
};

/* NULL is allowed. */
void sg_image_free(struct sg_image *image);

const struct sg_image_function *sg_image_find_function(const struct sg_image *image,
                                                       const char *name);
/* Of several, which are of different inputs of a link, the visible one, else the first: recorded.
 */
const struct sg_image_variable *sg_image_find_variable(const struct sg_image *image,
                                                       const char *name);

#endif
