/* PTX that Triton has made, of tests/fixtures/triton: make.py there says how. */
#ifndef CONFORMANCE_TRITON_TEXTS_H
#define CONFORMANCE_TRITON_TEXTS_H

#define TRITON_TEXTS(X)                                                                            \
    X(add, "add-80")                                                                               \
    X(softmax, "softmax-80")                                                                       \
    X(softmax_90, "softmax-90")                                                                    \
    X(product_half, "product_half-80")                                                             \
    X(product_half_90, "product_half-90")                                                          \
    X(product_bf16, "product_bf16-80")                                                             \
    X(product_bf16_90, "product_bf16-90")                                                          \
    X(product_tf32, "product_tf32-80")                                                             \
    X(histogram, "histogram-80")                                                                   \
    X(ticket, "ticket-80")                                                                         \
    X(scan, "scan-80")                                                                             \
    X(normalize, "normalize-80")                                                                   \
    X(transpose, "transpose-80")                                                                   \
    X(attention, "attention-80")                                                                   \
    X(attention_90, "attention-90")

/* Each ends with a zero. Its first line has the kernel's name, threads and shared memory. */
#define TRITON_TEXT_DECLARED(name, file) extern const char triton_##name[];
TRITON_TEXTS(TRITON_TEXT_DECLARED)
#undef TRITON_TEXT_DECLARED

#endif
