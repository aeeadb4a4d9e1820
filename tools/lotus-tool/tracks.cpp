#include "tracks.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "log_files.hpp"
#include "trace_sink.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

std::string role_name(file_role role) {
  switch (role) {
    case file_role::main:
      return "main";
    case file_role::worker:
      return "worker";
    case file_role::unknown:
      break;
  }
  return "log";
}

}  // namespace

std::string run_title(const std::string& run_dir, const std::string& dir) {
  const fs::path below = fs::path(run_dir).lexically_relative(dir);
  if (!below.empty() && below != ".") return below.string();
  // "run/" and "." have no last part of their own.
  std::error_code error;
  const fs::path whole = fs::canonical(run_dir, error);
  return error || !whole.has_filename() ? run_dir : whole.filename().string();
}

std::string log_title(const log_file& file) {
  return role_name(file.role) + ' ' + std::to_string(file.number);
}

std::uint32_t number_pool::take(std::uint64_t wanted) {
  if (wanted > 0 && wanted <= UINT32_MAX) {
    const auto number = static_cast<std::uint32_t>(wanted);
    if (taken_.insert(number).second) return number;
  }
  while (!taken_.insert(next_).second) ++next_;
  return next_;
}

void number_pool::reserve(std::uint64_t number) {
  if (number <= UINT32_MAX) taken_.insert(static_cast<std::uint32_t>(number));
}

std::vector<run_tracks> lay_tracks(const std::vector<run_files>& runs, const std::string& dir,
                                   const std::set<std::uint64_t>& taken) {
  number_pool pids;
  number_pool tids;
  for (const std::uint64_t number : taken) {
    pids.reserve(number);
    tids.reserve(number);
  }
  std::vector<run_tracks> all;
  for (const run_files& run : runs) {
    run_tracks tracks;
    tracks.pid = pids.take(run.files.front().number);
    tracks.name = run_title(run.dir, dir);
    for (const log_file& file : run.files) {
      tracks.of_file.push_back({tracks.pid, tids.take(file.number)});
      tracks.file_name.push_back(log_title(file));
    }
    all.push_back(std::move(tracks));
  }
  return all;
}

}  // namespace lotus::tool
