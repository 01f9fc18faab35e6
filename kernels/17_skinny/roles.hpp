// Which operand is the big one, and the first kernel's task for a call.
#pragma once

#include <cstdint>

#include <tilegate/common/partial_sums.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/stage.hpp>

#include "config.cuh"

namespace tilegate::skinny {

struct Roles {
  bool short_is_m;
  std::int64_t s, x;
  Along along;         // of the big operand
  bool vector;         // it consists of whole vectors
  bool small_along_k;  // as in Task
};

inline Roles roles_of(const Problem& problem) {
  const Shape& shape = problem.shape;
  if (shape.m <= shape.n) {
    return {.short_is_m = true,
            .s = shape.m,
            .x = shape.n,
            .along = problem.op_b == Op::kN ? Along::kX : Along::kK,
            .vector = allows_vectors(problem, Operand::kB),
            .small_along_k = problem.op_a == Op::kN};
  }
  return {.short_is_m = false,
          .s = shape.n,
          .x = shape.m,
          .along = problem.op_a == Op::kN ? Along::kK : Along::kX,
          .vector = allows_vectors(problem, Operand::kA),
          .small_along_k = problem.op_b == Op::kT};
}

// With more than one split the result is the partial sums.
inline Task make_task(const KernelArgs& args, const Roles& roles, int splits, int depth) {
  const bool rows = roles.short_is_m;
  Task task{.x = roles.x,
            .s = roles.s,
            .k = args.shape.k,
            .big = rows ? args.b : args.a,
            .ld_big = rows ? args.ldb : args.lda,
            .small = rows ? args.a : args.b,
            .ld_small = rows ? args.lda : args.ldb,
            .small_along_k = roles.small_along_k,
            .alpha = args.alpha,
            .beta = args.beta,
            .c = args.c,
            .stride_x = rows ? 1 : args.ldc,
            .stride_s = rows ? args.ldc : 1,
            .split_c = 0,
            .product_big = rows ? args.stride_b : args.stride_a,
            .product_small = rows ? args.stride_a : args.stride_b,
            .product_c = args.stride_c,
            .splits = splits,
            .depth = depth};
  if (splits > 1) {
    task.alpha = 1.0F;
    task.beta = 0.0F;
    task.c = static_cast<float*>(args.workspace);
    (rows ? task.stride_s : task.stride_x) = args.shape.n;
    task.split_c = partial_sums::elements(args.shape);
    task.product_c = splits * task.split_c;
  }
  return task;
}

}  // namespace tilegate::skinny
