// Tests how stacks are copied, reduced to addresses and written to the file of stacks.
#include "lotus/waits/wait_stacks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using lotus::detail::code_ranges;
using lotus::detail::entered_call;
using lotus::detail::stack_words;
using lotus::detail::wait_folder;
using lotus::detail::wait_stacks;

namespace {

/// Memory in the place of a stack.
struct planted_stack {
  alignas(8) std::array<std::uint64_t, stack_words::max_words> words{};

  std::uint64_t address(std::size_t word) const {
    return reinterpret_cast<std::uint64_t>(words.data()) + 8 * word;
  }
  entered_call call() const {
    entered_call of;
    of.sp = address(0);
    of.pc = code();
    return of;
  }
  static std::uint64_t code() { return reinterpret_cast<std::uint64_t>(&getpid); }
};

std::string hexadecimal(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

std::string line_of(const planted_stack& planted) {
  const auto copy = std::make_unique<stack_words>();
  const auto code = std::make_unique<code_ranges>();
  code->read();
  copy->copy(planted.call());
  copy->keep_addresses(*code);
  std::string text(stack_words::max_text, '\0');
  text.resize(copy->put(7, text.data()));
  return text;
}

/// A folder with a file of stacks.
struct stack_folder {
  support::temp_directory dir;
  wait_folder place;

  stack_folder() {
    place.directory = open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place.mode = 0666;
    std::snprintf(place.info, sizeof(place.info), ".lotus_info_1_a");
  }
  stack_folder(const stack_folder&) = delete;
  stack_folder& operator=(const stack_folder&) = delete;
  ~stack_folder() { close(place.directory); }

  std::string path(const std::string& end = "") const {
    return (dir.path() / (".lotus_stacks_1_a" + end)).string();
  }
  std::vector<std::string> lines(const std::string& end = "") const {
    std::ifstream in(path(end));
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
};

std::size_t count_of(const std::vector<std::string>& lines, const std::string& kind) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.rfind(kind + ',', 0) == 0; }));
}

/// Writes a stack to the file of stacks. Each `number` gives a different stack.
void write(wait_stacks& stacks, planted_stack& planted, std::size_t number,
           const wait_folder& place) {
  planted.words[5] = planted.address(number % stack_words::max_words);
  planted.words[6] = planted.address(number / stack_words::max_words);
  stacks.stack().copy(planted.call());
  stacks.write(static_cast<std::int64_t>(number), 11, place);
}

/// Checks that each stack is defined before it is referred to, and that lines are complete.
void check_references(const std::vector<std::string>& lines) {
  std::vector<std::string> defined;
  bool code = false;
  for (const std::string& line : lines) {
    const std::string kind = line.substr(0, line.find(','));
    if (kind == "code") code = true;
    if (kind == "stack") defined.push_back(line.substr(6, line.find(',', 6) - 6));
    if (kind == "stack") CHECK(code);
    if (kind != "seen") continue;
    const std::string id = line.substr(line.rfind(',') + 1);
    CHECK(std::find(defined.begin(), defined.end(), id) != defined.end());
  }
}

}  // namespace

TEST_CASE("of a stack only addresses of code and of the stack itself are kept") {
  planted_stack planted;
  std::memcpy(&planted.words[1], "HIDDENxy", 8);
  planted.words[2] = planted_stack::code();
  planted.words[3] = planted.address(100);
  planted.words[4] = planted.address(stack_words::max_words);  // the end of the copy
  planted.words[5] = planted.address(stack_words::max_words) + 1;
  planted.words[6] = planted.address(0) - 8;
  planted.words[7] = 4711;
  planted.words[8] = 1;
  const auto heap = std::make_unique<int>(1);
  planted.words[9] = reinterpret_cast<std::uint64_t>(heap.get());
  planted.words[1023] = planted_stack::code();
  const std::string code = hexadecimal(planted_stack::code());
  CHECK(line_of(planted) == "stack,7," + code + ',' + hexadecimal(planted.address(0)) +
                                ",2000, 2:" + code + " 3+320 4+2000 3ff:" + code + '\n');
}

TEST_CASE("the largest stack fits into a line") {
  planted_stack planted;
  planted.words.fill(planted_stack::code());
  const std::string line = line_of(planted);
  CHECK(line.size() <= stack_words::max_text);
  CHECK(std::count(line.begin(), line.end(), ':') == 1024);
}

TEST_CASE("a stack that cannot be read is empty") {
  const auto copy = std::make_unique<stack_words>();
  entered_call call;
  copy->copy(call);
  CHECK(copy->empty());
  call.sp = 4096;  // never mapped
  copy->copy(call);
  CHECK(copy->empty());
  call.sp = planted_stack{}.address(0) + 1;
  copy->copy(call);
  CHECK(copy->empty());
}

TEST_CASE("each different stack is written once, in a file of mode 0600") {
  const stack_folder folder;
  const auto stacks = std::make_unique<wait_stacks>();
  const auto planted = std::make_unique<planted_stack>();
  const mode_t before = umask(0);
  stacks->begin();
  for (const std::size_t number : {1U, 2U, 1U, 1U}) write(*stacks, *planted, number, folder.place);
  umask(before);
  const std::vector<std::string> lines = folder.lines();
  CHECK(count_of(lines, "stack") == 2);
  CHECK(count_of(lines, "seen") == 4);
  CHECK(count_of(lines, "maps") == 1);
  check_references(lines);
  struct stat status {};
  REQUIRE(stat(folder.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600);
}

TEST_CASE("the number of new stacks per second is limited") {
  const stack_folder folder;
  const auto stacks = std::make_unique<wait_stacks>();
  const auto planted = std::make_unique<planted_stack>();
  stacks->begin();
  for (std::size_t number = 0; number < 20'000; ++number) {
    write(*stacks, *planted, number, folder.place);
  }
  const std::size_t written = count_of(folder.lines(), "stack");
  CHECK(written >= 256);
  CHECK(written < 10'000);
}

TEST_CASE("a file that has grown becomes the older one, and the new one is complete") {
  stack_folder folder;
  folder.place.max_bytes = 20'000;
  const auto stacks = std::make_unique<wait_stacks>();
  const auto planted = std::make_unique<planted_stack>();
  planted->words.fill(planted_stack::code());
  stacks->begin();
  for (std::size_t number = 0; number < 8; ++number) {
    write(*stacks, *planted, number, folder.place);
  }
  for (const char* const end : {"", "_older"}) {
    const std::vector<std::string> lines = folder.lines(end);
    CHECK(count_of(lines, "stack") >= 1);
    check_references(lines);
    CHECK(support::fs::file_size(folder.path(end)) < 100'000);
  }
}

TEST_CASE("after the disk was full, stacks are written again completely") {
  const stack_folder folder;
  const auto stacks = std::make_unique<wait_stacks>();
  const auto planted = std::make_unique<planted_stack>();
  planted->words.fill(planted_stack::code());
  stacks->begin();
  write(*stacks, *planted, 1, folder.place);
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit normal{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &normal) == 0);
  rlimit full = normal;
  full.rlim_cur = support::fs::file_size(folder.path()) + 100;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  for (std::size_t number = 2; number < 5; ++number) {
    write(*stacks, *planted, number, folder.place);
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &normal) == 0);
  signal(SIGXFSZ, before);
  CHECK(count_of(folder.lines(), "seen") == 1);
  sleep(1);  // after a failure, nothing is written for a second
  usleep(50'000);
  for (std::size_t number = 2; number < 5; ++number) {
    write(*stacks, *planted, number, folder.place);
  }
  const std::vector<std::string> lines = folder.lines();
  CHECK(count_of(lines, "seen") == 4);
  check_references(lines);
}
