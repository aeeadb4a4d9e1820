// What many tests need: a directory that goes away, and the lines of the logs in it.
#ifndef LOTUS_TESTS_SUPPORT_HPP
#define LOTUS_TESTS_SUPPORT_HPP

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace support {

namespace fs = std::filesystem;

/// An empty directory, deleted with all that is in it.
class temp_directory {
 public:
  temp_directory() : temp_directory(fs::temp_directory_path()) {}
  explicit temp_directory(const fs::path& parent) {
    std::string name = (parent / "lotus_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~temp_directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  temp_directory(const temp_directory&) = delete;
  temp_directory& operator=(const temp_directory&) = delete;

  const fs::path& path() const { return path_; }
  std::string prefix() const { return (path_ / "lotustrace_log").string(); }

 private:
  fs::path path_;
};

/// Where files are made and deleted fastest.
inline fs::path in_memory() {
  return access("/dev/shm", W_OK) == 0 ? fs::path{"/dev/shm"} : fs::temp_directory_path();
}

/// One line of a log, taken apart.
struct log_line {
  std::string name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::string role;  ///< "main" or "worker"
  std::uint32_t tid = 0;

  std::int64_t end_ns() const { return start_ns + duration_ns; }
};

inline log_line parse_line(const std::string& line, const fs::path& file) {
  const std::string where = file.string() + ": " + line;
  const std::size_t first = line.find(',');
  const std::size_t second = line.find(',', first + 1);
  if (second == std::string::npos || line.find(',', second + 1) != std::string::npos) {
    throw std::runtime_error("not three fields: " + where);
  }
  log_line l;
  l.name = line.substr(0, first);
  std::size_t used = 0;
  l.start_ns = std::stoll(line.substr(first + 1), &used);
  if (used != second - first - 1) throw std::runtime_error("bad start: " + where);
  l.duration_ns = std::stoll(line.substr(second + 1), &used);
  if (used != line.size() - second - 1) throw std::runtime_error("bad duration: " + where);
  const std::string name = file.filename().string();
  l.role = name.find("_main_pid_") != std::string::npos ? "main" : "worker";
  l.tid = static_cast<std::uint32_t>(std::stoul(name.substr(name.rfind('_') + 1)));
  return l;
}

/// All lines of all logs in `directory`, file by file. Throws on a torn or malformed one.
inline std::vector<log_line> read_logs(const fs::path& directory) {
  std::vector<log_line> lines;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().find("_pid_") != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in{file};
    const std::string all{std::istreambuf_iterator<char>{in}, {}};
    if (!all.empty() && all.back() != '\n') throw std::runtime_error("torn: " + file.string());
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      lines.push_back(parse_line(all.substr(at, end - at), file));
      at = end + 1;
    }
  }
  return lines;
}

inline std::size_t count_named(const std::vector<log_line>& lines, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const auto& l) { return l.name == name; }));
}

/// Files in `directory` whose names begin with `start`.
inline std::size_t count_files(const fs::path& directory, const std::string& start) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(start, 0) == 0) ++n;
  }
  return n;
}

}  // namespace support

#endif  // LOTUS_TESTS_SUPPORT_HPP
