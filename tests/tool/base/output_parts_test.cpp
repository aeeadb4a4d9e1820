#include "base/files/output_parts.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "base/files/output_buffer.hpp"
#include "base/files/output_file.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using lotus::tool::form_in_parts;
using lotus::tool::input_error;
using lotus::tool::output_buffer;
using lotus::tool::output_file;
using lotus::tool_test::read_file;
using lotus::tool_test::temp_dir;

namespace {

/// Writes the lines "PART 0", "PART 1" and so on. Some lines do not fit in a buffer that is nearly
/// full.
void form_lines(std::size_t part, std::size_t lines, output_buffer& out) {
  for (std::size_t i = 0; i < lines; ++i) {
    out.write(std::to_string(part) + ' ');
    const std::string number = std::to_string(i) + (i % 500 == 0 ? std::string(40'000, '.') : "");
    if (number.size() < output_buffer::room_bytes) {
      char* const to = out.room(number.size());
      number.copy(to, number.size());
      out.advance_to(to + number.size());
    } else {
      out.write(number);
    }
    out.write("\n");
    out.end_piece();
  }
}

/// Forms an output of parts with these numbers of lines, between a first and a last line.
std::string formed(const std::vector<std::size_t>& lines,
                   const std::function<void(std::size_t)>& before = {}) {
  std::ostringstream out;
  output_file file("-", out);
  file.write("first\n");
  const bool done = form_in_parts(file, lines.size(), [&](std::size_t part, output_buffer& to) {
    if (before) before(part);
    form_lines(part, lines[part], to);
  });
  CHECK(done);
  file.write("last\n");
  file.commit();
  return out.str();
}

void wait_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

TEST_CASE("the parts of an output are complete, in order and divided only between lines") {
  const std::vector<std::size_t> lines{30'000, 0, 7, 90'000};
  std::istringstream text(formed(lines));
  std::string line;
  REQUIRE(std::getline(text, line));
  CHECK(line == "first");
  std::map<std::size_t, std::size_t> next;
  bool in_turn = false;  // whether the parts follow each other more than once
  std::size_t last_part = 0;
  while (std::getline(text, line) && line != "last") {
    const auto part = static_cast<std::size_t>(line.front() - '0');
    const std::size_t number = next[part]++;
    REQUIRE(line.substr(2, line.find('.') - 2) == std::to_string(number));
    in_turn = in_turn || part < last_part;
    last_part = part;
  }
  CHECK(line == "last");
  CHECK_FALSE(std::getline(text, line));
  CHECK(in_turn);
  for (std::size_t part = 0; part < lines.size(); ++part) CHECK(next[part] == lines[part]);
}

TEST_CASE("the order of parts does not depend on the threads' speeds") {
  const std::vector<std::size_t> lines{20'000, 30'000, 10'000};
  const std::string expected = formed(lines);
  for (const std::size_t slow : {0U, 1U, 2U}) {
    const std::string slowly = formed(lines, [slow](std::size_t part) {
      if (part == slow) wait_ms(50);
    });
    CHECK(slowly == expected);
  }
}

TEST_CASE("parts can be compressed") {
  const temp_dir dir;
  std::ostringstream unused;
  const std::string path = dir.path() + "/a.gz";
  const std::vector<std::size_t> lines{20'000, 30'000};
  {
    output_file file(path, unused, true);
    file.write("first\n");
    form_in_parts(file, 2,
                  [&](std::size_t part, output_buffer& to) { form_lines(part, lines[part], to); });
    file.write("last\n");
    file.commit();
  }
  std::string text(20'000'000, '\0');
  gzFile zipped = gzopen(path.c_str(), "rb");
  text.resize(static_cast<std::size_t>(gzread(zipped, text.data(), 20'000'000)));
  gzclose(zipped);
  CHECK(text == formed(lines));
}

TEST_CASE("parts follow what was written before by the second thread") {
  const temp_dir dir;
  std::ostringstream unused;
  const std::string path = dir.path() + "/a";
  const std::string before(3'000'000, 'x');
  output_file file(path, unused);
  file.write(before);
  form_in_parts(file, 2, [](std::size_t part, output_buffer& to) { form_lines(part, 3, to); });
  file.write(before);
  file.commit();
  const std::string text = read_file(path);
  CHECK(text.compare(0, before.size(), before) == 0);
  CHECK(text.compare(text.size() - before.size(), before.size(), before) == 0);
  CHECK(text.find("0 1\n0 2\n") != std::string::npos);
}

TEST_CASE("an error in one part ends all parts") {
  std::ostringstream out;
  output_file file("-", out);
  for (const std::size_t failing : {0U, 1U, 2U}) {
    const auto form = [failing](std::size_t part, output_buffer& to) {
      if (part == failing) {
        wait_ms(20);
        throw std::runtime_error("planted");
      }
      form_lines(part, 200'000, to);
    };
    CHECK_THROWS_WITH(form_in_parts(file, 3, form), "planted");
  }
}

TEST_CASE("a full disk ends all parts with an error") {
  std::ostringstream unused;
  output_file file("/dev/full", unused);
  const auto form = [](std::size_t part, output_buffer& to) { form_lines(part, 50'000, to); };
  CHECK_THROWS_AS(form_in_parts(file, 2, form), input_error);
}

TEST_CASE("if no further thread can be created, nothing is formed") {
  const pid_t child = fork();
  if (child == 0) {
    std::ostringstream out;
    output_file file("-", out);
    // Stacks for which there is no address space.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << (sizeof(void*) * 8 - 2));
    pthread_setattr_default_np(&attributes);
    bool called = false;
    const bool done =
        form_in_parts(file, 2, [&called](std::size_t, output_buffer&) { called = true; });
    _exit(done || called ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
