#include "softgpu/core/chapter.h"

#include "softgpu/core/text.h"

static const struct sg_chapter *const *chapters;
static size_t chapter_count;

void sg_chapters_set(const struct sg_chapter *const *given, size_t count) {
    chapters = given;
    chapter_count = count;
}

void sg_chapters_dump(struct sg_text *text) {
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->settle)
            chapters[i]->settle();
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->dump)
            chapters[i]->dump(text);
}

void sg_chapters_leaks(struct sg_text *text) {
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->leaks) {
            sg_text_kind(text, chapters[i]->leak_kind);
            chapters[i]->leaks(text);
        }
}

CUresult sg_chapters_context_begin(struct sg_context *context) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < chapter_count && result == CUDA_SUCCESS; i++)
        if (chapters[i]->context_begin)
            result = chapters[i]->context_begin(context);
    return result;
}

void sg_chapters_context_end(struct sg_context *context, enum sg_end_step step) {
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->context_end[step])
            chapters[i]->context_end[step](context);
}

void sg_chapters_context_free(struct sg_context *context) {
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->context_free)
            chapters[i]->context_free(context);
}

void sg_chapters_synchronized(struct sg_context *context, struct sg_stream *stream) {
    for (size_t i = 0; i < chapter_count; i++)
        if (chapters[i]->synchronized)
            chapters[i]->synchronized(context, stream);
}

uint64_t sg_chapters_reclaim(int device, uint64_t bytes) {
    uint64_t given = 0;
    for (size_t i = chapter_count; i-- > 0 && given < bytes;)
        if (chapters[i]->reclaim)
            given += chapters[i]->reclaim(device, bytes - given);
    return given;
}
