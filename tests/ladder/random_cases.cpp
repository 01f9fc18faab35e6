#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

constexpr std::uint64_t kDefaultSeed = 20260;
constexpr std::int64_t kMaxPad = 9;
constexpr std::size_t kFormDraws = 840;  // a multiple of any small number of forms
#if TILEGATE_ON_SIMT
constexpr int kNumCases = 60;
constexpr std::int64_t kMaxExtent = 160;
#else
constexpr int kNumCases = 500;
constexpr std::int64_t kMaxExtent = 3000;
#endif

// Random numbers that do not depend on the standard library, as its distributions do.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  // In [0, end).
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

  // Log-uniform in [1, kMaxExtent]; 0 with probability 1/40.
  std::int64_t extent() {
    if (below(40) == 0) return 0;
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<std::int64_t>(
        std::exp(unit * std::log(static_cast<double>(kMaxExtent) + 1.0)));
  }

 private:
  std::mt19937_64 random_;
};

Case random_case(const std::vector<Form>& forms, Draw& draw) {
  Padded padded{.shape = {draw.extent(), draw.extent(), draw.extent()}};
  const Inputs inputs = draw.below(2) == 0 ? Inputs::kIntegers : Inputs::kUniform;
  const Factors& f = factors(inputs, static_cast<std::size_t>(draw.below(kFactors.size())));
  padded.alpha = f.alpha;
  padded.beta = f.beta;
  const std::int64_t unit = draw.below(2) == 0 ? 4 : 1;  // half of the cases have whole vectors
  padded.shape.n = padded.shape.n / unit * unit;
  padded.shape.k = padded.shape.k / unit * unit;
  for (std::int64_t& pad : padded.pad) pad = draw.below(kMaxPad) / unit * unit;
  if (unit == 1) {
    for (std::int64_t& offset : padded.offset_bytes) offset = 4 * draw.below(4);
  }
  // Half of the cases have the plain form.
  const auto form = static_cast<std::size_t>(draw.below(2 * static_cast<std::int64_t>(kFormDraws)));
  if (!forms.empty() && form < kFormDraws) {
    const Form& drawn = forms[form % forms.size()];
    padded.op_a = drawn.op_a;
    padded.op_b = drawn.op_b;
    padded.batch = drawn.batch;
    padded.gap = drawn.gap;
  }
  const auto seed = static_cast<std::uint64_t>(draw.below(std::int64_t{1} << 32));
  return {.problem = padded, .inputs = inputs, .seed = seed};
}

}  // namespace

std::uint64_t sweep_seed() {
  const char* text = std::getenv("TILEGATE_SWEEP_SEED");
  if (text == nullptr || *text == '\0') return kDefaultSeed;
  char* end = nullptr;
  const std::uint64_t seed = std::strtoull(text, &end, 10);
  if (*end != '\0') {
    std::fprintf(stderr, "TILEGATE_SWEEP_SEED is '%s'; it must be an integer\n", text);
    std::exit(1);
  }
  return seed;
}

std::vector<Case> random_cases(const Stage& stage) {
  Draw draw(sweep_seed());
  CaseList list;
  const int count = is_variant(stage) ? kNumCases / 10 : kNumCases;
  for (int i = 0; i < count; ++i) list.add(random_case(forms_of(stage), draw));
  return list.take();
}

}  // namespace tilegate::ladder
