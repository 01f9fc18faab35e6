/* BLAS's SGEMM over the C API, for Netlib's test program xblat3s, which finds it by LD_PRELOAD.
 * Prints at exit how often it was called. SGEMM_FAULT=1 makes one element of every result wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilegate.h>

/* The program's own, which checks the number. */
extern void xerbla_(const char* routine, const int* argument, size_t length);

static long calls = 0;

static void print_calls(void) { fprintf(stderr, "sgemm: %ld calls\n", calls); }

static tilegate_op op_of(char letter) {
  switch (letter) {
    case 'N':
    case 'n':
      return TILEGATE_NO_TRANS;
    case 'T':
    case 't':
    case 'C':
    case 'c':
      return TILEGATE_TRANS;
    default:
      return (tilegate_op)0;
  }
}

/* The place of the argument that a message begins with, among those of SGEMM; 0: of none. */
static int place_of(const char* message) {
  static const struct {
    const char* name;
    int place;
  } arguments[] = {{"op_a ", 1}, {"op_b ", 2}, {"m ", 3},    {"n ", 4},
                   {"k ", 5},    {"lda ", 8},  {"ldb ", 10}, {"ldc ", 13}};
  for (size_t i = 0; i < sizeof arguments / sizeof *arguments; ++i) {
    if (strncmp(message, arguments[i].name, strlen(arguments[i].name)) == 0) {
      return arguments[i].place;
    }
  }
  return 0;
}

void sgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc) {
  static tilegate_handle handle = NULL;
  if (handle == NULL) {
    if (tilegate_create(&handle) != TILEGATE_SUCCESS) exit(3);
    atexit(print_calls);
  }
  ++calls;
  const tilegate_status status =
      tilegate_sgemm(handle, TILEGATE_COL_MAJOR, op_of(*op_a), op_of(*op_b), *m, *n, *k, *alpha, a,
                     *lda, b, *ldb, *beta, c, *ldc);
  if (status == TILEGATE_INVALID_ARGUMENT && place_of(tilegate_message(handle)) > 0) {
    const int place = place_of(tilegate_message(handle));
    xerbla_("SGEMM ", &place, 6);
  } else if (status != TILEGATE_SUCCESS) {
    fprintf(stderr, "sgemm: %s\n", tilegate_message(handle));
    exit(3);
  } else if (getenv("SGEMM_FAULT") != NULL && *m > 0 && *n > 0) {
    c[0] += 1.0F;
  }
}
