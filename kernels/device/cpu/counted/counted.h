/* The counters for programs that hold the plain ladder, such as bench: the library
 * tilegate_counters, whose own copies of everything stay inside it. One thread at a time. */
#ifndef TILEGATE_COUNTED_H
#define TILEGATE_COUNTED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Counts one case, named as in `Case` of count.hpp, and hands each counter to `visit`. Returns
 * null, or what went wrong, valid until the next call. */
__attribute__((visibility("default"))) const char* tilegate_count_case(
    const char* name, void (*visit)(void* context, const char* counter, double value),
    void* context);

#ifdef __cplusplus
}
#endif

#endif
