// What the C++ test programs check with: without exceptions too, and without a test library.
#pragma once
#include <cstdio>

inline int wrong = 0;

inline void expect(bool good, const char *what, const char *file, int line) {
    if (!good) {
        std::printf("%s:%d: not so: %s\n", file, line, what);
        wrong++;
    }
}

#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
