// Finds gaps in the work of devices that occur only once, while a program starts.
#pragma once

#include <vector>

#include "accelerator/device_figures.hpp"
#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Returns, for each gap of a device, whether it is start-up. This is so for gaps of the first step
/// that are far longer than those of later steps, and for gaps in a call that takes far longer than
/// launches usually do, and launches a kernel for the first time or occurs only in the first half.
std::vector<bool> find_start_up(const device_trace& trace, const std::vector<device_gap>& gaps);

}  // namespace lotus::tool
