/*
 * Chapters: what each folder provides to the layers below it, so that no lower layer calls upwards.
 * A folder that has something to provide defines one `const struct sg_chapter`; entry/chapters.c,
 * in the top layer, lists them all. Everything here requires the lock, except sg_chapters_set.
 */
#ifndef SG_CORE_CHAPTER_H
#define SG_CORE_CHAPTER_H

#include <gpumem/cuda_api.h>
#include <stddef.h>
#include <stdint.h>

struct sg_context;
struct sg_stream;
struct sg_text;

/* What ends with a context, in this order; within a step in the order of the chapters. */
enum sg_end_step {
    SG_END_PARTS,      /* green contexts, which are whole contexts themselves */
    SG_END_STREAMS,    /* waits for all work: nothing runs in the context afterwards */
    SG_END_SAMPLERS,   /* texture and surface objects */
    SG_END_MODULES,    /* and their variables */
    SG_END_REFERENCES, /* to textures, which modules declare */
    SG_END_ARRAYS,
    SG_END_MEMORY, /* every range that belongs to it */
    SG_END_EXTERNAL,
    SG_END_STEPS
};

/* What SOFTGPU_FAIL_ON can choose among what was leaked: "leaks:memory", or all of it. */
enum sg_leak_kind {
    SG_LEAK_OTHER, /* contexts, textures, semaphores, notifications */
    SG_LEAK_MEMORY,
    SG_LEAK_MODULES, /* libraries and linkers, too */
    SG_LEAK_STREAMS, /* events, too */
    SG_LEAK_GRAPHS,
    SG_LEAK_KINDS
};
#define SG_LEAKS_ALL ((1u << SG_LEAK_KINDS) - 1)

/* Members are NULL where the chapter has nothing to do. */
struct sg_chapter {
    /* Writes its objects to the state dump: canonical lines, sorted, addresses as recorded in
     * design. */
    void (*dump)(struct sg_text *text);
    /* Writes a line for each live object that the application should have freed. */
    void (*leaks)(struct sg_text *text);
    enum sg_leak_kind leak_kind; /* of its lines, unless it says otherwise by sg_text_kind */
    /* Notices what is complete, so that the state does not depend on when it is noticed. */
    void (*settle)(void);

    /* Creates what a context has from the start; all of it or nothing. */
    CUresult (*context_begin)(struct sg_context *context);
    void (*context_end[SG_END_STEPS])(struct sg_context *context);
    /* The context object is freed, after its end. */
    void (*context_free)(struct sg_context *context);

    /* A stream, event or context synchronize succeeded: the host now knows what is complete in
     * `stream` (NULL: in any stream of the context). Must be cheap if there is nothing to do. */
    void (*synchronized)(struct sg_context *context, struct sg_stream *stream);
    /* Physical memory of `device` (-1: host memory) is short by `bytes`: gives back unused memory
     * that the chapter holds, without waiting, until that much is free. Returns the bytes given
     * back. */
    uint64_t (*reclaim)(int device, uint64_t bytes);
};

/* Called once, before the first driver call; the arrays remain the caller's and must not change. */
void sg_chapters_set(const struct sg_chapter *const *chapters, size_t count);

void sg_chapters_dump(struct sg_text *text);
void sg_chapters_leaks(struct sg_text *text);
/* If a chapter fails, ending the context undoes the others. */
CUresult sg_chapters_context_begin(struct sg_context *context);
void sg_chapters_context_end(struct sg_context *context, enum sg_end_step step);
void sg_chapters_context_free(struct sg_context *context);
void sg_chapters_synchronized(struct sg_context *context, struct sg_stream *stream);
/* Upper layers first, because they build on what the lower ones hold. */
uint64_t sg_chapters_reclaim(int device, uint64_t bytes);

#endif
