// Splits each compact log into a main, a worker and a side log.
#ifndef LOTUS_TOOL_LOG_COMPACT_COMPACT_ROLES_HPP
#define LOTUS_TOOL_LOG_COMPACT_COMPACT_ROLES_HPP

#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {

constexpr file_role file_role_of(lotus::detail::log_role role) noexcept {
  return role == lotus::detail::log_role::main     ? file_role::main
         : role == lotus::detail::log_role::worker ? file_role::worker
                                                   : file_role::side;
}

/// A compact log has the records of up to three roles: main, worker and side log. Replaces each
/// compact log in `files` by one log_file for each role that it has; all of them read the same file
/// on disk. If a process died, find_runs() has added the records in its rings as tails of text logs
/// that may not exist on disk. This function moves these tails to the new logs. Throws input_error.
/// @param files  the logs of one folder.
void take_compact_apart(std::vector<log_file>& files, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_ROLES_HPP
