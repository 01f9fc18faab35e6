// The C API over the stage Sgemm. No C++ exception leaves it.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include <tilegate.h>

#include <tilegate/prepared.hpp>
#include <tilegate/stage.hpp>

#include "plan_cache.hpp"

using tilegate::Math;
using tilegate::Op;
using tilegate::Operands;
using tilegate::Plan;
using tilegate::PreparedOperand;
using tilegate::Problem;
using tilegate::Status;

namespace {

constexpr std::uintptr_t kWorkspaceAlignment = 16;

}  // namespace

struct tilegate_context {
  tilegate::Stream stream = nullptr;
  Math math = Math::fp32;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0, workspace_limit = tilegate::kNoWorkspaceLimit;
  tilegate::PlanCache plans;
  std::string message;
};

struct tilegate_prepared_operand {
  tilegate_order order;
  PreparedOperand operand;
  tilegate::PlanCache plans = {};
};

namespace {

tilegate_status code_of(const Status& status) {
  switch (status.code()) {
    case Status::Code::kOk:
      return TILEGATE_SUCCESS;
    case Status::Code::kInvalidArgument:
      return TILEGATE_INVALID_ARGUMENT;
    case Status::Code::kUnsupported:
      return TILEGATE_UNSUPPORTED;
    case Status::Code::kDeviceError:
      return TILEGATE_DEVICE_ERROR;
  }
  return TILEGATE_INTERNAL_ERROR;
}

// Runs `body(context)`, stores its message in the context, and turns exceptions into status codes.
template <typename Body>
tilegate_status guarded(tilegate_handle handle, Body body) noexcept {
  if (handle == nullptr) return TILEGATE_INVALID_ARGUMENT;
  try {
    handle->message.clear();
    const Status status = body(*handle);
    if (!status.ok()) handle->message = status.message();
    return code_of(status);
  } catch (const std::bad_alloc&) {
    return TILEGATE_OUT_OF_MEMORY;
  } catch (...) {
    return TILEGATE_INTERNAL_ERROR;
  }
}

// The arguments of a call.
struct Call {
  tilegate_order order;
  tilegate_op op_a, op_b;
  std::int64_t m, n, k;
  float alpha;
  const float* a;
  std::int64_t lda, stride_a;
  const float* b;
  std::int64_t ldb, stride_b;
  float beta;
  const float* c;
  std::int64_t ldc, stride_c;
  std::int64_t batch;
};

bool is_op(tilegate_op op) { return op == TILEGATE_NO_TRANS || op == TILEGATE_TRANS; }

// `width`: elements of a stored row, or with column-major order of a stored column.
Status check_ld(const char* name, std::int64_t ld, tilegate_order order, std::int64_t width) {
  if (ld >= width) return {};
  return Status::invalid_argument(name, std::string(name) + " = " + std::to_string(ld) +
                                            " is shorter than a " +
                                            (order == TILEGATE_ROW_MAJOR ? "row" : "column") +
                                            " of " + std::to_string(width) + " elements");
}

// Checks that need the caller's argument names: Problem::check sees swapped operands for
// column-major order.
Status check(const Call& call) {
  if (call.order != TILEGATE_ROW_MAJOR && call.order != TILEGATE_COL_MAJOR) {
    return Status::invalid_argument("order",
                                    "order is neither TILEGATE_ROW_MAJOR nor "
                                    "TILEGATE_COL_MAJOR");
  }
  for (const auto& [name, op] : {std::pair{"op_a", call.op_a}, std::pair{"op_b", call.op_b}}) {
    if (is_op(op)) continue;
    return Status::invalid_argument(
        name, std::string(name) + " is neither TILEGATE_NO_TRANS nor TILEGATE_TRANS");
  }
  for (const auto& [name, extent] : {std::pair{"m", call.m}, std::pair{"n", call.n},
                                     std::pair{"k", call.k}, std::pair{"batch", call.batch}}) {
    if (extent >= 0) continue;
    return Status::invalid_argument(
        name, std::string(name) + " = " + std::to_string(extent) + " is negative");
  }
  const bool by_rows = call.order == TILEGATE_ROW_MAJOR;
  const auto width_of = [&](tilegate_op op, std::int64_t rows, std::int64_t cols) {
    return by_rows == (op == TILEGATE_NO_TRANS) ? cols : rows;
  };
  for (const auto& [name, ld, width] :
       {std::tuple{"lda", call.lda, width_of(call.op_a, call.m, call.k)},
        std::tuple{"ldb", call.ldb, width_of(call.op_b, call.k, call.n)},
        std::tuple{"ldc", call.ldc, width_of(TILEGATE_NO_TRANS, call.m, call.n)}}) {
    if (Status s = check_ld(name, ld, call.order, width); !s.ok()) return s;
  }
  for (const auto& [name, pointer] :
       {std::pair{"a", call.a}, std::pair{"b", call.b}, std::pair{"c", call.c}}) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % alignof(float) == 0) continue;
    return Status::invalid_argument(name, std::string(name) + " is not 4-byte aligned");
  }
  return {};
}

Status check_pointers(const Call& call) {
  if (call.m == 0 || call.n == 0 || call.batch == 0) return {};
  const bool reads_a_and_b = call.alpha != 0.0F && call.k != 0;
  for (const auto& [name, pointer, is_used] :
       {std::tuple{"a", call.a, reads_a_and_b}, std::tuple{"b", call.b, reads_a_and_b},
        std::tuple{"c", call.c, true}}) {
    if (is_used && pointer == nullptr) {
      return Status::invalid_argument(name, std::string(name) + " is a null pointer");
    }
  }
  return {};
}

// A column-major C is a row-major Cᵀ = op(B)ᵀ·op(A)ᵀ: the operands are swapped, and no data moves.
Call by_rows(const Call& call) {
  if (call.order == TILEGATE_ROW_MAJOR) return call;
  return {.order = TILEGATE_ROW_MAJOR,
          .op_a = call.op_b,
          .op_b = call.op_a,
          .m = call.n,
          .n = call.m,
          .k = call.k,
          .alpha = call.alpha,
          .a = call.b,
          .lda = call.ldb,
          .stride_a = call.stride_b,
          .b = call.a,
          .ldb = call.lda,
          .stride_b = call.stride_a,
          .beta = call.beta,
          .c = call.c,
          .ldc = call.ldc,
          .stride_c = call.stride_c,
          .batch = call.batch};
}

Problem problem_of(const Call& call, Math math) {
  return {.shape = {call.m, call.n, call.k},
          .op_a = call.op_a == TILEGATE_TRANS ? Op::kT : Op::kN,
          .op_b = call.op_b == TILEGATE_TRANS ? Op::kT : Op::kN,
          .lda = call.lda,
          .ldb = call.ldb,
          .ldc = call.ldc,
          .batch = call.batch,
          .stride_a = call.stride_a,
          .stride_b = call.stride_b,
          .stride_c = call.stride_c,
          .offset_bytes = {tilegate::offset_of(call.a), tilegate::offset_of(call.b),
                           tilegate::offset_of(call.c)},
          .alpha = call.alpha,
          .beta = call.beta,
          .math = math};
}

// The text, which ends in a name; A's instead of B's, or the other way round.
std::string swapped(std::string text) {
  const bool ends_in_operand = text.size() == 1 || !std::isalpha(text[text.size() - 2]);
  if (ends_in_operand && text.back() == 'a') {
    text.back() = 'b';
  } else if (ends_in_operand && text.back() == 'b') {
    text.back() = 'a';
  }
  return text;
}

// Where the order is by columns, a plan has A and B swapped. Its messages begin with the argument
// at fault; or C or the workspace overlaps one, which they end with.
Status in_words_of(const Call& call, const Status& status) {
  if (call.order == TILEGATE_ROW_MAJOR || status.code() != Status::Code::kInvalidArgument) {
    return status;
  }
  std::string message = status.message();
  const std::string& argument = status.argument();
  if (message.find(" overlaps ") != std::string::npos) {
    return Status::invalid_argument(argument, swapped(message));
  }
  const std::string rows = " rows of leading dimension";
  if (const std::size_t at = message.find(rows); at != std::string::npos) {
    message.replace(at, rows.size(), " columns of leading dimension");
  }
  if (message.starts_with(argument + ' ')) message.replace(0, argument.size(), swapped(argument));
  return Status::invalid_argument(swapped(argument), message);
}

// The plan for the call, new or cached by the handle or the prepared operand. `prepared`: may be
// null.
const Plan& plan_of(tilegate_context& context, const Call& call, tilegate_prepared prepared) {
  const Problem problem = problem_of(by_rows(call), context.math);
  const std::size_t limit = context.workspace_limit;
  if (prepared == nullptr) return context.plans.find(problem, limit);
  return prepared->plans.find(problem, limit,
                              [&] { return prepared->operand.plan(problem, {}, limit); });
}

Status check_not_null(const char* name, const void* pointer) {
  if (pointer != nullptr) return {};
  return Status::invalid_argument(name, std::string(name) + " is a null pointer");
}

// In the other order A and B change places.
Status check_prepared(tilegate_prepared prepared, tilegate_order order) {
  if (Status s = check_not_null("prepared", prepared); !s.ok()) return s;
  if (order == prepared->order) return {};
  return Status::invalid_argument("order", "order differs from that of tilegate_prepare");
}

Status workspace_bytes(tilegate_context& context, const Call& call, std::size_t* bytes,
                       tilegate_prepared prepared = nullptr) {
  if (Status s = check_not_null("bytes", bytes); !s.ok()) return s;
  if (Status s = check(call); !s.ok()) return s;
  const Plan& plan = plan_of(context, call, prepared);
  *bytes = plan.ok() ? plan.workspace_bytes() : 0;
  return in_words_of(call, plan.status());
}

Status multiply(tilegate_context& context, const Call& call, float* c,
                tilegate_prepared prepared = nullptr) {
  if (Status s = check(call); !s.ok()) return s;
  if (Status s = check_pointers(call); !s.ok()) return s;
  if (Status s = context.plans.prepare(); !s.ok()) return s;
  const Plan& plan = plan_of(context, call, prepared);
  const Call rows = by_rows(call);
  const Operands operands{.a = rows.a,
                          .b = rows.b,
                          .c = c,
                          .workspace = context.workspace,
                          .workspace_bytes = context.workspace_bytes};
  return in_words_of(call, plan.launch(operands, context.stream));
}

// An operand to be prepared, as that of a call with one row or column of the other operand.
struct ToPrepare {
  Call call;
  PreparedOperand operand;
};

Status describe(tilegate_order order, tilegate_operand operand, tilegate_op op, std::int64_t extent,
                std::int64_t k, const float* from, std::int64_t ld, int is_checked,
                ToPrepare* described) {
  if (operand != TILEGATE_OPERAND_A && operand != TILEGATE_OPERAND_B) {
    return Status::invalid_argument("operand",
                                    "operand is neither TILEGATE_OPERAND_A nor TILEGATE_OPERAND_B");
  }
  const bool is_a = operand == TILEGATE_OPERAND_A;
  const std::int64_t long_enough = std::max<std::int64_t>({k, extent, 1});
  Call& call = described->call;
  call = {.order = order,
          .op_a = is_a ? op : TILEGATE_NO_TRANS,
          .op_b = is_a ? TILEGATE_NO_TRANS : op,
          .m = is_a ? extent : 1,
          .n = is_a ? 1 : extent,
          .k = k,
          .alpha = 1.0F,
          .a = is_a ? from : nullptr,
          .lda = is_a ? ld : long_enough,
          .stride_a = 0,
          .b = is_a ? nullptr : from,
          .ldb = is_a ? long_enough : ld,
          .stride_b = 0,
          .beta = 0.0F,
          .c = nullptr,
          .ldc = long_enough,
          .stride_c = 0,
          .batch = 1};
  if (Status s = check(call); !s.ok()) return s;
  described->operand = PreparedOperand(
      problem_of(by_rows(call), Math::fp32_split),
      is_a == (order == TILEGATE_ROW_MAJOR) ? tilegate::Operand::kA : tilegate::Operand::kB,
      tilegate::device::current(), is_checked != 0);
  return in_words_of(call, described->operand.status());
}

}  // namespace

extern "C" {

int tilegate_version(void) { return TILEGATE_VERSION; }

const char* tilegate_device_name(void) {
  try {
    return tilegate::device::current().name.c_str();
  } catch (...) {
    return "none";
  }
}

const char* tilegate_status_string(tilegate_status status) {
  switch (status) {
    case TILEGATE_SUCCESS:
      return "success";
    case TILEGATE_INVALID_ARGUMENT:
      return "invalid argument";
    case TILEGATE_UNSUPPORTED:
      return "not supported on this device";
    case TILEGATE_DEVICE_ERROR:
      return "the device reported an error";
    case TILEGATE_OUT_OF_MEMORY:
      return "out of host memory";
    case TILEGATE_INTERNAL_ERROR:
      return "internal error";
  }
  return "unknown status";
}

tilegate_status tilegate_create(tilegate_handle* handle) {
  if (handle == nullptr) return TILEGATE_INVALID_ARGUMENT;
  *handle = new (std::nothrow) tilegate_context;
  return *handle == nullptr ? TILEGATE_OUT_OF_MEMORY : TILEGATE_SUCCESS;
}

void tilegate_destroy(tilegate_handle handle) { delete handle; }

const char* tilegate_message(tilegate_handle handle) {
  return handle == nullptr ? "handle is a null pointer" : handle->message.c_str();
}

tilegate_status tilegate_set_stream(tilegate_handle handle, struct CUstream_st* stream) {
  return guarded(handle, [&](tilegate_context& context) -> Status {
    context.stream = stream;
    return {};
  });
}

tilegate_status tilegate_set_math(tilegate_handle handle, tilegate_math math) {
  return guarded(handle, [&](tilegate_context& context) -> Status {
    if (math != TILEGATE_MATH_FP32 && math != TILEGATE_MATH_FP32_SPLIT) {
      return Status::invalid_argument("math",
                                      "math is neither TILEGATE_MATH_FP32 nor "
                                      "TILEGATE_MATH_FP32_SPLIT");
    }
    context.math = math == TILEGATE_MATH_FP32 ? Math::fp32 : Math::fp32_split;
    return {};
  });
}

tilegate_status tilegate_set_workspace(tilegate_handle handle, void* workspace, size_t bytes) {
  return guarded(handle, [&](tilegate_context& context) -> Status {
    if (workspace == nullptr && bytes > 0) {
      return Status::invalid_argument("workspace", "workspace is a null pointer");
    }
    if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
      return Status::invalid_argument("workspace", "workspace is not 16-byte aligned");
    }
    context.workspace = workspace;
    context.workspace_bytes = bytes;
    return {};
  });
}

tilegate_status tilegate_set_workspace_limit(tilegate_handle handle, size_t bytes) {
  return guarded(handle, [&](tilegate_context& context) -> Status {
    context.workspace_limit = bytes;
    return {};
  });
}

tilegate_status tilegate_sgemm(tilegate_handle handle, tilegate_order order, tilegate_op op_a,
                               tilegate_op op_b, int64_t m, int64_t n, int64_t k, float alpha,
                               const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
                               float* c, int64_t ldc) {
  return tilegate_sgemm_strided_batched(handle, order, op_a, op_b, m, n, k, alpha, a, lda, 0, b,
                                        ldb, 0, beta, c, ldc, 0, 1);
}

tilegate_status tilegate_sgemm_strided_batched(tilegate_handle handle, tilegate_order order,
                                               tilegate_op op_a, tilegate_op op_b, int64_t m,
                                               int64_t n, int64_t k, float alpha, const float* a,
                                               int64_t lda, int64_t stride_a, const float* b,
                                               int64_t ldb, int64_t stride_b, float beta, float* c,
                                               int64_t ldc, int64_t stride_c, int64_t batch) {
  return guarded(handle, [&](tilegate_context& context) {
    return multiply(context,
                    {order, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                     ldc, stride_c, batch},
                    c);
  });
}

tilegate_status tilegate_sgemm_workspace_bytes(tilegate_handle handle, tilegate_order order,
                                               tilegate_op op_a, tilegate_op op_b, int64_t m,
                                               int64_t n, int64_t k, float alpha, const float* a,
                                               int64_t lda, const float* b, int64_t ldb, float beta,
                                               const float* c, int64_t ldc, size_t* bytes) {
  return tilegate_sgemm_strided_batched_workspace_bytes(
      handle, order, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1, bytes);
}

tilegate_status tilegate_sgemm_strided_batched_workspace_bytes(
    tilegate_handle handle, tilegate_order order, tilegate_op op_a, tilegate_op op_b, int64_t m,
    int64_t n, int64_t k, float alpha, const float* a, int64_t lda, int64_t stride_a,
    const float* b, int64_t ldb, int64_t stride_b, float beta, const float* c, int64_t ldc,
    int64_t stride_c, int64_t batch, size_t* bytes) {
  return guarded(handle, [&](tilegate_context& context) {
    return workspace_bytes(context,
                           {order, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,
                            beta, c, ldc, stride_c, batch},
                           bytes);
  });
}

tilegate_status tilegate_prepare_bytes(tilegate_handle handle, tilegate_order order,
                                       tilegate_operand operand, tilegate_op op, int64_t extent,
                                       int64_t k, const float* from, int64_t ld, int is_checked,
                                       size_t* bytes) {
  return guarded(handle, [&](tilegate_context& /*context*/) -> Status {
    if (Status s = check_not_null("bytes", bytes); !s.ok()) return s;
    ToPrepare described;
    Status status = describe(order, operand, op, extent, k, from, ld, is_checked, &described);
    if (status.ok()) *bytes = described.operand.bytes();
    return status;
  });
}

tilegate_status tilegate_prepare(tilegate_handle handle, tilegate_order order,
                                 tilegate_operand operand, tilegate_op op, int64_t extent,
                                 int64_t k, const float* from, int64_t ld, int is_checked,
                                 void* memory, size_t bytes, tilegate_prepared* prepared) {
  return guarded(handle, [&](tilegate_context& context) -> Status {
    if (Status s = check_not_null("prepared", static_cast<const void*>(prepared)); !s.ok())
      return s;
    ToPrepare described;
    Status status = describe(order, operand, op, extent, k, from, ld, is_checked, &described);
    if (!status.ok()) return status;
    if (Status s = context.plans.prepare(); !s.ok()) return s;
    auto made = std::make_unique<tilegate_prepared_operand>(order, described.operand);
    status = made->operand.prepare(from, memory, bytes, context.stream);
    if (status.ok()) *prepared = made.release();
    return in_words_of(described.call, status);
  });
}

void tilegate_destroy_prepared(tilegate_prepared prepared) { delete prepared; }

tilegate_status tilegate_sgemm_prepared(tilegate_handle handle, tilegate_prepared prepared,
                                        tilegate_order order, tilegate_op op_a, tilegate_op op_b,
                                        int64_t m, int64_t n, int64_t k, float alpha,
                                        const float* a, int64_t lda, const float* b, int64_t ldb,
                                        float beta, float* c, int64_t ldc) {
  return guarded(handle, [&](tilegate_context& context) {
    if (Status s = check_prepared(prepared, order); !s.ok()) return s;
    return multiply(context,
                    {order, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1},
                    c, prepared);
  });
}

tilegate_status tilegate_sgemm_prepared_workspace_bytes(
    tilegate_handle handle, tilegate_prepared prepared, tilegate_order order, tilegate_op op_a,
    tilegate_op op_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
    const float* b, int64_t ldb, float beta, const float* c, int64_t ldc, size_t* bytes) {
  return guarded(handle, [&](tilegate_context& context) {
    if (Status s = check_prepared(prepared, order); !s.ok()) return s;
    return workspace_bytes(
        context, {order, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1},
        bytes, prepared);
  });
}

}  // extern "C"
