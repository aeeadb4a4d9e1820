// For programs that link AMD's static libAMDProfileController, which no look-up at run time finds.
// Include it in one source file, uProf's headers in the include path; link with
// -lAMDProfileController -lrt -pthread.
#ifndef LOTUS_COLLECTORS_UPROF_STATIC_HPP
#define LOTUS_COLLECTORS_UPROF_STATIC_HPP

#include <AMDProfileController.h>

#include "lotus/collectors/uprof.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

namespace {
/// True once the linked functions are known to the collector.
const bool uprof_is_linked = [] {
  static constexpr uprof_calls calls{
      [](unsigned) -> int { return static_cast<int>(amdProfileResume(1)); },
      [](unsigned) -> int { return static_cast<int>(amdProfilePause(1)); }, false};
  linked_uprof.store(&calls, std::memory_order_release);
  return true;
}();
}  // namespace

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_UPROF_STATIC_HPP
