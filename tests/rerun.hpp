// What identifies a test to readers of its failure.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace tilegate {

// The command line that runs the test again, from the root of the sources, with what the
// environment says to the tests. Null: the whole program.
std::string rerun_command(const testing::TestInfo* test);

// "Warptile_129x65x33" of a test that has a parameter, else "Suite.Test".
std::string subject_of(const testing::TestInfo* test);

// A kernel's source below `folder` that is newer than `program`; empty: none is.
std::filesystem::path kernel_newer_than(const std::filesystem::path& program,
                                        const std::filesystem::path& folder);

}  // namespace tilegate
