/* Text from outside, before it goes to a terminal. */
#include "base/printable.h"

#include "test.h"

static void becomes(const char *text, const char *expected) {
    char shown[256];
    assert_int_equal(gm_printable(text, shown, sizeof shown), strlen(expected));
    assert_string_equal(shown, expected);
}

TEST(plain_text_is_unchanged) {
    becomes("", "");
    becomes("plain \\ \"text\" ~", "plain \\ \"text\" ~");
    becomes("gr\xc3\xbcn \xe6\x96\x87 \xf0\x9f\x98\x80",
            "gr\xc3\xbcn \xe6\x96\x87 \xf0\x9f\x98\x80");
}

TEST(control_characters_are_escaped) {
    becomes("a\x1b[2J\n\t\x7f", "a\\x1b[2J\\x0a\\x09\\x7f");
    becomes("\xc2\x9b"
            "31m",
            "\\xc2\\x9b31m");
    becomes("\xe2\x80\xae", "\\xe2\\x80\\xae");
}

TEST(invalid_utf8_bytes_are_escaped) {
    becomes("\xff", "\\xff");
    becomes("\xc3", "\\xc3");
    becomes("\xc0\xaf", "\\xc0\\xaf");
    becomes("\xed\xa0\x80", "\\xed\\xa0\\x80");
    becomes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    becomes("\xe2\x82z", "\\xe2\\x82z");
}

/* Nothing is written past the end, and no character is cut. */
TEST(text_is_truncated_between_characters) {
    char shown[8];
    memset(shown, '#', sizeof shown);
    assert_int_equal(gm_printable("abc\x1b", shown, 7), 3);
    assert_string_equal(shown, "abc");
    assert_int_equal(shown[7], '#');
    assert_int_equal(gm_printable("abc\xe6\x96\x87z", shown, 6), 3);
    assert_string_equal(shown, "abc");
    assert_int_equal(gm_printable("x", shown, 1), 0);
    assert_string_equal(shown, "");
}
