// In place of the toolkit's, for kernels that the executor runs: see plain.hpp.
#pragma once
#include <tilegate/device/cpu/plain.hpp>
