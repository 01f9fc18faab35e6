// How a test says that it is skipped because this device cannot run what it tests, or the stage
// does not take it.
#pragma once

namespace tilegate {

// The GoogleTest property under which such a test records why. Skips without it are for single
// cases: a run of nothing but skips passes only if every one of them has it.
inline constexpr const char* kNotOnThisDevice = "not_on_this_device";

// The same where the stage does not take what the test has; see Restrictions.
inline constexpr const char* kNotApplicable = "not_applicable";

}  // namespace tilegate
