// Tests reading a log while it grows, and the window that contains its last lines.
#include "commands/top/growing_log.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "catch.hpp"
#include "commands/top/line_window.hpp"
#include "log/window/line_times.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::temp_dir;

namespace {

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

log_extent extent_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return {status.st_ino, size, size};
}

/// Returns the line of operation number `i`, which ends at (i + 1) ms.
std::string line(std::int64_t i) {
  return "SOp" + std::to_string(i) + ',' + std::to_string(i * 1'000'000) + ",1000000\n";
}

std::string lines(std::int64_t first, std::int64_t last) {
  std::string text;
  for (std::int64_t i = first; i < last; ++i) text += line(i);
  return text;
}

struct fixture {
  temp_dir dir;
  std::string path = dir.path() + "/lotustrace_log_worker_pid_1";
  growing_log log{path, false};

  std::string read(std::int64_t since_ns = 0) { return log.read(extent_of(path), since_ns); }
};

}  // namespace

TEST_CASE("only appended lines are read, and a torn line only once it is complete") {
  fixture f;
  append(f.path, line(0) + "SOp1,10000");
  CHECK(f.read() == line(0));
  CHECK(f.read().empty());
  append(f.path, "00,1000000\n" + line(2));
  CHECK(f.read() == line(1) + line(2));
  CHECK(f.read().empty());
}

TEST_CASE("only the last lines of a long log are read at first") {
  fixture f;
  constexpr std::int64_t all = 500'000;
  append(f.path, lines(0, all));
  CHECK(f.read((all - 10) * 1'000'000) == lines(all - 11, all));
  append(f.path, line(all));
  CHECK(f.read(0) == line(all));
}

TEST_CASE("one reading is limited to the maximum number of bytes") {
  fixture f;
  append(f.path, lines(0, 600'000));
  const std::string got = f.read(0);
  CHECK(got.size() <= growing_log::max_bytes);
  CHECK(got.size() > growing_log::max_bytes - 100);
  CHECK(got.substr(got.size() - line(599'999).size()) == line(599'999));
  append(f.path, lines(600'000, 1'200'000));
  CHECK(f.read(1'199'000 * std::int64_t{1'000'000}) == lines(1'198'999, 1'200'000));
}

TEST_CASE("a log that was moved is read to its end, and the new one from its beginning") {
  fixture f;
  append(f.path, line(0));
  CHECK(f.read() == line(0));
  append(f.path, line(1));
  std::filesystem::rename(f.path, f.path + ".1");
  append(f.path, line(2));
  CHECK(f.read() == line(1) + line(2));
  CHECK(f.read().empty());
  std::filesystem::remove(f.path);
  append(f.path, line(3));  // the path now belongs to a new file, and the old one is gone
  const std::string got = f.read();
  CHECK((got == line(3) || got.empty()));  // the file system may reuse the inode number
}

TEST_CASE("a log that was truncated is read again from its beginning") {
  fixture f;
  append(f.path, lines(0, 3));
  CHECK(f.read() == lines(0, 3));
  std::filesystem::resize_file(f.path, 0);
  append(f.path, line(3));
  CHECK(f.read() == line(3));
}

TEST_CASE("lines that are already known are skipped, even if they are torn") {
  fixture f;
  append(f.path, line(0));
  CHECK(f.read() == line(0));
  f.log.expect(2);
  append(f.path, line(1) + "SOp2,20");
  CHECK(f.read().empty());
  append(f.path, "00000,1000000\n" + line(3));
  CHECK(f.read() == line(3));
}

TEST_CASE("bytes beyond the given extent are not read yet") {
  fixture f;
  append(f.path, lines(0, 2));
  log_extent some = extent_of(f.path);
  some.bytes = line(0).size();
  CHECK(f.log.read(some, 0) == line(0));
  CHECK(f.read() == line(1));
}

TEST_CASE("a line without an end takes no memory") {
  fixture f;
  append(f.path, "S" + std::string(3U << 20U, 'x'));
  CHECK(f.read().empty());
  append(f.path, "\n" + line(0));
  CHECK(f.read().find(line(0)) != std::string::npos);
}

TEST_CASE("the window drops lines that ended before it, even among damaged lines") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const auto count = static_cast<std::int64_t>(random() % 30);
    for (std::int64_t i = 0; i < count; ++i) {
      if (random() % 4 == 0) text += "damaged\n";
      if (random() % 9 == 0) text += "\n";
      text += line(i);
    }
    line_window window(false);
    const std::size_t half = count == 0 ? 0 : text.find(line(count / 2));
    window.add(text.substr(0, half));
    window.add(text.substr(half));
    const auto begin = static_cast<std::int64_t>(random() % 32);
    window.trim(begin * 1'000'000 + 1);
    std::string kept = window.text();
    CHECK(window.bytes() == kept.size());
    for (std::int64_t i = 0; i < count; ++i) {
      CHECK((kept.find(line(i)) != std::string::npos) == (i >= begin));
    }
  }
}

TEST_CASE("times_of_line returns the end of the span on a line of a log or side log") {
  CHECK(times_of_line("stage,SDecode,100,20,7", true)->end_ns == 120);
  CHECK(times_of_line("counter,SQueue,100,20,0", true)->end_ns == 100);
  CHECK_FALSE(times_of_line("SDecode,100,20", true));
  CHECK(times_of_line("SDecode,100,20", false)->end_ns == 120);
}
