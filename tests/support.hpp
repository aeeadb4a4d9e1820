// Provides a temporary directory, and functions that read the logs in a directory.
#ifndef LOTUS_TESTS_SUPPORT_HPP
#define LOTUS_TESTS_SUPPORT_HPP

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
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

/// Returns a random seed, or that of the variable LOTUS_TEST_SEED, and prints it.
inline std::uint64_t seed() {
  const char* given = std::getenv("LOTUS_TEST_SEED");
  const std::uint64_t s =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (LOTUS_TEST_SEED repeats it)\n", static_cast<unsigned long long>(s));
  return s;
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

/// Returns the number that `text` consists of. Throws std::runtime_error with `where` otherwise.
template <class Number>
Number number_of(std::string_view text, std::string_view where) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::runtime_error("bad number: " + std::string{where} + ": " + std::string{text});
  }
  return number;
}

/// What the name of a log tells about all of its lines.
struct log_owner {
  explicit log_owner(const fs::path& log) : file{log} {
    const std::string_view path = file.native();
    if (path.rfind("_main_pid_") != std::string_view::npos) role = "main";
    tid = number_of<std::uint32_t>(path.substr(path.rfind('_') + 1), path);
  }

  const fs::path& file;  ///< borrowed
  const char* role = "worker";
  std::uint32_t tid = 0;
};

inline log_line parse_line(std::string_view line, const log_owner& owner) {
  const std::size_t first = line.find(',');
  const std::size_t second = line.find(',', first + 1);
  if (second == std::string_view::npos || line.find(',', second + 1) != std::string_view::npos) {
    throw std::runtime_error("not three fields: " + owner.file.string() + ": " + std::string{line});
  }
  log_line l;
  l.name = line.substr(0, first);
  l.start_ns =
      number_of<std::int64_t>(line.substr(first + 1, second - first - 1), owner.file.native());
  l.duration_ns = number_of<std::int64_t>(line.substr(second + 1), owner.file.native());
  l.role = owner.role;
  l.tid = owner.tid;
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

/// Calls each(line, owner) for all lines of all files. Throws if a file ends with an incomplete
/// line.
template <class Each>
void for_each_line(const std::vector<fs::path>& files, Each&& each) {
  for (const fs::path& file : files) {
    std::ifstream in{file, std::ios::binary};
    std::error_code gone;  // the library may have deleted the file, or be writing to it
    const std::uintmax_t size = fs::file_size(file, gone);
    std::string all(gone ? 0 : size, '\0');
    in.read(all.data(), static_cast<std::streamsize>(all.size()));
    all.resize(static_cast<std::size_t>(in.gcount()));
    if (all.empty()) continue;
    if (all.back() != '\n') throw std::runtime_error("torn: " + file.string());
    const log_owner owner{file};
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      each(std::string_view{all}.substr(at, end - at), owner);
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
                [&](std::string_view line, const log_owner& owner) {
                  lines.push_back(parse_line(line, owner));
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

inline side_log_line parse_side_line(std::string_view line, const log_owner& owner) {
  std::array<std::string_view, 5> fields;
  std::size_t count = 0;
  for (std::string_view rest = line;; rest.remove_prefix(rest.find(',') + 1)) {
    const std::string_view field = rest.substr(0, rest.find(','));
    if (count < fields.size()) fields[count] = field;
    ++count;
    if (field.size() == rest.size()) break;
  }
  if (count != fields.size()) {
    throw std::runtime_error("not five fields: " + owner.file.string() + ": " + std::string{line});
  }
  const auto number = [&](std::string_view text) {
    return fields[0] == "number"
               ? static_cast<std::int64_t>(number_of<std::uint64_t>(text, owner.file.native()))
               : number_of<std::int64_t>(text, owner.file.native());
  };
  return {std::string{fields[0]},
          std::string{fields[1]},
          number(fields[2]),
          number(fields[3]),
          fields[4].empty() ? -1 : number(fields[4]),
          owner.tid};
}

/// Returns all lines of one kind in the side logs of `directory`. Throws if a line is incomplete or
/// malformed.
inline std::vector<side_log_line> read_side_log(const fs::path& directory,
                                                const std::string& kind) {
  std::vector<side_log_line> lines;
  const temp_directory unpacked;
  for_each_line(log_files(with_text_logs(directory, unpacked), true),
                [&](std::string_view line, const log_owner& owner) {
                  const side_log_line l = parse_side_line(line, owner);
                  if (l.kind == kind) lines.push_back(l);
                });
  return lines;
}

/// Returns the second numbers, or those of another column, of the lines of one name.
inline std::vector<std::int64_t> numbers_of(
    const std::vector<side_log_line>& lines, const std::string& name,
    std::int64_t side_log_line::*column = &side_log_line::b) {
  std::vector<std::int64_t> numbers;
  for (const side_log_line& l : lines) {
    if (l.name == name) numbers.push_back(l.*column);
  }
  return numbers;
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
