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

/* What keeps a function of code that was not linked from running; the greater, the sooner. */
enum sg_image_lack {
    SG_LACKS_NOTHING,
    SG_LACKS_PLACES, /* addresses of variables */
    SG_LACKS_OTHERS, /* what other code defines */
    SG_LACKS_CALLED, /* likewise: a function that it calls itself */
};

struct sg_image_function {
    char *name;
    struct sg_parameter *parameters;
    unsigned parameter_count;
    unsigned parameter_bytes;     /* of the whole buffer */
    unsigned max_threads;         /* product of .maxntid; 0 when not given, even if .reqntid is */
    unsigned required_threads[3]; /* .reqntid; zeros when not given */
    unsigned cluster[3];          /* .reqnctapercluster; zeros when not given */
    unsigned max_cluster_rank;    /* .maxclusterrank; 0 when not given */
    bool explicit_cluster;        /* .explicitcluster */
    bool visible;                 /* other images of a link see it; unused after linking */
    bool weak;                    /* another image may define it too */
    unsigned registers;           /* per thread; 0 for PTX, where it is unknown */
    unsigned static_shared;       /* bytes per block */
    unsigned local;               /* bytes per thread */
    enum sg_image_lack lacks;     /* of code that was not linked */
    unsigned constant; /* bytes of user constants, as CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES */
};

/* A word of a variable's initial value that is the address of something. */
struct sg_relocation {
    uint64_t offset; /* in the variable */
    unsigned size;   /* 4 or 8 bytes; 1 to 8 where PTX names them one by one, the lowest first */
    char *symbol;    /* a variable or function of the image */
    size_t target;   /* index in the image's variables + 1; 0: the first of that name, or code */
    int64_t addend;
    bool generic; /* .generic: an address valid in all spaces */
};

struct sg_image_variable {
    char *name;
    uint64_t size, alignment;
    bool constant;          /* .const rather than .global */
    bool managed;           /* .attribute(.managed) */
    bool external;          /* .extern: defined elsewhere, no storage */
    bool visible;           /* .visible, .weak or .common: other images of a link see it */
    bool weak;              /* .weak or .common: another image may define it too */
    bool common;            /* .common: as large as the largest definition */
    unsigned part;          /* after a link: which input defines it */
    unsigned char *initial; /* `initial_size` bytes, the rest is zero; NULL for none */
    uint64_t initial_size;
    struct sg_relocation *relocations;
    size_t relocation_count;
};

/* In an input of a link: a function with a body, or one that is called. */
struct sg_image_code {
    char *name;
    bool defined;     /* it has a body here */
    bool shared;      /* other inputs see it, or define it */
    bool needed;      /* even if uncalled: an entry, or a declaration that promises a body */
    size_t last_call; /* index in the image's calls + 1; 0: none */
};

struct sg_image_call {
    size_t to;   /* the function called */
    size_t next; /* next call by the same caller + 1; 0: none */
};

/* What the image was made from. A link produces an ELF, marked PTX if all its inputs were. */
enum sg_image_source { SG_IMAGE_PTX, SG_IMAGE_MACHINE };

struct sg_image {
    enum sg_image_source source;
    int ptx_version; /* 87 for .version 8.7; for machine code, the version it was compiled from, or 0 */
    int target;      /* 90 for sm_90; after a link, the newest that the inputs name */
    char target_suffix; /* 'a', 'f' or 0 */
    char *ptx;    /* the text, kept for an engine that runs it; after a link, of its only input */
    char **parts; /* after a link of several inputs: the text of each, "" of machine code */
    size_t part_count;
    struct sg_ptx_outline *outline; /* where things are in the text, one block; NULL when unknown */
    unsigned char *machine;         /* the ELF, kept likewise; NULL for text */
    size_t machine_size;
    char *refused_text; /* machine code of a fatbin: why the text beside it was refused, or NULL */
    bool to_be_linked;  /* machine code that is input for linkers */
    bool unplaced;      /* such code, with variables that hold addresses of others */
    bool unoptimized;   /* products and sums of its text are not contracted */
    struct sg_image_function *functions; /* entries (kernels), in the order of the image */
    size_t function_count;
    struct sg_image_variable *variables;
    size_t variable_count;
    char **textures, **surfaces; /* names of .texref and .surfref */
    size_t texture_count, surface_count;
    char **undefined; /* external functions that a link must provide */
    size_t undefined_count;
    char **exported; /* device functions that other images of a link may name */
    size_t exported_count;
    char **weak; /* likewise, but others may define them too */
    size_t weak_count;
    struct sg_image_code *code; /* in an input of a link: who calls whom */
    size_t code_count;
    struct sg_image_call *calls;
    size_t call_count;
};

/* The newest version of PTX that the reader knows: 95 for 9.5. */
#define SG_PTX_NEWEST 95

/* Messages for CU_JIT_INFO_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER, truncated to fit. */
struct sg_image_log {
    char *info, *error;           /* may be NULL */
    size_t info_size, error_size; /* capacity */
    size_t info_used, error_used; /* written, without the final zero; all once truncated */
    int newer_ptx; /* a version that was refused because it is newer than allowed: 99 for 9.9 */
};

struct sg_image_options {
    int architecture;     /* compute capability of the device: 90; -1 to accept any */
    char suffix;          /* architecture-specific code that the device runs: 'a', or 0 */
    int newest_ptx;       /* 90 for 9.0: a newer .version is UNSUPPORTED_PTX_VERSION */
    bool prefer_machine;  /* CU_PREFER_BINARY, the default, rather than CU_PREFER_PTX */
    bool either;          /* where text is preferred: machine code, if the text is refused */
    bool wrapped;         /* accept a fatbin wrapper, as libraries do; modules refuse it */
    bool relocatable;     /* input of a link: external functions and variables are allowed */
    unsigned most_shared; /* bytes that a function of PTX may declare; 0 for no limit */
    const char *name;     /* the input's name in messages; may be NULL */
};

/* Frees what it holds; it is as new then. */
void sg_image_clear(struct sg_image *image);
/* NULL is allowed. */
void sg_image_free(struct sg_image *image);

const struct sg_image_function *sg_image_find_function(const struct sg_image *image,
                                                       const char *name);
/* If several inputs of a link have one, the visible one, else the first: recorded. */
const struct sg_image_variable *sg_image_find_variable(const struct sg_image *image,
                                                       const char *name);

#endif
