// Defines the table of all collectors (profilers) that the library can control, with the functions
// of each.
#ifndef LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP
#define LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP

#include "lotus/base/environment.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/callgrind.hpp"
#include "lotus/collectors/itt.hpp"
#include "lotus/collectors/perf.hpp"
#include "lotus/collectors/uprof.hpp"
#include "lotus/config.hpp"
#include "lotus/sampling/collectors/builtin.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

struct collector_kind {
  const char* name;  ///< name of the collector in LOTUS_COLLECTOR
  /// Whether LOTUS_COLLECTOR=auto selects this collector, because the program runs under it.
  bool (*found_by_auto)() noexcept;
  /// Returns the collector's functions; null, after reporting the reason, if it cannot be used.
  const collector_backend* (*backend)() noexcept;
};

/// The collectors, in the order in which LOTUS_COLLECTOR=auto looks for them.
LOTUS_DETAIL_PER_MODULE inline constexpr collector_kind collector_kinds[] = {
#define LOTUS_DETAIL_KIND(name) {#name, name##_is_here, name##_backend},
    LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_KIND)
#undef LOTUS_DETAIL_KIND
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP
