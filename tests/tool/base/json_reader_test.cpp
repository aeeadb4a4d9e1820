#include "base/formats/json_reader.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "base/files/byte_stream.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::contains;
using lotus::tool_test::temp_dir;

namespace {

/// Stores the events that it receives, and the stream's position at the last event.
class event_log final : public json_events {
 public:
  explicit event_log(const byte_stream& stream) : stream_(stream) {}

  bool begin_object() override { return add("{"); }
  bool end_object() override { return add("}"); }
  bool begin_array() override { return add("["); }
  bool end_array() override { return add("]"); }
  bool key(std::string_view name) override { return add("k:" + std::string(name)); }
  bool text(std::string_view value) override { return add("t:" + std::string(value)); }
  bool whole_number(std::uint64_t value) override { return add("n:" + std::to_string(value)); }
  bool other_value() override { return add("o"); }

  std::string all;
  std::uint64_t last_at = 0;

 private:
  bool add(const std::string& what) {
    all += what + ' ';
    last_at = stream_.taken();
    return what != "t:stop";
  }
  const byte_stream& stream_;
};

struct outcome {
  std::string all;
  std::uint64_t last_at;
  std::optional<std::string> wrong;
};

outcome stream(const std::string& text) {
  const temp_dir dir;
  byte_stream in(dir.file("a.json", text));
  event_log events(in);
  const auto wrong = stream_json(in, events);
  return {events.all, events.last_at, wrong};
}

bool refused(const std::string& text) {
  return stream(text).wrong.has_value();
}

}  // namespace

TEST_CASE("the reader reports each part of a JSON stream and where it ends") {
  const outcome o = stream(R"({"a":[1, -2, 2.5,"b" , true,null,18446744073709551615] }   )");
  CHECK_FALSE(o.wrong);
  CHECK(o.all == "{ k:a [ n:1 o o t:b o o n:18446744073709551615 ] } ");
  CHECK(o.last_at == 56);
  CHECK(stream("[[1]  ").last_at == 4);  // the end of a number is known only at the next character
}

TEST_CASE("numbers that are not integers are passed on as text") {
  class number_log final : public json_events {
   public:
    bool number(std::string_view text) override {
      all += std::string(text) + ' ';
      return true;
    }
    std::string all;
  };
  const temp_dir dir;
  // The buffer of the stream ends in the middle of the third number.
  const std::string blanks((std::size_t{128} << 10U) - 20, ' ');
  byte_stream in(dir.file("a.json", "[-2, 2.5e-3," + blanks + "1712195495519689.047, 7, -0]"));
  number_log numbers;
  CHECK_FALSE(stream_json(in, numbers));
  CHECK(numbers.all == "-2 2.5e-3 1712195495519689.047 -0 ");
  for (const auto* const text : {"[01]", "[-]", "[1.]", "[.5]", "[1e]", "[+1]", "[1-2]", "[--1]"}) {
    INFO(text);
    CHECK(refused(text));
  }
}

TEST_CASE("texts across the end of the buffer and escapes are read") {
  const std::string blanks((std::size_t{128} << 10U) - 5, ' ');
  CHECK(stream("[" + blanks + "\"abcdef\",\"ghi\"]").all == "[ t:abcdef t:ghi ] ");
  CHECK(stream(R"(["a\"\\\/\n\u0041\u00e9"])").all == "[ t:a\"\\/\nA? ] ");
  for (const auto* const text : {R"(["\x"])", R"(["\u12"])", R"(["\u12g4"])", R"(["a)"}) {
    INFO(text);
    CHECK(refused(text));
  }
}

TEST_CASE("a callback can end the reading") {
  const outcome o = stream(R"(["stop", no JSON)");
  CHECK_FALSE(o.wrong);
  CHECK(o.all == "[ t:stop ");
}

TEST_CASE("the non-standard JSON that profilers write is read") {
  CHECK(stream("[NaN,-Infinity, Infinity,-NaN]").all == "[ n:0 o n:0 o ] ");
  CHECK(stream("{\"NaN\":NaN}").all == "{ k:NaN n:0 } ");
  CHECK(stream("[\"a\xFF\\\"N\", \"Infinity\"]").all == "[ t:a?\"N t:Infinity ] ");
  for (const auto* const text :
       {"[1NaN]", "[NaN1]", "[NaNN]", "[Nan]", "[N]", "N", "NaNNaN", "[]NaN", "[Infinit]",
        "[5-Infinity]", "{NaN:1}", "[\xFF]", "", " ", "[1,]", "[\"a\nb\"]", "[1]]"}) {
    INFO(text);
    CHECK(refused(text));
  }
  CHECK(refused(std::string(200000, '[')));
}

TEST_CASE("a syntax error is one short line") {
  const std::string wrong = *stream("{\"a\":1,\n" + std::string(5000, 'x')).wrong;
  CHECK(contains(wrong, "at byte 9"));
  CHECK(wrong.size() < 200);
  CHECK_FALSE(contains(wrong, "exception"));
}

TEST_CASE("parse_json returns a value, or an error that names the line") {
  CHECK(parse_json("a", R"({"a":[1]})")["a"][0] == 1);
  CHECK(parse_json("a", "\"\xFF\"") == "%FF");
  CHECK_THROWS_WITH(parse_json("a.json", "{\n\"a\":1,\n\"b\"\n}"), Catch::StartsWith("a.json:4: "));
  CHECK_THROWS_AS(parse_json("a.json", "[1e999]"), input_error);
  CHECK_THROWS_AS(parse_json("a.json", ""), input_error);
}
