// Provides the built-in collector, which samples the program without an external profiler.
#ifndef LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP
#define LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP

#include <cstdint>
#include <cstdlib>

#include "lotus/collectors/backend.hpp"
#include "lotus/config.hpp"
#include "lotus/sampling/sampler.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns false, so that LOTUS_COLLECTOR=auto does not select this collector, which could sample
/// any program.
inline bool builtin_is_here() noexcept {
  return false;
}

inline const collector_backend* builtin_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.begin = []() noexcept {
      // The exit handler completes the sample file if the program never calls detach.
      return sampler::instance().begin(asked_interval_ns()) &&
             std::atexit([] { sampler::instance().finish(); }) == 0;
    };
    b.resume = []() noexcept { return sampler::instance().resume(); };
    b.pause = []() noexcept { return sampler::instance().pause(); };
    b.detach = []() noexcept { sampler::instance().finish(); };
    b.interval_ns = []() noexcept { return sampler::instance().interval_ns(); };
    b.region = [](const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
      sampler::instance().region(name, begin_ns, end_ns);
    };
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP
