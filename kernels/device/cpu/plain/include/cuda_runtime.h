// Replaces the toolkit's header for kernels on the executor: see plain.hpp.
#pragma once
#include <tilegate/device/cpu/plain.hpp>
