// What the executor takes too long for in every run of the tests, it does every night.
#pragma once

#include <cstdlib>

namespace tilegate {

inline bool is_thorough() { return std::getenv("TILEGATE_THOROUGH") != nullptr; }

}  // namespace tilegate
