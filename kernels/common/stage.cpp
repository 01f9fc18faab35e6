// What every stage shares: the checks before a launch, and the registry's look-up.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>

namespace tilegate {
namespace {

constexpr std::int64_t kMaxElements = std::numeric_limits<std::int64_t>::max() / sizeof(float);

// Elements from the first to one past the last of a rows×cols matrix; nullopt: no address space
// holds it. Not for empty matrices.
std::optional<std::int64_t> extent(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  if (cols > kMaxElements || (ld > 0 && rows - 1 > (kMaxElements - cols) / ld)) return std::nullopt;
  return (rows - 1) * ld + cols;
}

Status check_size(const char* argument, std::int64_t value) {
  if (value >= 0) return {};
  return Status::invalid_argument(
      argument, std::string(argument) + " = " + std::to_string(value) + " is negative");
}

Status check_leading_dimension(const char* argument, std::int64_t ld, std::int64_t width) {
  if (ld >= width) return {};
  return Status::invalid_argument(argument, std::string(argument) + " = " + std::to_string(ld) +
                                                " is shorter than a row of " +
                                                std::to_string(width) + " elements");
}

struct Operand {
  const char* name;
  const float* data;
  std::int64_t rows, cols, ld;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(data); }
  // One past the last byte; only after check_operand has accepted the operand.
  std::uintptr_t end() const {
    return begin() + static_cast<std::uintptr_t>(*extent(rows, cols, ld)) * sizeof(float);
  }
};

Status check_operand(const Operand& operand) {
  const std::string name = operand.name;
  if (operand.data == nullptr) return Status::invalid_argument(name, name + " is a null pointer");
  if (operand.begin() % alignof(float) != 0) {
    return Status::invalid_argument(name, name + " is not 4-byte aligned");
  }
  const auto elements = extent(operand.rows, operand.cols, operand.ld);
  const auto room = (std::numeric_limits<std::uintptr_t>::max() - operand.begin()) / sizeof(float);
  if (!elements || static_cast<std::uintptr_t>(*elements) > room) {
    return Status::invalid_argument(
        name, name + " spans more than the address space: " + std::to_string(operand.rows) +
                  " rows of leading dimension " + std::to_string(operand.ld));
  }
  return {};
}

bool is_empty(const SgemmArgs& args) { return args.shape.m == 0 || args.shape.n == 0; }

bool reads_a_and_b(const SgemmArgs& args) { return args.alpha != 0.0F && args.shape.k != 0; }

Status check_sizes(const SgemmArgs& args) {
  const Shape& shape = args.shape;
  if (Status s = check_size("m", shape.m); !s.ok()) return s;
  if (Status s = check_size("n", shape.n); !s.ok()) return s;
  if (Status s = check_size("k", shape.k); !s.ok()) return s;
  if (Status s = check_leading_dimension("lda", args.lda, shape.k); !s.ok()) return s;
  if (Status s = check_leading_dimension("ldb", args.ldb, shape.n); !s.ok()) return s;
  return check_leading_dimension("ldc", args.ldc, shape.n);
}

Status check_operands(const SgemmArgs& args) {
  const Shape& shape = args.shape;
  const Operand c{"c", args.c, shape.m, shape.n, args.ldc};
  if (Status s = check_operand(c); !s.ok()) return s;
  if (!reads_a_and_b(args)) return {};
  for (const Operand& input : {Operand{"a", args.a, shape.m, shape.k, args.lda},
                               Operand{"b", args.b, shape.k, shape.n, args.ldb}}) {
    if (Status s = check_operand(input); !s.ok()) return s;
    if (c.begin() < input.end() && input.begin() < c.end()) {
      return Status::invalid_argument("c", std::string("c overlaps ") + input.name);
    }
  }
  return {};
}

Status check_device(const Requirements& needs) {
  const device::Properties& device = device::properties();
  if (!device.is_cuda && !needs.not_on_simt.empty()) {
    return Status::unsupported(std::string(needs.not_on_simt));
  }
  if (device.is_cuda && device.compute_capability < needs.compute_capability) {
    return Status::unsupported("needs compute capability " +
                               std::to_string(needs.compute_capability) + ", " + device.name +
                               " has " + std::to_string(device.compute_capability));
  }
  return {};
}

}  // namespace

std::size_t Stage::workspace_bytes(const Shape& shape) const {
  return workspace == nullptr ? 0 : workspace(shape);
}

Status Stage::supports(const SgemmArgs& args) const {
  if (Status s = check_device(requirements); !s.ok()) return s;
  if (Status s = check_sizes(args); !s.ok()) return s;
  if (is_empty(args)) return {};
  if (Status s = check_operands(args); !s.ok()) return s;
  const std::size_t needed = workspace_bytes(args.shape);
  if (needed > 0 && (args.workspace == nullptr || args.workspace_bytes < needed)) {
    return Status::invalid_argument(
        "workspace", "workspace of " + std::to_string(args.workspace_bytes) + " bytes; " +
                         std::string(name) + " needs " + std::to_string(needed));
  }
  if (needed > 0 && reinterpret_cast<std::uintptr_t>(args.workspace) % 16 != 0) {
    return Status::invalid_argument("workspace", "workspace is not 16-byte aligned");
  }
  return restrictions == nullptr ? Status() : restrictions(args);
}

Status Stage::prepare() const {
  if (Status s = check_device(requirements); !s.ok()) return s;
  return setup == nullptr ? Status() : setup();
}

Status Stage::launch(const SgemmArgs& args, Stream stream) const {
  if (Status s = supports(args); !s.ok()) return s;
  if (is_empty(args)) return {};
  SgemmArgs normalised = args;
  if (!reads_a_and_b(args)) {
    normalised.shape.k = 0;
    normalised.alpha = 0.0F;
  }
  // A stride that leads to no second row may be any number, and kernels form addresses with it that
  // they do not use: past the edge of a tile they would overflow.
  const Shape& shape = normalised.shape;
  if (shape.m == 1 || shape.k == 0) normalised.lda = shape.k;
  if (shape.k <= 1) normalised.ldb = shape.n;
  if (shape.m == 1) normalised.ldc = shape.n;
  return enqueue(normalised, stream);
}

const Stage* find_stage(std::string_view name) {
  for (const Stage* stage : stages()) {
    if (stage->name == name) return stage;
    for (const Stage* variant : stage->variants) {
      if (variant->name == name) return variant;
    }
  }
  return nullptr;
}

}  // namespace tilegate
