#include "run_info.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "lotus/run_info.hpp"
#include "names.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

std::string process_info::title() const {
  std::string text = host;
  if (rank) text += ", rank " + std::to_string(*rank);
  return text + ", pid " + std::to_string(pid);
}

run_info run_info::read(const std::string& dir) {
  run_info all;
  std::set<std::string> paths;  // in the order of their times, which their names end in
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(detail::run_info_start, 0) == 0) paths.insert(entry.path().string());
  }
  for (const std::string& path : paths) all.take(path);
  return all;
}

void run_info::take(const std::string& path) {
  process_info& process = by_file_[path];
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "pid") {
      words >> process.pid;
    } else if (key == "parent") {
      words >> process.parent;
    } else if (key == "host") {
      std::string name;
      std::getline(words >> std::ws, name);
      process.host = decode_name(name).substr(name.empty() ? 0 : 1);
    } else if (key == "rank") {
      std::uint64_t rank = 0;
      if (words >> rank) process.rank = rank;
    } else if (key == "thread") {
      std::uint64_t tid = 0;
      std::string name;
      if (!(words >> tid) || !std::getline(words >> std::ws, name)) continue;
      process.threads[tid] = decode_name(name).substr(1);
      by_tid_[tid] = &process;
    }
  }
}

const process_info* run_info::parent_of(const process_info& process) const {
  for (const auto& [file, other] : by_file_) {
    if (other.pid == process.parent) return &other;
  }
  return nullptr;
}

const process_info* run_info::process_of(std::uint64_t tid) const {
  const auto found = by_tid_.find(tid);
  return found == by_tid_.end() ? nullptr : found->second;
}

}  // namespace lotus::tool
