#include "base/formats/json_writer.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace lotus::tool;

namespace {

/// Calls `write` with a new writer and returns the resulting text.
template <class Write>
std::string written(Write write, json_style style = json_style::compact) {
  std::string text;
  json_writer to(text, style);
  write(to);
  return text;
}

template <class Value>
std::string value_text(const Value& value) {
  return written([&](json_writer& to) { to.value(value); });
}

}  // namespace

TEST_CASE("a value is written according to its type") {
  CHECK(value_text("a\"b") == R"("a\"b")");
  CHECK(value_text(std::string("\n\xFF")) == R"("\u000a%FF")");
  CHECK(value_text(std::string("\x7F\xC2\x9B")) == R"("\u007f\u009b")");  // terminals may obey them
  CHECK(value_text(true) == "true");
  CHECK(value_text(false) == "false");
  CHECK(value_text(nullptr) == "null");
  CHECK(value_text(0.1) == "0.1");
  CHECK(value_text(std::nan("")) == "null");
  CHECK(value_text(std::numeric_limits<double>::infinity()) == "null");
  CHECK(value_text(std::optional<int>(3)) == "3");
  CHECK(value_text(std::optional<double>()) == "null");
}

TEST_CASE("integers are written exactly") {
  CHECK(value_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(value_text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(value_text(std::uint8_t{200}) == "200");
}

TEST_CASE("commas are written between elements only") {
  const auto write = [](json_writer& to) {
    to.begin_object().member("a", 1).key("b").begin_array().end_array();
    to.key("c").begin_array().value(1).begin_object().end_object().value("x").end_array();
    to.key("d").begin_object().member("e", nullptr).member("f", false).end_object();
    to.key("g").raw("[1]").end_object();
  };
  CHECK(written(write) == R"({"a":1,"b":[],"c":[1,{},"x"],"d":{"e":null,"f":false},"g":[1]})");
  CHECK(written(write, json_style::spaced) ==
        R"({"a": 1, "b": [], "c": [1, {}, "x"], "d": {"e": null, "f": false}, "g": [1]})");
}

TEST_CASE("keys are escaped like other texts") {
  CHECK(written([](json_writer& to) { to.begin_object().member("a\"\n", 1).end_object(); }) ==
        R"({"a\"\u000a":1})");
}

TEST_CASE("a line break follows the comma and precedes the next element or bracket") {
  const auto write = [](json_writer& to) {
    to.begin_object().newline(2).key("a").begin_array();
    for (int i = 0; i < 2; ++i) to.newline(4).value(i);
    to.value(2).newline(2).end_array().newline(2).member("b", true).newline().end_object();
  };
  CHECK(written(write) == "{\n  \"a\":[\n    0,\n    1,2\n  ],\n  \"b\":true\n}");
  CHECK(written(write, json_style::spaced) ==
        "{\n  \"a\": [\n    0,\n    1, 2\n  ],\n  \"b\": true\n}");
}

TEST_CASE("the caller may take the text written so far at any time") {
  std::string text;
  std::string taken;
  json_writer to(text);
  const auto take = [&] {
    taken += text;
    text.clear();
  };
  to.begin_array();
  take();
  for (int i = 0; i < 3; ++i) {
    to.newline().begin_object();
    take();
    to.key("i");
    take();
    to.value(i).end_object();
    take();
  }
  to.end_array();
  take();
  CHECK(taken == "[\n{\"i\":0},\n{\"i\":1},\n{\"i\":2}]");
}

TEST_CASE("a list is written element by element") {
  const std::vector<int> all{1, 2};
  CHECK(written([&](json_writer& to) { to.list(all); }) == "[1,2]");
  CHECK(written([&](json_writer& to) { to.list(all, [&](int one) { to.row(one, "x"); }); }) ==
        R"([[1,"x"],[2,"x"]])");
}

TEST_CASE("members can be written without their object") {
  CHECK(written([](json_writer& to) { to.member("a", "b").member("c", 2); }) == R"("a":"b","c":2)");
}
