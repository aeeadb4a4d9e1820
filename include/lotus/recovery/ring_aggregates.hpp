// What a process counts at this moment, as its ring file tells somebody else.
#ifndef LOTUS_RECOVERY_RING_AGGREGATES_HPP
#define LOTUS_RECOVERY_RING_AGGREGATES_HPP

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/aggregates/aggregate_chain.hpp"
#include "lotus/format/aggregates/aggregate_text.hpp"
#include "lotus/recovery/dead_aggregates.hpp"
#include "lotus/recovery/dead_ring.hpp"
#include "lotus/recovery/recovery.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Appends to the files of aggregates in another folder what a ring file holds, whether its process
/// lives or not. Of threads that are in such calls just then, some calls of that moment may be
/// missing in one figure and not in another. A file that cannot be read, or takes too long, is
/// passed over.
/// @param from    descriptor of the ring file's directory, borrowed; as is `to`.
/// @param prefix  only of runs with this prefix.
/// @return 0, ENOMEM, or what file_error_text() knows of the files in `to`.
inline int copy_ring_aggregates(int from, const char* name, const char* prefix,
                                const file_owners& owners, int to) noexcept {
  constexpr std::int64_t most_ns = 50'000'000;
  dead_ring_file file;
  if (file.open_any(from, name, owners) != dead_ring_file::state::opened) return 0;
  if (std::strcmp(file.header().prefix, prefix) != 0) return 0;
  const int error = file.read_blocks(clock_ns(CLOCK_MONOTONIC) + most_ns);
  if (error != 0) return error == ETIME ? 0 : error;
  const dead_aggregates found{file, aggregate_state::moving};
  const log_folder run = folder_of(to, file, nullptr);
  loader_folders folders{run};
  return found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    return append_aggregates(run, folders, loader, file.header().pid, section);
  });
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RING_AGGREGATES_HPP
