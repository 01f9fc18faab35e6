// A project that is not Tilegate: it transposes matrices on the CPU, in tiles of 32 x 32. Its times
// are counted: 1 ns for every 32 bytes that a row of a tile moves, 13.5 ns for a barrier. So they
// are the same on every machine, however busy.
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr int kTile = 32;

struct Clock {
  double ns = 0;
  void move_row() { ns += kTile * sizeof(float) / 32.0; }
  void barrier() { ns += 13.5; }
};

using Matrix = std::vector<float>;  // n x n, row by row

void transpose(const Matrix& in, Matrix& out, int n, Clock& clock) {
  float tile[kTile][kTile];
  for (int top = 0; top < n; top += kTile) {
    for (int left = 0; left < n; left += kTile) {
      for (int y = 0; y < kTile; ++y, clock.move_row()) {
        for (int x = 0; x < kTile; ++x) tile[y][x] = in[(top + y) * n + left + x];
      }
      clock.barrier();  // every row of the tile is there before a column is read
      for (int y = 0; y < kTile; ++y, clock.move_row()) {
        for (int x = 0; x < kTile; ++x) out[(left + y) * n + top + x] = tile[x][y];
      }
    }
  }
}

void copy(const Matrix& in, Matrix& out, int n, Clock& clock) {
  out = in;
  for (int rows = 0; rows < 2 * n * n / kTile; ++rows) clock.move_row();  // one in, one out
}

using Kernel = void (*)(const Matrix&, Matrix&, int, Clock&);

template <Kernel kKernel, bool kTransposes>
void measure(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  Matrix in(n * n), out(n * n);
  for (int i = 0; i < n * n; ++i) in[i] = static_cast<float>(i);
  for (auto _ : state) {
    Clock clock;
    kKernel(in, out, n, clock);
    state.SetIterationTime(clock.ns * 1e-9);
  }
  bool right = true;
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) right &= out[y * n + x] == in[kTransposes ? x * n + y : y * n + x];
  }
  state.counters["right"] = right;
}

}  // namespace

BENCHMARK(measure<transpose, true>)->Name("Transpose")->Arg(64)->Arg(96)->UseManualTime();
BENCHMARK(measure<copy, false>)->Name("Copy")->Arg(64)->Arg(96)->UseManualTime();
BENCHMARK_MAIN();
