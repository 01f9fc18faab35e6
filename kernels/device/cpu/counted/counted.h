/* The counters for programs that link the uninstrumented ladder, such as bench: the library
 * tilegate_counters, which hides its copies of the same symbols. One thread at a time. */
#ifndef TILEGATE_COUNTED_H
#define TILEGATE_COUNTED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Counts one case, named as for `count` in count.hpp, and passes each counter to `visit`. Returns
 * null, or an error message that is valid until the next call. */
__attribute__((visibility("default"))) const char* tilegate_count_case(
    const char* name, void (*visit)(void* context, const char* counter, double value),
    void* context);

#ifdef __cplusplus
}
#endif

#endif
