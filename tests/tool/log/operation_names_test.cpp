#include "log/operation_names.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "catch.hpp"

using lotus::tool::decode_name;
using lotus::tool::name_table;

TEST_CASE("decode_name decodes the escapes of the log") {
  CHECK(decode_name("SLoader") == "SLoader");
  CHECK(decode_name("SOdd%2C name%22") == "SOdd, name\"");
  CHECK(decode_name("S%42atchWait_3") == "SBatchWait_3");
  CHECK(decode_name("SLine%0Abreak%25") == "SLine\nbreak%");
  CHECK(decode_name("S%00") == std::string("S\0", 2));
  CHECK(decode_name("S%C3%A4") == "S\xC3\xA4");
}

TEST_CASE("a percent sign that begins no escape is kept") {
  CHECK(decode_name("S50%") == "S50%");
  CHECK(decode_name("S50%4") == "S50%4");
  CHECK(decode_name("S50%G0%0G") == "S50%G0%0G");
  CHECK(decode_name("S%%41") == "S%A");
}

TEST_CASE("names are numbered in order of appearance") {
  name_table names;
  CHECK(names.id("SLoader") == 0);
  CHECK(names.id("SCrop") == 1);
  CHECK(names.id("SLoader") == 0);
  CHECK(names.name(1) == "SCrop");
  CHECK(names.size() == 2);
}

TEST_CASE("names that differ in one byte have different numbers, whatever their lengths") {
  name_table names;
  std::uint32_t next = 0;
  for (std::size_t length = 0; length <= 20; ++length) {
    const std::string name(length, 'x');
    CHECK(names.id(name) == next++);
    for (std::size_t at = 0; at < length; ++at) {
      std::string other = name;
      other[at] = 'y';
      CHECK(names.id(other) == next++);
      CHECK(names.name(next - 1) == other);
    }
  }
  for (std::size_t length = 20, n = names.size(); length > 0; --length) {
    n -= length + 1;
    CHECK(names.id(std::string(length, 'x')) == n);
  }
}

TEST_CASE("different spellings of a name share a number") {
  name_table names;
  CHECK(names.id("SA%2Cb") == 0);
  CHECK(names.id("SA%2cb") == 0);
  CHECK(names.id("S100%") == 1);
  CHECK(names.id("S100%25") == 1);
  CHECK(names.size() == 2);
}

TEST_CASE("many names with equal beginnings and ends get different numbers") {
  name_table names;
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < 20000; ++i) {
      const std::string name = "SBeginning_" + std::to_string(i) + "_and_the_same_end";
      REQUIRE(names.id(name) == i);
    }
  }
  CHECK(names.name(12345) == "SBeginning_12345_and_the_same_end");
}

TEST_CASE("a name in several spellings keeps its number, also when looked up decoded") {
  name_table names;
  const std::string umlaut =
      "SGr\xC3\xB6\xC3\x9F"
      "e";
  CHECK(names.id("SA%2Cb") == 0);
  CHECK(names.id_of_decoded("SA,b") == 0);
  CHECK(names.id(umlaut) == 1);
  CHECK(names.id("SGr%C3%B6%C3%9Fe") == 1);
  CHECK(names.id_of_decoded(umlaut) == 1);
  // id_of_decoded() takes '%' literally, so this is not the name that "SA%2Cb" means in a log.
  CHECK(names.id_of_decoded("SA%2Cb") == 2);
  CHECK(names.id("SA%2Cb") == 0);
  CHECK(names.id("SA%252Cb") == 2);
  CHECK(names.id("SLatin\xE4") == 3);
  CHECK(names.id("SLatin\xE4") == 3);
  CHECK(names.name(3) == "SLatin%E4");
  CHECK(names.id("") == 4);
  CHECK(names.id("") == 4);
}

TEST_CASE("references to names stay valid while the table grows and is moved") {
  name_table names;
  CHECK(names.id("SFirst") == 0);
  const std::string long_name = 'S' + std::string(200'000, 'x');
  CHECK(names.id(long_name) == 1);
  const std::string_view first = names.name(0);
  for (unsigned i = 0; i < 5000; ++i) names.id("SName" + std::to_string(i));
  name_table moved = std::move(names);
  CHECK(moved.name(0).data() == first.data());
  CHECK(moved.name(1) == long_name);
  CHECK(moved.id("SName4999") == 5001);
  names = name_table();
  CHECK(names.id("SOther") == 0);
  CHECK(moved.name(0) == "SFirst");
}
