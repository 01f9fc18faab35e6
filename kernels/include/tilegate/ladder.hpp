// Every rung of the ladder, for programs that choose one by name.
#pragma once

#include <span>
#include <string_view>

#include <tilegate/stage.hpp>

namespace tilegate {

// All rungs, in the ladder's order.
std::span<const Stage* const> stages();

// The rung of that name, or nullptr.
const Stage* find_stage(std::string_view name);

}  // namespace tilegate
