// Causes of slowness that loaders are planted with.
#ifndef LOTUS_TESTS_PLANTED_CAUSES_HPP
#define LOTUS_TESTS_PLANTED_CAUSES_HPP

#include <functional>
#include <map>
#include <mutex>
#include <string>

// In the global namespace, so that samples show its name.
extern std::mutex codec_mutex;

namespace planted {

/// Loaders by the name of their cause.
using cause_map = std::map<std::string, std::function<void()>>;

/// Returns loaders that are slow because of how CPUs are used.
const cause_map& cpu_causes();

/// Returns loaders that are slow because of how their consumer asks for batches.
const cause_map& asking_causes();

/// Returns pipelines of stages.
const cause_map& stage_causes();

}  // namespace planted

#endif  // LOTUS_TESTS_PLANTED_CAUSES_HPP
