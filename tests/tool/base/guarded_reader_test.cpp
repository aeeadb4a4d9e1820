// Tests that a file that is made to use up its reader's time, memory or stack ends only the child
// process that reads it.
#include "base/guarded_reader.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "catch.hpp"

using lotus::tool::guarded_reader;

namespace {

/// Needs a frame for each call, and does something after it.
std::size_t deeper(const volatile char* outer, std::size_t depth) {  // NOLINT(misc-no-recursion)
  const volatile char room[256] = {*outer};
  return depth == 0 ? 0 : deeper(room, depth - 1) + static_cast<unsigned char>(room[0]);
}

std::string answer(const std::string& question) {
  if (question == "loop") {
    for (volatile bool on = true; on;) {
    }
  }
  if (question == "memory") {
    std::vector<std::string> all;
    while (true) all.emplace_back(std::size_t{1} << 20U, 'x');
  }
  const char begin = 1;
  if (question == "stack") return std::to_string(deeper(&begin, 100'000'000));
  return "answer to " + question;
}

}  // namespace

TEST_CASE("answers come from the child process until it exceeds its budget") {
  const std::string attack = GENERATE("loop", "memory", "stack");
  const auto began = std::chrono::steady_clock::now();
  guarded_reader reader({0}, answer);
  CHECK(reader.ask("a").value_or("") == "answer to a");
  CHECK(reader.ask(std::string(100'000, 'b')).value_or("").size() == 100'010);
  CHECK_FALSE(reader.ask(attack).has_value());
  CHECK_FALSE(reader.ask("a").has_value());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(250));
  guarded_reader other({0}, answer);
  CHECK(other.ask("a").value_or("") == "answer to a");
}

TEST_CASE("brackets in JSON are counted outside of texts only") {
  CHECK_FALSE(lotus::tool::is_nested_too_deeply(R"({"a":["[[[[",{"b":"\"[["}]})"));
  CHECK_FALSE(lotus::tool::is_nested_too_deeply(std::string(200, '[')));
  CHECK(lotus::tool::is_nested_too_deeply(std::string(201, '[')));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[]";
  CHECK_FALSE(lotus::tool::is_nested_too_deeply(many));
}
