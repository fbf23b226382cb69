/*
 * Program images made by real tools, embedded in the program, so that a test needs no files where
 * it runs: the bytes of files in tests/fixtures/images, which make.py there generates.
 */
#ifndef IMAGES_H
#define IMAGES_H

/* Name, size in bytes, file. tests/CMakeLists.txt refuses a size that differs from the file's. */
#define IMAGES(X)                                                                                  \
    X(kernels_cubin, 27928, "kernels.cubin")    /* each kind of kernel and variable, for sm_90 */  \
    X(small_cubin, 4208, "small.cubin")         /* one kernel, for sm_90 */                        \
    X(other_cubin, 6256, "small-100.cubin")     /* for a newer architecture than an H200's */      \
    X(older_cubin, 3624, "small-80.cubin")      /* for an older architecture */                    \
    X(specific_cubin, 4208, "small-90a.cubin")  /* for sm_90a only */                              \
    X(small_fatbin, 4616, "small.fatbin")       /* for sm_90, and PTX text; compressed */          \
    X(plain_fatbin, 4776, "small-plain.fatbin") /* the same, not compressed */                     \
    X(ptx_fatbin, 344, "small-ptx.fatbin")      /* PTX text only */                                \
    X(other_fatbin, 6384, "small-100.fatbin")   /* nothing that an H200 can run */                 \
    X(part_cubin, 4120, "parts.cubin")          /* to be linked: what it calls is elsewhere */     \
    X(partly_cubin, 25016, "partly-90.cubin")   /* to be linked: some of it lacks nothing */       \
    X(pointing_cubin, 3800,                                                                        \
      "pointing-90.cubin")                      /* to be linked: the value of one is an address */ \
    X(caller_object, 2608, "caller.object")     /* a host object, calls into the archive */        \
    X(reaching_object, 2480, "reaching.object") /* another, which reaches more members */          \
    X(archive, 7868, "library.archive")         /* host objects: code, none, and a text */

#define IMAGE_DECLARED(name, size, file) extern const unsigned char image_##name[size];
IMAGES(IMAGE_DECLARED)
#undef IMAGE_DECLARED

#endif
