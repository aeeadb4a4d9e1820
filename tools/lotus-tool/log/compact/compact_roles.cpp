#include "log/compact/compact_roles.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/compact/block_index.hpp"
#include "log/compact/compact_reader.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/format/compact_layout.hpp"

namespace lotus::tool {
namespace {

/// Returns for which roles (main, worker and side log) a compact log has records: a bit for each
/// log_role. Reads the whole log and verifies the checksums.
unsigned roles_read(const log_file& file) {
  compact_reader blocks(file);
  lotus::detail::compact_block_header header{};
  unsigned roles = 0;
  while (!blocks.next(header).empty()) roles |= header.roles;
  return roles;
}

/// Returns the same as roles_read(), but reads only headers if no bytes lie between the blocks.
unsigned roles_in(const log_file& file) {
  if (!file.older.empty()) return roles_read(file);
  const std::optional<std::vector<indexed_block>> blocks = index_blocks(file);
  // A block counts as valid if another header follows exactly where its own header says that it
  // ends. If the file has only one block, no header follows, so roles_read() must verify its
  // checksum.
  if (!blocks || blocks->size() < 2) return roles_read(file);
  unsigned roles = 0;
  for (const indexed_block& block : *blocks) roles |= block.roles;
  return roles;
}

}  // namespace

void take_compact_apart(std::vector<log_file>& files, diagnostic_log& diagnostics) {
  std::vector<log_file> roles;
  for (const log_file& file : files) {
    if (file.role != file_role::compact) continue;
    const unsigned found = roles_in(file);
    if (found == 0 && (file.bytes > 0 || !file.older.empty())) {
      diagnostics.warning(
          file.path +
          ": ignored: it contains no valid block; it is damaged, or written by another version");
    }
    for (const lotus::detail::log_role role :
         {lotus::detail::log_role::main, lotus::detail::log_role::worker,
          lotus::detail::log_role::side}) {
      if ((found >> static_cast<unsigned>(role) & 1U) == 0) continue;
      log_file& one = roles.emplace_back(file);
      one.role = file_role_of(role);
      one.compact = true;
      const auto in_ring = std::find_if(files.begin(), files.end(), [&](const log_file& other) {
        return other.role == one.role && other.number == one.number && other.bytes == 0 &&
               other.older.empty();
      });
      if (in_ring == files.end()) continue;
      one.tail = std::move(in_ring->tail);
      // `in_ring` stands for a text log that is not on disk and has only lines from a dead
      // process's ring. These lines now belong to `one`, so `in_ring` is not needed any more. Its
      // new role `compact` makes the code below remove it from `files`.
      in_ring->role = file_role::compact;
    }
  }
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const log_file& file) { return file.role == file_role::compact; }),
              files.end());
  std::move(roles.begin(), roles.end(), std::back_inserter(files));
}

}  // namespace lotus::tool
