#include "base/text.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;

namespace {

std::string us(std::int64_t ns) {
  std::array<char, 24> room{};
  return {room.data(), put_us(room.data(), ns)};
}

}  // namespace

TEST_CASE("nanoseconds are written as exact microseconds") {
  CHECK(us(0) == "0.000");
  CHECK(us(7) == "0.007");
  CHECK(us(999) == "0.999");
  CHECK(us(1000) == "1.000");
  CHECK(us(10'020) == "10.020");
  CHECK(us(999'999) == "999.999");
  CHECK(us(1'000'000) == "1000.000");
  CHECK(us(1234567) == "1234.567");
  CHECK(us(1'002'003'004'005) == "1002003004.005");
  CHECK(us(-5) == "-0.005");
  CHECK(us(std::numeric_limits<std::int64_t>::max()) == "9223372036854775.807");
  CHECK(us(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808");
}

TEST_CASE("a text is taken apart at marks") {
  std::string_view text = "12,-3,ff";
  std::uint32_t first = 0;
  CHECK(read_number(take(text, ','), first));
  CHECK(first == 12);
  int second = 0;
  const std::string_view negative = take(text, ',');
  CHECK(!read_number(negative, second));
  CHECK(read_whole(negative, second));
  CHECK(second == -3);
  CHECK(!read_whole(text, second));
  CHECK(read_whole(take(text, ','), second, 16));
  CHECK(second == 255);
  CHECK(text.empty());
}

TEST_CASE("a number agrees with its noun") {
  CHECK(counted(1, "run", "runs") == "1 run");
  CHECK(counted(0, "run", "runs") == "0 runs");
}

TEST_CASE("any bytes make a valid JSON string") {
  CHECK(json_string("a\"b\\c") == R"("a\"b\\c")");
  CHECK(json_string("\n\x7f") == R"("\u000a\u007f")");
  CHECK(json_string("\xFF") == "\"%FF\"");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto document = lotus::tool_test::parse_json('[' + json_string(all) + ']');
  CHECK(document[0].text().size() > 256);
}

TEST_CASE("a written number can be read back as the same value") {
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(12) == "12");
  CHECK(json_number(1.0 / 3) == "0.3333333333333333");
  CHECK(json_number(std::nan("")) == "null");
}
