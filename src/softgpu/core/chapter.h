/*
 * Chapters: what each folder above gives to those below it, so that nothing below calls upwards. A
 * folder that has something to give defines one `const struct sg_chapter`; entry/chapters.c, on the
 * top floor, lists them all. Everything here wants the lock, but sg_chapters_set.
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

/* Members are NULL where the chapter has nothing to do. */
struct sg_chapter {
    /* Its objects in the state dump: canonical lines, sorted, addresses as recorded in design. */
    void (*dump)(struct sg_text *text);
    /* A line for each live object that the application should have freed. */
    void (*leaks)(struct sg_text *text);
    /* Notices what is complete, so that the moment of noticing is no part of the state. */
    void (*settle)(void);

    /* What a context has from its beginning; whole or nothing. */
    CUresult (*context_begin)(struct sg_context *context);
    void (*context_end[SG_END_STEPS])(struct sg_context *context);
    /* The object goes, after its end. */
    void (*context_free)(struct sg_context *context);

    /* A stream, event or context synchronize succeeded: what is complete in `stream` (NULL: in any
     * stream of the context) is known to the host. Cheap when there is nothing to do. */
    void (*synchronized)(struct sg_context *context, struct sg_stream *stream);
    /* Physical memory of `device` (-1: host memory) is short of `bytes`: gives back what it holds
     * and nothing uses, without waiting, until that much is free. Returns the bytes given back. */
    uint64_t (*reclaim)(int device, uint64_t bytes);
};

/* Once, before the first call of the driver; both stay the caller's, and as they are. */
void sg_chapters_set(const struct sg_chapter *const *chapters, size_t count);

void sg_chapters_dump(struct sg_text *text);
void sg_chapters_leaks(struct sg_text *text);
/* When a chapter refuses, the others are undone by the end of the context. */
CUresult sg_chapters_context_begin(struct sg_context *context);
void sg_chapters_context_end(struct sg_context *context, enum sg_end_step step);
void sg_chapters_context_free(struct sg_context *context);
void sg_chapters_synchronized(struct sg_context *context, struct sg_stream *stream);
/* The upper floors first, which build on what the lower ones hold. */
uint64_t sg_chapters_reclaim(int device, uint64_t bytes);

#endif
