// Stores results of mma and wgmma to C word by word, where C allows no vectors.
//
// A lane has pairs of columns of one row in eight. A store of all lanes' first words has every
// second word of eight columns, in eight rows: two to four stores write to each sector. So lanes
// exchange words through shared memory, and then half a warp stores 16 neighbouring words of a row.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr int kExchangedWords = 8 * 16;  // of a warp

// One warp: stores 8 rows and 16 columns to C, from `c` on. `left`: the lane's pair, in row `row`
// and columns 2·(lane % 4); `right`: the pair eight columns further. `rows`, `cols`: of C from `c`
// on, may be 0 or less. `exchange`: kExchangedWords of shared memory, aligned to float2, of this
// warp alone.
__device__ inline void store_words(const KernelArgs& args, float* c, int rows, int cols, int lane,
                                   int row, float2 left, float2 right, float* exchange) {
  // 32 words hold two rows. Half a warp stores rows 0 to 3, in Bf16x6 also 0, 2, 4 and 6: each row
  // in another quarter of the banks.
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
  const int rows_of_lane = in_col < cols ? rows - in_row : 0;
  float* at = c + in_row * args.ldc + in_col;
  const std::int64_t step = 2 * args.ldc;
  if (args.beta == 0.0F) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if (2 * i < rows_of_lane) at[i * step] = args.alpha * word[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      // Both loads before the stores: the compiler must assume that they alias.
      const bool first = 2 * i < rows_of_lane, second = 2 * i + 2 < rows_of_lane;
      float* next = at + (i + 1) * step;
      const float old = first ? at[i * step] : 0.0F, next_old = second ? *next : 0.0F;
      if (first) at[i * step] = args.alpha * word[i] + args.beta * old;
      if (second) *next = args.alpha * word[i + 1] + args.beta * next_old;
    }
  }
}

}  // namespace tilegate
