// A log that is read while it grows, and the window over its last lines.
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

/// The operation number `i`, which ends at (i + 1) ms.
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

TEST_CASE("only what was appended is read, and a torn line when it is whole") {
  fixture f;
  append(f.path, line(0) + "SOp1,10000");
  CHECK(f.read() == line(0));
  CHECK(f.read().empty());
  append(f.path, "00,1000000\n" + line(2));
  CHECK(f.read() == line(1) + line(2));
  CHECK(f.read().empty());
}

TEST_CASE("of a long log the last lines are read at first, the others never") {
  fixture f;
  constexpr std::int64_t all = 500'000;
  append(f.path, lines(0, all));
  CHECK(f.read((all - 10) * 1'000'000) == lines(all - 11, all));
  append(f.path, line(all));
  CHECK(f.read(0) == line(all));
}

TEST_CASE("no more is read at once than the most") {
  fixture f;
  append(f.path, lines(0, 600'000));
  const std::string got = f.read(0);
  CHECK(got.size() <= growing_log::most_bytes);
  CHECK(got.size() > growing_log::most_bytes - 100);
  CHECK(got.substr(got.size() - line(599'999).size()) == line(599'999));
  append(f.path, lines(600'000, 1'200'000));
  CHECK(f.read(1'199'000 * std::int64_t{1'000'000}) == lines(1'198'999, 1'200'000));
}

TEST_CASE("a log that was moved away is read to its end, and the new one from its beginning") {
  fixture f;
  append(f.path, line(0));
  CHECK(f.read() == line(0));
  append(f.path, line(1));
  std::filesystem::rename(f.path, f.path + ".1");
  append(f.path, line(2));
  CHECK(f.read() == line(1) + line(2));
  CHECK(f.read().empty());
  std::filesystem::remove(f.path);
  append(f.path, line(3));  // the old one is nowhere
  const std::string got = f.read();
  CHECK((got == line(3) || got.empty()));  // the file system may give the same number again
}

TEST_CASE("a log that was emptied is read anew") {
  fixture f;
  append(f.path, lines(0, 3));
  CHECK(f.read() == lines(0, 3));
  std::filesystem::resize_file(f.path, 0);
  append(f.path, line(3));
  CHECK(f.read() == line(3));
}

TEST_CASE("lines that are known already are passed over, also where they are torn") {
  fixture f;
  append(f.path, line(0));
  CHECK(f.read() == line(0));
  f.log.expect(2);
  append(f.path, line(1) + "SOp2,20");
  CHECK(f.read().empty());
  append(f.path, "00000,1000000\n" + line(3));
  CHECK(f.read() == line(3));
}

TEST_CASE("what is beyond the part that counts waits") {
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

TEST_CASE("the window forgets what ended before it, also among damaged lines") {
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

TEST_CASE("lines beside the logs end with their span") {
  CHECK(times_of_line("stage,SDecode,100,20,7", true)->end_ns == 120);
  CHECK(times_of_line("counter,SQueue,100,20,0", true)->end_ns == 100);
  CHECK_FALSE(times_of_line("SDecode,100,20", true));
  CHECK(times_of_line("SDecode,100,20", false)->end_ns == 120);
}
