#include "models/layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace tilegate::models {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

constexpr std::int64_t kRows = 128, kK = 32;  // of a chunk

// The number of the chunk with this element, in the order of memory.
std::int64_t chunk_of(std::int64_t rows, std::int64_t k, std::int64_t batch_index, std::int64_t row,
                      std::int64_t of_k) {
  const std::int64_t before = batch_index * ceil_div(rows, kRows) + row / kRows;
  return before * ceil_div(k, kK) + of_k / kK;
}

std::int64_t count_chunks(std::int64_t rows, std::int64_t k, std::int64_t batch) {
  return batch * ceil_div(rows, kRows) * ceil_div(k, kK);
}

}  // namespace

std::vector<Tile> tiles_in_order(std::int64_t batch, std::int64_t rows, std::int64_t cols,
                                 std::int64_t group) {
  std::vector<Tile> tiles;
  for (std::int64_t batch_index = 0; batch_index < batch; ++batch_index) {
    for (std::int64_t first = 0; first < rows; first += group) {
      for (std::int64_t col = 0; col < cols; ++col) {
        for (std::int64_t row = first; row < std::min(rows, first + group); ++row) {
          tiles.push_back({batch_index, row, col});
        }
      }
    }
  }
  return tiles;
}

std::int64_t swizzled(std::int64_t address, int width) {
  const std::int64_t line = address / 128, segments = width / 16;
  return address ^ (line % segments * 16);
}

std::int64_t whole_chunks(std::int64_t rows) { return ceil_div(rows, kRows) * kRows; }

std::int64_t offset_of_digit(std::int64_t rows, std::int64_t k, std::int64_t batch_index,
                             std::int64_t row, std::int64_t of_k, int plane) {
  constexpr std::int64_t kPlane = 8 * kK, kChunk = 3 * kRows * kK;  // bytes; 8 rows of a plane
  const std::int64_t in_chunk = row % kRows;
  const std::int64_t linear =
      in_chunk / 8 * 3 * kPlane + plane * kPlane + in_chunk % 8 * kK + of_k % kK;
  return chunk_of(rows, k, batch_index, row, of_k) * kChunk + swizzled(linear, 32);
}

std::int64_t bytes_of_digits(std::int64_t rows, std::int64_t k, std::int64_t batch) {
  return count_chunks(rows, k, batch) * 3 * kRows * kK;
}

std::int64_t offset_of_fp16(std::int64_t rows, std::int64_t k, std::int64_t batch_index,
                            std::int64_t row, std::int64_t of_k, int plane) {
  constexpr std::int64_t kSlice = 16, kPlane = kRows * kSlice * 2, kChunk = 4 * kPlane;  // bytes
  const std::int64_t slice = of_k % kK / kSlice;
  const std::int64_t linear =
      slice * 2 * kPlane + plane * kPlane + row % kRows * kSlice * 2 + of_k % kSlice * 2;
  return chunk_of(rows, k, batch_index, row, of_k) * kChunk + swizzled(linear, 32);
}

std::int64_t bytes_of_fp16_planes(std::int64_t rows, std::int64_t k, std::int64_t batch) {
  return count_chunks(rows, k, batch) * 2 * 2 * kRows * kK;
}

std::vector<std::vector<StreamKWork>> work_of_clusters(std::int64_t tiles, std::int64_t clusters,
                                                       std::int64_t chunks, std::int64_t least) {
  // Full waves of whole tiles, but for the last one. The tiles of that wave and of the partial wave
  // form one line of chunks, of which each cluster gets an equal part, or one chunk more.
  std::int64_t waves = tiles / clusters;
  const bool are_shared = tiles % clusters != 0;
  if (are_shared && waves > 0) --waves;
  const std::int64_t first_shared = waves * clusters;
  const std::int64_t line = are_shared ? (tiles - first_shared) * chunks : 0;
  const auto begin = [&](std::int64_t cluster) {
    const std::int64_t even = line / clusters * cluster + std::min(cluster, line % clusters);
    const std::int64_t since = even % chunks, until = chunks - since;
    return since < least ? even - since : until < least ? even + until : even;
  };
  std::vector<std::vector<StreamKWork>> all(static_cast<std::size_t>(clusters));
  for (std::int64_t cluster = 0; cluster < clusters; ++cluster) {
    auto& list = all[static_cast<std::size_t>(cluster)];
    std::int64_t index = 0;
    for (std::int64_t wave = 0; wave < waves; ++wave, ++index) {
      list.push_back({.tile = wave * clusters + cluster,
                      .first = 0,
                      .end = chunks,
                      .is_stored = true,
                      .index = index});
    }
    // From the end of the cluster's part to its beginning.
    for (std::int64_t end = begin(cluster + 1); end > begin(cluster);) {
      const std::int64_t tile = (end - 1) / chunks, from = tile * chunks;
      const std::int64_t first = std::max(begin(cluster), from);
      StreamKWork work{.tile = first_shared + tile,
                       .first = first - from,
                       .end = end - from,
                       .is_stored = end == from + chunks,
                       .index = index};
      if (work.is_stored) {
        while (begin(cluster - work.partials) > from) ++work.partials;
        ++index;
      }
      list.push_back(work);
      end = first;
    }
    if (!list.empty()) list.back().is_last = true;
  }
  return all;
}

std::vector<SplitKWork> work_in_order(const SplitK& of) {
  std::vector<SplitKWork> all;
  std::int64_t left = of.whole, partials = 0;
  // Rows of tiles are groups of one row.
  for (const Tile& tile : tiles_in_order(of.batch, of.rows, of.cols, 1)) {
    SplitKWork work{.batch_index = tile.batch_index,
                    .row = std::min(tile.row * of.block_m, of.end_m - of.block_m),
                    .col = std::min(tile.col * of.block_n, of.end_n - of.block_n)};
    work.own_row = tile.row * of.block_m - work.row;
    work.own_col = tile.col * of.block_n - work.col;
    if (left-- > 0) {
      work.count = of.k_tiles;
      all.push_back(work);
      continue;
    }
    // One k tile after another to each split in turn.
    std::vector<std::int64_t> counts(static_cast<std::size_t>(of.k_splits));
    for (std::int64_t i = 0; i < of.k_tiles; ++i)
      ++counts[static_cast<std::size_t>(i % of.k_splits)];
    for (const std::int64_t count : counts) {
      work.count = count;
      work.partial = partials++;
      all.push_back(work);
      work.first += count;
    }
  }
  return all;
}

std::vector<TailWork> tail_work_in_order(const std::vector<Tile>& tiles, std::int64_t head,
                                         std::int64_t k_splits, std::int64_t k_tiles) {
  std::vector<TailWork> all;
  const auto tail = tiles.begin() + head;
  for (auto tile = tiles.begin(); tile != tail; ++tile) all.push_back({*tile, 0, k_tiles});
  std::int64_t first = 0, partial = 0;
  for (std::int64_t split = 0; split < k_splits; ++split) {
    std::int64_t end = first;
    while ((end + 1) * k_splits <= k_tiles * (split + 1)) ++end;
    for (auto tile = tail; tile != tiles.end(); ++tile) {
      all.push_back({*tile, first, end, partial++});
    }
    first = end;
  }
  return all;
}

namespace {

std::int64_t tiles_of(const Product& product, std::int64_t rows, std::int64_t cols) {
  return product.batch * ceil_div(product.m, rows) * ceil_div(product.n, cols);
}

double waves(std::int64_t tiles) { return std::ceil(static_cast<double>(tiles) / 132.0); }

}  // namespace

std::int64_t parts_in_fp32(const Product& product) {
  const std::string_view form = product.form;
  const std::int64_t tiles = tiles_of(product, 128, 128), wide = tiles_of(product, 128, 256),
                     tall = tiles_of(product, 256, 128);
  if (form == "NT" && tiles >= 512) return 1;
  const auto is_whole = [](std::int64_t of) {
    const double idle = 132.0 * waves(of) - static_cast<double>(of);
    return idle <= 132.0 * 0.15 || of >= 12 * 132;
  };
  if (is_whole(wide) && is_whole(tall) && (form != "TT" || tiles >= 512)) {
    if (form == "NN" || form == "TT" || product.k < 2048) return 1;
    return product.k < 3072 ? 2 : 3;
  }
  std::int64_t shortest = 650;
  if (form == "TN" && tiles < 1024) shortest = 380;
  if (tiles < 512) shortest = 300;
  std::vector<double> costs;  // of 1, 2, … parts
  for (int parts = 1; parts <= (tiles < 512 ? 8 : 4); ++parts) {
    if (parts > 1 && parts * shortest > product.k) break;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int64_t of : {wide, tall}) {
      double cost = waves(of * parts) * static_cast<double>(product.k) / parts;
      if (parts > 1) cost += 60.0 * static_cast<double>(of * parts) / 132.0;
      least = std::min(least, cost);
    }
    costs.push_back(least);
  }
  const double most = 1.04 * *std::ranges::min_element(costs);
  const auto last =
      std::find_if(costs.rbegin(), costs.rend(), [&](double cost) { return cost <= most; });
  return costs.rend() - last;
}

double summed_in_fp32(const Product& product) {
  const std::int64_t k = product.k, tiles = tiles_of(product, 128, 128);
  std::int64_t summed = k;
  if (k > 128) {
    if (tiles < 16) {
      summed = 64;
    } else if (tiles < 64) {
      summed = 112;
    } else if (tiles >= 256) {
      summed = k / parts_in_fp32(product);
    } else if (!product.vectors) {
      summed = std::min<std::int64_t>(k / 5, 350);
    } else if (k > 1024) {
      summed = std::max<std::int64_t>(k / 6, 512);
    } else if (k > 512 && tiles < 128) {
      const bool is_whole = tiles == 64 && product.m == product.n;
      summed = product.form == "TN" ? k / 4 : is_whole ? k : k / 3;
    } else if (k >= 768 && tiles > 132) {
      summed = k / 2;
    }
  }
  return static_cast<double>(std::max<std::int64_t>(summed, 64));
}

double products_in_fp32(std::int64_t k, double length) {
  return length + static_cast<double>(k) / length;
}

double products_of_one_sign_in_fp32(std::int64_t k, double length) {
  const auto all = static_cast<double>(k);
  const auto error = [&] { return 2.0 / 3.0 * (length * length / all + all / length); };
  double least = error();
  for (; length < all; length *= 1.0001) least = std::min(least, error());
  return least;
}

}  // namespace tilegate::models
