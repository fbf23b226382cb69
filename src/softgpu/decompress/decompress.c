#include "softgpu/decompress/decompress.h"

#include <limits.h>
#ifndef SG_WITHOUT_LZ4
#include <lz4.h>
#endif

#ifndef SG_WITHOUT_ZLIB
#include <zlib.h>

/* DEFLATE without the header and the checksum of zlib and gzip. */
static bool inflate_raw(const void *from, size_t size, void *to, size_t room, size_t *written) {
    z_stream stream = {0};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return false;
    stream.next_in = (z_const Bytef *)(uintptr_t)from;
    stream.avail_in = (uInt)size;
    stream.next_out = to;
    stream.avail_out = (uInt)room;
    int result = inflate(&stream, Z_FINISH);
    *written = stream.total_out;
    inflateEnd(&stream);
    return result == Z_STREAM_END;
}
#else
static bool inflate_raw(const void *from, size_t size, void *to, size_t room, size_t *written) {
    (void)from, (void)size, (void)to, (void)room, (void)written;
    return false;
}
#endif

#ifndef SG_WITHOUT_LZ4
static bool decode_lz4(const void *from, size_t size, void *to, size_t room, size_t *written) {
    int result = LZ4_decompress_safe(from, to, (int)size, (int)room);
    *written = result < 0 ? 0 : (size_t)result;
    return result >= 0;
}
#else
static bool decode_lz4(const void *from, size_t size, void *to, size_t room, size_t *written) {
    (void)from, (void)size, (void)to, (void)room, (void)written;
    return false;
}
#endif

bool sg_decompress(CUmemDecompressAlgorithm algorithm, const void *from, size_t size, void *to,
                   size_t room, size_t *written) {
    if (size > INT_MAX)
        return false;
    if (room > INT_MAX)
        room = INT_MAX;
    if (algorithm == CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE)
        return inflate_raw(from, size, to, room, written);
    if (algorithm == CU_MEM_DECOMPRESS_ALGORITHM_LZ4)
        return decode_lz4(from, size, to, room, written);
    return false;
}
