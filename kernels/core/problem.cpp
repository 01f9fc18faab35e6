// Problems: memory extents, validity, and text form; see problem.hpp.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <tilegate/problem.hpp>

namespace tilegate {
namespace {

using Triple = std::array<std::int64_t, 3>;

template <typename T>
std::string number(T value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string triple(const Triple& values) {
  return number(values[0]) + "x" + number(values[1]) + "x" + number(values[2]);
}

// Parses fields from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }

  bool skip(std::string_view prefix) {
    if (!text_.starts_with(prefix)) return false;
    text_.remove_prefix(prefix.size());
    return true;
  }

  template <typename T>
  bool take(T& value) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }

  // A non-negative integer.
  bool take_count(std::int64_t& value) { return take(value) && value >= 0; }

  bool take_triple(Triple& values) {
    return take_count(values[0]) && skip("x") && take_count(values[1]) && skip("x") &&
           take_count(values[2]);
  }

  bool take_op(Op& op) {
    if (skip("N")) return op = Op::kN, true;
    if (skip("T")) return op = Op::kT, true;
    return false;
  }

 private:
  std::string_view text_;
};

std::int64_t dense_stride(const Problem& problem, Operand operand) {
  std::int64_t elements = 0;
  const bool overflows =
      __builtin_mul_overflow(problem.extent(operand).rows, problem.ld(operand), &elements);
  return overflows ? std::numeric_limits<std::int64_t>::max() : elements;
}

void set_dense_lds(Problem& problem) {
  problem.lda = problem.extent(Operand::kA).cols;
  problem.ldb = problem.extent(Operand::kB).cols;
  problem.ldc = problem.extent(Operand::kC).cols;
}

void set_dense_strides(Problem& problem) {
  problem.stride_a = dense_stride(problem, Operand::kA);
  problem.stride_b = dense_stride(problem, Operand::kB);
  problem.stride_c = dense_stride(problem, Operand::kC);
}

bool parse(Reader& text, Problem& problem) {
  Triple values{};
  if (!text.take_triple(values)) return false;
  problem.shape = {values[0], values[1], values[2]};
  if (text.skip("/N")) {
    if (!text.take_op(problem.op_b)) return false;
  } else if (text.skip("/T")) {
    problem.op_a = Op::kT;
    if (!text.take_op(problem.op_b)) return false;
  }
  set_dense_lds(problem);
  if (text.skip("/ld")) {
    if (!text.take_triple(values)) return false;
    problem.lda = values[0], problem.ldb = values[1], problem.ldc = values[2];
  }
  set_dense_strides(problem);
  if (text.skip("/batch")) {
    if (!text.take_count(problem.batch)) return false;
    if (text.skip("s")) {
      if (!text.take_triple(values)) return false;
      problem.stride_a = values[0], problem.stride_b = values[1], problem.stride_c = values[2];
    }
  }
  if (text.skip("/off")) {
    auto& offset = problem.offset_bytes;
    if (!text.take_count(offset[0])) return false;
    offset[1] = offset[2] = offset[0];
    if (text.skip("x") &&
        !(text.take_count(offset[1]) && text.skip("x") && text.take_count(offset[2]))) {
      return false;
    }
  }
  if (text.skip("/alpha") && !text.take(problem.alpha)) return false;
  if (text.skip("/beta") && !text.take(problem.beta)) return false;
  if (text.skip("/split")) problem.math = Math::fp32_split;
  return text.at_end();
}

Status malformed(std::string_view text, std::string_view form) {
  return Status::invalid_argument("problem",
                                  "'" + std::string(text) + "' is not " + std::string(form));
}

constexpr std::int64_t kMaxElements = std::numeric_limits<std::int64_t>::max() / sizeof(float);

// Elements from the first to one past the last of `count` runs of `length` elements, `stride`
// apart; nullopt: they exceed the address space.
std::optional<std::int64_t> span_of(std::int64_t count, std::int64_t stride, std::int64_t length) {
  std::int64_t span = 0;
  if (count == 0 || length == 0) return 0;
  if (__builtin_mul_overflow(count - 1, stride, &span)) return std::nullopt;
  if (__builtin_add_overflow(span, length, &span) || span > kMaxElements) return std::nullopt;
  return span;
}

std::optional<std::int64_t> span_of(const Problem& problem, Operand operand) {
  const auto [rows, cols] = problem.extent(operand);
  const auto one = span_of(rows, problem.ld(operand), cols);
  return one ? span_of(problem.batch, problem.stride(operand), *one) : std::nullopt;
}

// Whether the results of a batch are disjoint: one after another, or interleaved by rows.
bool has_own_results(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const std::int64_t stride = problem.stride_c;
  return stride >= *span_of(m, problem.ldc, n) ||
         (stride >= n && *span_of(problem.batch, stride, n) <= problem.ldc);
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

}  // namespace

Problem Problem::dense(const Shape& shape, Op op_a, Op op_b, std::int64_t batch) {
  Problem problem{.shape = shape, .op_a = op_a, .op_b = op_b, .batch = batch};
  set_dense_lds(problem);
  set_dense_strides(problem);
  return problem;
}

Extent Problem::extent(Operand operand) const {
  const auto stored = [](Op op, Extent used) {
    return op == Op::kN ? used : Extent{used.cols, used.rows};
  };
  switch (operand) {
    case Operand::kA:
      return stored(op_a, {shape.m, shape.k});
    case Operand::kB:
      return stored(op_b, {shape.k, shape.n});
    default:
      return {shape.m, shape.n};
  }
}

std::int64_t Problem::ld(Operand operand) const {
  return std::array{lda, ldb, ldc}[static_cast<std::size_t>(operand)];
}

std::int64_t Problem::span(Operand operand) const { return *span_of(*this, operand); }

Status Problem::check() const {
  if (Status s = check_size("m", shape.m); !s.ok()) return s;
  if (Status s = check_size("n", shape.n); !s.ok()) return s;
  if (Status s = check_size("k", shape.k); !s.ok()) return s;
  if (Status s = check_size("batch", batch); !s.ok()) return s;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    const std::string name = kOperandNames[static_cast<std::size_t>(operand)];
    const Extent stored = extent(operand);
    const std::int64_t row_stride = ld(operand);
    const std::int64_t offset = offset_bytes[static_cast<std::size_t>(operand)];
    if (Status s = check_leading_dimension(("ld" + name).c_str(), row_stride, stored.cols);
        !s.ok()) {
      return s;
    }
    if (offset < 0 || offset % static_cast<std::int64_t>(alignof(float)) != 0) {
      return Status::invalid_argument(name, "the offset of " + name + ", " +
                                                std::to_string(offset) +
                                                " bytes, is not a multiple of 4");
    }
    const bool used = operand == Operand::kC || reads_a_and_b();
    if (batch > 1) {
      if (Status s = check_size(("stride_" + name).c_str(), stride(operand)); !s.ok()) return s;
    }
    if (!is_empty() && used && !span_of(*this, operand)) {
      return Status::invalid_argument(
          name, name + " spans more than the address space: " + std::to_string(stored.rows) +
                    " rows of leading dimension " + std::to_string(row_stride));
    }
  }
  if (batch > 1 && !is_empty() && !has_own_results(*this)) {
    return Status::invalid_argument("stride_c", "stride_c = " + std::to_string(stride_c) +
                                                    " makes the results of the batch overlap");
  }
  return {};
}

std::int64_t Problem::stride(Operand operand) const {
  return std::array{stride_a, stride_b, stride_c}[static_cast<std::size_t>(operand)];
}

std::string to_string(const Problem& problem) {
  const Problem dense = Problem::dense(problem.shape, problem.op_a, problem.op_b, problem.batch);
  std::string text = triple({problem.shape.m, problem.shape.n, problem.shape.k});
  if (problem.op_a != Op::kN || problem.op_b != Op::kN) {
    text += problem.op_a == Op::kN ? "/N" : "/T";
    text += problem.op_b == Op::kN ? "N" : "T";
  }
  const Triple lds{problem.lda, problem.ldb, problem.ldc};
  if (lds != Triple{dense.lda, dense.ldb, dense.ldc}) text += "/ld" + triple(lds);
  if (problem.batch != 1) {
    text += "/batch" + number(problem.batch);
    const Triple strides{problem.stride_a, problem.stride_b, problem.stride_c};
    Problem packed = problem;
    set_dense_strides(packed);
    if (strides != Triple{packed.stride_a, packed.stride_b, packed.stride_c}) {
      text += "s" + triple(strides);
    }
  }
  const auto& offset = problem.offset_bytes;
  if (offset != Triple{0, 0, 0}) {
    const bool same = offset[1] == offset[0] && offset[2] == offset[0];
    text += "/off" + (same ? number(offset[0]) : triple(offset));
  }
  if (problem.alpha != 1.0F) text += "/alpha" + number(problem.alpha);
  if (problem.beta != 0.0F) text += "/beta" + number(problem.beta);
  if (problem.math == Math::fp32_split) text += "/split";
  return text;
}

Status parse_problem(std::string_view text, Problem* problem) {
  Problem parsed;
  Reader reader(text);
  if (!parse(reader, parsed)) return malformed(text, kProblemForm);
  *problem = parsed;
  return {};
}

std::string to_string(const NamedProblem& named) {
  const std::string at = named.configuration.empty() ? "" : "@" + named.configuration;
  return named.stage + at + "/" + to_string(named.problem);
}

Status parse_named_problem(std::string_view text, NamedProblem* named) {
  const std::size_t slash = text.find('/');
  const std::string_view stage = text.substr(0, slash);
  const std::size_t at = stage.find('@');
  named->stage = stage.substr(0, at);
  named->configuration = at == std::string_view::npos ? "" : stage.substr(at + 1);
  if (slash == std::string_view::npos || named->stage.empty() ||
      (at != std::string_view::npos && named->configuration.empty()) ||
      !parse_problem(text.substr(slash + 1), &named->problem).ok()) {
    return malformed(text, "<Stage>[@<configuration>]/" + std::string(kProblemForm));
  }
  return {};
}

bool allows_vectors(const Problem& problem, Operand operand) {
  constexpr std::int64_t kWords = 4, kBytes = kWords * sizeof(float);
  return problem.offset_bytes[static_cast<std::size_t>(operand)] % kBytes == 0 &&
         problem.ld(operand) % kWords == 0 && problem.extent(operand).cols % kWords == 0 &&
         (problem.batch == 1 || problem.stride(operand) % kWords == 0);
}

std::string problem_class(const Problem& problem) {
  const auto power = [](std::int64_t value) {  // log2, rounded
    return number(std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(value, 1)))));
  };
  const auto [m, n, k] = problem.shape;
  std::string name = power(m) + "x" + power(n) + "x" + power(k) + "/";
  name += problem.op_a == Op::kN ? "N" : "T";
  name += problem.op_b == Op::kN ? "N/" : "T/";
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    name += allows_vectors(problem, operand) ? 'v' : '-';
  }
  return problem.batch > 1 ? name + "/b" + power(problem.batch) : name;
}

}  // namespace tilegate
