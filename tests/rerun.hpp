// The command line that runs one test again.
#pragma once

#include <string>

namespace tilegate {

// Of the test that is running now, from the root of the sources; `environment` comes first, as in
// "NAME=value ".
std::string rerun_command(const std::string& environment = {});

}  // namespace tilegate
