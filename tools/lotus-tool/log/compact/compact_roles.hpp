// Compact logs: splits one file into logs of several roles.
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

/// Replaces each compact log by one log per role that it has records of. Lines from the rings of
/// dead processes, until now in text logs without bytes on disk, become the tails of these logs.
/// Throws input_error.
/// @param files  of one folder.
void take_compact_apart(std::vector<log_file>& files, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_COMPACT_COMPACT_ROLES_HPP
