// Provides a temporary directory, and functions that read the logs in a directory.
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

/// Returns how often to repeat what happens at random: less often with LOTUS_TEST_BRIEFLY.
constexpr int rounds(int thorough) {
#ifdef LOTUS_TEST_BRIEFLY
  return (thorough + 4) / 5;
#else
  return thorough;
#endif
}

/// A new empty directory; the destructor deletes it with its contents.
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

/// Replaces this process, which is a forked child, by `program`. If the test runs under an
/// emulator, the program does too.
[[noreturn]] inline void exec_program(const char* program, std::vector<std::string> arguments) {
#ifdef LOTUS_TEST_EMULATOR
  std::vector<std::string> command{LOTUS_TEST_EMULATOR};
  arguments.front() = program;
  command.insert(command.end(), arguments.begin(), arguments.end());
  program = command.front().c_str();
  arguments = std::move(command);
#endif
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execvp(program, words.data());
  _exit(127);
}

/// Returns the folder where creating and deleting files is fastest.
inline fs::path in_memory() {
  return access("/dev/shm", W_OK) == 0 ? fs::path{"/dev/shm"} : fs::temp_directory_path();
}

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

/// Returns a folder with the logs of `directory` as text. If the variable LOTUS_TEST_UNPACK is set,
/// the logs are compact; the program that it names (lotus-tool) converts them into `unpacked`.
inline fs::path with_text_logs(const fs::path& directory, const temp_directory& unpacked) {
  const char* tool = std::getenv("LOTUS_TEST_UNPACK");
  if (tool == nullptr) return directory;
  const std::string command = std::string(tool) + " unpack -q '" + directory.string() + "' -o '" +
                              unpacked.path().string() + "' >/dev/null 2>&1";
  // The exit status is ignored: without logs the command fails, and `unpacked` is empty.
  return std::system(command.c_str()) < 0 ? directory : unpacked.path();
}

/// Returns the sorted paths of the logs in `directory`; if `hidden`, those of its side logs
/// instead.
inline std::vector<fs::path> log_files(const fs::path& directory, bool hidden) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find("_pid_") != std::string::npos && (name[0] == '.') == hidden) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Calls each(line, file) for all lines of all files. Throws if a file ends with an incomplete
/// line.
template <class Each>
void for_each_line(const std::vector<fs::path>& files, Each&& each) {
  for (const fs::path& file : files) {
    std::ifstream in{file};
    const std::string all{std::istreambuf_iterator<char>{in}, {}};
    if (!all.empty() && all.back() != '\n') throw std::runtime_error("torn: " + file.string());
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      each(all.substr(at, end - at), file);
      at = end + 1;
    }
  }
}

/// Returns all lines of all logs in `directory`, file by file. Throws if a line is incomplete or
/// malformed.
inline std::vector<log_line> read_logs(const fs::path& directory) {
  std::vector<log_line> lines;
  const temp_directory unpacked;
  for_each_line(log_files(with_text_logs(directory, unpacked), false),
                [&](const std::string& line, const fs::path& file) {
                  lines.push_back(parse_line(line, file));
                });
  return lines;
}

/// The fields of one line of a hidden side log.
struct side_log_line {
  std::string kind;
  std::string name;
  std::int64_t time_ns = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;  ///< second number of the line; -1 if there is none
  std::uint32_t tid = 0;
};

inline side_log_line parse_side_line(const std::string& line, const fs::path& file) {
  std::vector<std::string> fields{""};
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (fields.size() != 5) throw std::runtime_error("not five fields: " + file.string() + line);
  const auto number = [&](const std::string& text) {
    std::size_t used = 0;
    const std::int64_t value = fields[0] == "number"
                                   ? static_cast<std::int64_t>(std::stoull(text, &used))
                                   : std::stoll(text, &used);
    if (used != text.size()) throw std::runtime_error("bad number: " + file.string() + line);
    return value;
  };
  const std::string path = file.string();
  return {fields[0],
          fields[1],
          number(fields[2]),
          number(fields[3]),
          fields[4].empty() ? -1 : number(fields[4]),
          static_cast<std::uint32_t>(std::stoul(path.substr(path.rfind('_') + 1)))};
}

/// Returns all lines of one kind in the side logs of `directory`. Throws if a line is incomplete or
/// malformed.
inline std::vector<side_log_line> read_side_log(const fs::path& directory,
                                                const std::string& kind) {
  std::vector<side_log_line> lines;
  const temp_directory unpacked;
  for_each_line(log_files(with_text_logs(directory, unpacked), true),
                [&](const std::string& line, const fs::path& file) {
                  const side_log_line l = parse_side_line(line, file);
                  if (l.kind == kind) lines.push_back(l);
                });
  return lines;
}

inline std::size_t count_named(const std::vector<log_line>& lines, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const auto& l) { return l.name == name; }));
}

/// Returns the number of files in `directory` whose names begin with `start`.
inline std::size_t count_files(const fs::path& directory, const std::string& start) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().rfind(start, 0) == 0) ++n;
  }
  return n;
}

}  // namespace support

#endif  // LOTUS_TESTS_SUPPORT_HPP
