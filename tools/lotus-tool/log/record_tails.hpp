// Collects the lines that processes could not write to their logs because they died. The lines are
// kept in memory, as tails of the logs.
#ifndef LOTUS_TOOL_LOG_RECORD_TAILS_HPP
#define LOTUS_TOOL_LOG_RECORD_TAILS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "log/compact/block_index.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {

/// Receives the lines that drain_ring() creates from the records in a ring, and stores them in
/// memory (`tails`) instead of in log files.
class tail_sink {
 public:
  explicit tail_sink(detail::ring_block& ring) : ring_(ring) {}

  int begin(detail::log_role, std::uint32_t loader) {
    loader_ = loader;
    return 0;
  }
  int append(detail::log_role role, const char* lines, std::size_t bytes) {
    tails[loader_][static_cast<std::size_t>(role)].append(lines, bytes);
    bytes_ += bytes;
    return 0;
  }
  static void undo(detail::log_role) {}
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) {
    detail::commit_point c = ring_.committed();
    c.tail[lane] = tail;
    c.loader = loader;
    ring_.commit(c);
    return 0;
  }

  std::uint64_t bytes() const noexcept { return bytes_; }

  std::map<std::uint32_t, std::array<std::string, detail::log_roles>> tails;

 private:
  detail::ring_block& ring_;
  std::uint32_t loader_ = 0;
  std::uint64_t bytes_ = 0;
};

/// The logs of one run directory and of its loaders' folders, to whose tails lines are added.
class tailed_logs {
 public:
  /// @param files      logs by folder; may include other folders.
  /// @param max_bytes  maximum size of all tails together.
  tailed_logs(const std::string& dir, logs_by_folder& files, std::uint64_t max_bytes)
      : dir_(dir), files_(files), room_(max_bytes) {}

  const std::string& dir() const noexcept { return dir_; }

  /// Returns the log of a folder with the given prefix, role and number. If the folder has no such
  /// log, adds one without any content.
  /// @param folder   the directory, or a loader's folder in it.
  /// @param compact  whether to return the compact log instead of a text log.
  log_file& file_of(const std::string& folder, const char* prefix, detail::log_role role,
                    bool compact, std::uint32_t number) {
    char name[detail::log_name_bytes];
    detail::put_log_name(name, sizeof(name), prefix, role, compact, number);
    return file_named(folder, name, compact ? file_role::compact : file_role_of(role), number);
  }

  log_file& file_named(const std::string& folder, const std::string& name, file_role role,
                       std::uint64_t number) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    std::vector<log_file>& files = files_[folder];
    std::unordered_map<std::string, std::size_t>& index = index_[folder];
    if (index.empty()) {
      for (std::size_t i = 0; i < files.size(); ++i) index.emplace(files[i].path, i);
    }
    const auto [at, is_new] = index.try_emplace(path, files.size());
    if (is_new) {
      files.push_back({path, role, number, 0, {}});
    }
    return files[at->second];
  }

  /// Whether the tails stay below their maximum size if this many bytes are added to them.
  bool has_room(std::uint64_t bytes) const noexcept { return bytes < room_; }
  void take_room(std::uint64_t bytes) noexcept { room_ -= std::min(bytes, room_); }

 private:
  const std::string& dir_;
  logs_by_folder& files_;
  // For each folder, the index of each of its logs in files_[folder], by the path of the log.
  std::map<std::string, std::unordered_map<std::string, std::size_t>> index_;
  std::uint64_t room_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_RECORD_TAILS_HPP
