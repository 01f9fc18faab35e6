// Stores results of mma and wgmma to C word by word, where C allows no vectors.
//
// A lane has pairs of columns of one row in eight. Stores from there have every second word of
// eight columns in eight rows: two stores write to each sector. So lanes exchange words through
// shared memory, and then half a warp stores 16 neighbouring words of a row.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr int kExchangedWords = 8 * 16;  // of a warp

// One warp: stores 8 rows and 16 columns to C, from `c` on. `left`: the lane's pair, in row `row`
// and columns 2·(lane % 4); `right`: the pair eight columns further. Where C ends: after `rows` and
// `cols`. `exchange`: kExchangedWords of shared memory, of this warp alone.
__device__ inline void store_words(const KernelArgs& args, float* c, int rows, int cols, int lane,
                                   int row, float2 left, float2 right, float* exchange) {
  // In 32 words there are two rows. Without bank conflicts: rows 0 to 3 are in different quarters
  // of the banks, and so are rows 0, 2, 4 and 6.
  const int to = (row & 6) * 16 + (((row ^ row >> 2) & 1) * 16 ^ (row & 2) * 4 ^ lane % 4 * 2);
  __syncwarp();  // all lanes have read the previous words
  device::store_vector(exchange + to, left);
  device::store_vector(exchange + (to ^ 8), right);
  __syncwarp();              // all words are stored before any lane reads them
  constexpr int kWords = 4;  // of a lane, in every second row
  float word[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) word[i] = exchange[i * 32 + (lane ^ i / 2 * 16 ^ i % 2 * 8)];
  const int in_row = lane / 16, in_col = lane % 16;
  const int left_rows = in_col < cols ? rows - in_row : 0;
  float* at = c + in_row * args.ldc + in_col;
  const std::int64_t step = 2 * args.ldc;
  if (args.beta == 0.0F) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if (2 * i < left_rows) at[i * step] = args.alpha * word[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      // Both loads before the first store, which the compiler cannot know to be elsewhere.
      const bool first = 2 * i < left_rows, second = 2 * i + 2 < left_rows;
      float* next = at + (i + 1) * step;
      const float old = first ? at[i * step] : 0.0F, next_old = second ? *next : 0.0F;
      if (first) at[i * step] = args.alpha * word[i] + args.beta * old;
      if (second) *next = args.alpha * word[i + 1] + args.beta * next_old;
    }
  }
}

}  // namespace tilegate
