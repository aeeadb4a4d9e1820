#include "waits/data/process_files.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/files/found_file.hpp"
#include "base/text.hpp"
#include "log/log_reader.hpp"
#include "lotus/folder/hidden_files.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// When the file of a process becomes too long, the process appends this text to the name of the
/// file and continues in a new file.
constexpr std::string_view older_end = "_older";

}  // namespace

std::vector<process_file> files_of_processes(const run_files& run, std::string_view start,
                                             diagnostic_log& diagnostics) {
  const std::string& dir = run.info_dir.empty() ? run.dir : run.info_dir;
  // For each file: the end of its name, without older_end, and whether it is the newer file.
  std::vector<std::pair<std::string, bool>> endings;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(start, 0) != 0) continue;
    if (!is_found_file(entry)) {
      diagnostics.warning(entry.path().string() + ": ignored: it is a link or not a regular file");
      continue;
    }
    std::string ending = name.substr(start.size());
    const bool older =
        ending.size() > older_end.size() &&
        ending.compare(ending.size() - older_end.size(), older_end.size(), older_end.data()) == 0;
    if (older) ending.resize(ending.size() - older_end.size());
    if (run.earlier_info.count(lotus::detail::run_info_start + ending) != 0) continue;
    endings.emplace_back(std::move(ending), !older);
  }
  std::sort(endings.begin(), endings.end());
  std::vector<process_file> files;
  for (const auto& [ending, newer] : endings) {
    std::string path = dir;
    path.append(1, '/').append(start).append(ending);
    if (!newer) path.append(older_end);
    files.push_back({std::move(path), ending});
  }
  return files;
}

void read_whole_lines(const std::string& path, const std::string& damage,
                      diagnostic_log& diagnostics,
                      const std::function<bool(std::string_view line)>& take_line) {
  log_file file;
  file.path = path;
  std::error_code error;
  file.bytes = fs::file_size(path, error);
  if (error || file.bytes == 0) return;
  std::uint64_t number = 0;
  std::uint64_t damaged = 0;
  std::uint64_t first = 0;
  block_reader blocks(file);
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    while (!block.empty()) {
      // Ignore a last line without a line end, because the process may still be writing it.
      if (block.find('\n') == std::string_view::npos) break;
      ++number;
      const std::string_view line = take(block, '\n');
      if (line.empty() || take_line(line)) continue;
      if (damaged++ == 0) first = number;
    }
    if (!block.empty()) break;
  }
  if (damaged == 0) return;
  diagnostics.malformed(
      path, first,
      damage + counted(damaged, "such line", "such lines") + " ignored, all others are used");
  diagnostics.end_of_file(path);
}

}  // namespace lotus::tool
