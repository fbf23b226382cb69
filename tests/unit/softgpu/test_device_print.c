/* What kernels print: every conversion against the host's own, and what a call returns. */
#include "kernel.h"

#include "softgpu/launch/device_print.h"

/* A call's arguments as compilers lay them out: each at a multiple of its size. */
struct buffer {
    unsigned char bytes[512];
    size_t used;
};

static void add_aligned(struct buffer *buffer, const void *value, size_t size, size_t align) {
    buffer->used = (buffer->used + align - 1) / align * align;
    assert_true(buffer->used + size <= sizeof buffer->bytes);
    memcpy(buffer->bytes + buffer->used, value, size);
    buffer->used += align > size ? align : size;
}

#define ADD(buffer, type, value)                                                                   \
    do {                                                                                           \
        type added_ = (value);                                                                     \
        add_aligned(buffer, &added_, sizeof added_, sizeof added_);                                \
    } while (0)

struct written {
    char text[4096];
    int result;
    size_t size;
};

/* Nothing is on the first page. */
static bool there(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    *low = 4096;
    *length = UINT64_MAX - 4096;
    return address >= 4096;
}

static void call(void *user, struct sg_device_call *device_call) {
    struct written *written = user;
    struct sg_print *print;
    assert_int_equal(device_call->function, SG_RUNTIME_VPRINTF);
    written->result = sg_print_record(device_call, &print);
    device_call->result = (uint32_t)written->result;
    if (!print)
        return;
    FILE *out = fmemopen(written->text, sizeof written->text, "w");
    assert_non_null(out);
    sg_print_write(print, out);
    fclose(out);
    written->size = sg_print_size(print);
    sg_print_free(print);
}

static struct written prints(const char *format, const struct buffer *buffer) {
    static const char text[] =
        KERNEL_HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                    ".visible .entry k(.param .u64 format, .param .u64 list, .param .u64 out) {\n"
                    ".reg .b64 %d<4>; .reg .b32 %r; ld.param.u64 %d1, [format];\n"
                    "ld.param.u64 %d2, [list]; ld.param.u64 %d3, [out];\n"
                    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2;\n"
                    "st.param.b64 [p0], %d1; st.param.b64 [p1], %d2;\n"
                    "call.uni (p2), vprintf, (p0, p1); ld.param.b32 %r, [p2]; }\n"
                    "st.global.b32 [%d3], %r; ret; }\n";
    struct written written = {.result = -99};
    int32_t out = 12345;
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1, 1, format, buffer->bytes, &out);
    kernel.launch.device_call = call;
    kernel.launch.extent = there;
    kernel.launch.user = &written;
    kernel_succeeds(&kernel);
    kernel_free(&kernel);
    assert_int_equal(out, written.result);
    return written;
}

static void expect(const char *format, const struct buffer *buffer, int result, const char *text) {
    struct written written = prints(format, buffer);
    if (written.result != result || strcmp(written.text, text) != 0)
        fail_msg("\"%s\" gives %d and \"%s\", not %d and \"%s\"", format, written.result,
                 written.text, result, text);
}

/* One value, and what the host's printf makes of it. */
#define LIKE_HOST(format, type, value)                                                             \
    do {                                                                                           \
        struct buffer buffer_ = {.used = 0};                                                       \
        char wanted_[512];                                                                         \
        ADD(&buffer_, type, value);                                                                \
        snprintf(wanted_, sizeof wanted_, format, value);                                          \
        expect(format, &buffer_, 1, wanted_);                                                      \
    } while (0)

TEST(integers_print_as_on_the_host) {
    LIKE_HOST("%d", int, -17);
    LIKE_HOST("<%+5i|", int, 42);
    LIKE_HOST("%u", unsigned, 4000000000U);
    LIKE_HOST("%#x %%", unsigned, 0xbeefU);
    LIKE_HOST("%08X", unsigned, 0xbeefU);
    LIKE_HOST("%#o", unsigned, 8U);
    LIKE_HOST("% d", int, 7);
    LIKE_HOST("%-8dX", int, -7);
    LIKE_HOST("%.5d", int, 7);
    LIKE_HOST("%8.3d", int, 7);
    LIKE_HOST("%ld", long, -5000000000L);
    LIKE_HOST("%lld", long long, -5000000000LL);
    LIKE_HOST("%llu", unsigned long long, 18446744073709551615ULL);
    LIKE_HOST("%lx", unsigned long, 0x123456789abcdefUL);
    LIKE_HOST("%hd", int, (short)-3);
    LIKE_HOST("%c", int, 'x');
    LIKE_HOST("%3c|", int, 'x');
    LIKE_HOST("%p", void *, (void *)0x7f0012345678);
    LIKE_HOST("%p", void *, NULL);
}

TEST(floats_print_as_on_the_host) {
    LIKE_HOST("%f", double, 3.25);
    LIKE_HOST("%F", double, 1e10);
    LIKE_HOST("%.3e", double, 123456.789);
    LIKE_HOST("%E", double, -0.0);
    LIKE_HOST("%g", double, 1e-10);
    LIKE_HOST("%#.3G", double, 1.0);
    LIKE_HOST("%a", double, 1.5);
    LIKE_HOST("%A", double, -1.5);
    LIKE_HOST("%10.2f|", double, 2.345);
    LIKE_HOST("%f", double, (double)__builtin_inff());
    LIKE_HOST("%lf", double, 2.5);
}

TEST(field_widths_come_from_arguments) {
    struct buffer buffer = {.used = 0};
    ADD(&buffer, int, 8);
    ADD(&buffer, double, 3.14159265);
    expect("<%*f>", &buffer, 2, "<3.141593>");
    buffer.used = 0;
    ADD(&buffer, int, -6);
    ADD(&buffer, int, 42);
    expect("<%*d>", &buffer, 2, "<42    >");
}

/* As recorded: they take no argument, and are printed as they stand; %hhd reads the format. */
TEST(conversions_unknown_to_the_h200_print_unchanged) {
    static const char *const formats[] = {"<%zu>", "<%jd>", "<%td>", "<%Lf>", "<%.*f>"};
    struct buffer buffer = {.used = 0};
    ADD(&buffer, long long, 7);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        expect(formats[i], &buffer, 0, formats[i]);
    expect("%hhd\n", &buffer, 0, "37\n");
}

TEST(strings_are_read_from_device_memory) {
    char text[] = "hello";
    struct buffer buffer = {.used = 0};
    ADD(&buffer, char *, text);
    ADD(&buffer, int, 5);
    ADD(&buffer, char *, NULL);
    expect("%s, %d, %s\n", &buffer, 3, "hello, 5, (null)\n");
    expect("<%8.3s>", &buffer, 1, "<     hel>");
    /* An address where nothing is: the call fails, and prints nothing. */
    buffer.used = 0;
    ADD(&buffer, uint64_t, 64);
    expect("%s", &buffer, -2, "");
}

TEST(arguments_of_different_sizes_are_aligned) {
    struct buffer buffer = {.used = 0};
    ADD(&buffer, int, 1);
    ADD(&buffer, double, 2.0);
    ADD(&buffer, int, 3);
    ADD(&buffer, long long, 4LL);
    ADD(&buffer, int, '5');
    ADD(&buffer, int, 6);
    expect("%d %g %d %lld %c %d", &buffer, 6, "1 2 3 4 5 6");
    assert_int_equal(prints("%d %g %d %lld %c %d", &buffer).size, 16 + 40);
}

/* As recorded on an H200: a vector takes no argument, and shows the bytes of the format. */
TEST(vector_conversions_print_the_bytes_after_the_arguments) {
    struct buffer buffer = {.used = 0};
    const float floats[4] = {1.0F, -2.5F, 0.0F, 3.0F};
    const int32_t ints[2] = {5, -6};
    add_aligned(&buffer, floats, 16, 16);
    add_aligned(&buffer, ints, 8, 8);
    expect("%v4hlf|%v2d\n", &buffer, 0,
           "3408821395392853075558400.000000,0.000000,0.000000,0.0000000,0\n");
    expect("%v2d", &buffer, 0, "1681028645,0");
    assert_int_equal(prints("%v2d", &buffer).size, 16);
    buffer.used = 0;
    ADD(&buffer, int, 7);
    expect("%d %v4hld.", &buffer, 1, "7 11876,0,0,0");
    expect("%d <%v4hl7.1f>", &buffer, 1, "7 <%v4hl7.1f>"); /* the width comes first */
    expect("%v5d", &buffer, 0, "%v5d");                    /* there are no vectors of five */
    /* What follows a vector is read from where it ended. */
    struct buffer doubles = {.used = 0};
    ADD(&doubles, double, 1.5);
    ADD(&doubles, double, 0.5);
    expect("%g %v2d %g", &doubles, 2, "1.5 0,1071644672 1.2051e-152");
}

TEST(printf_returns_the_argument_count_or_an_error) {
    struct buffer none = {.used = 0}, many = {.used = 0};
    expect("no arguments: 100%%\n", &none, 0, "no arguments: 100%\n");
    expect("", &none, 0, "");
    expect("%y %", &none, 0, "%y %"); /* no conversions */
    assert_int_equal(prints(NULL, &none).result, -1);
    assert_int_equal(prints((const char *)64, &none).result, -2);
    /* 32 arguments, and no more. */
    char format[256] = "";
    for (int i = 0; i < 33; i++) {
        strcat(format, "%d ");
        ADD(&many, int, i);
    }
    expect(format, &many, 32,
           "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 "
           "%d ");
}
