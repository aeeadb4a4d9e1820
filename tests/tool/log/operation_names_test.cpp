#include "log/operation_names.hpp"

#include <string>

#include "catch.hpp"

using lotus::tool::decode_name;
using lotus::tool::name_table;

TEST_CASE("escapes of the log are undone") {
  CHECK(decode_name("SLoader") == "SLoader");
  CHECK(decode_name("SOdd%2C name%22") == "SOdd, name\"");
  CHECK(decode_name("S%42atchWait_3") == "SBatchWait_3");
  CHECK(decode_name("SLine%0Abreak%25") == "SLine\nbreak%");
  CHECK(decode_name("S%00") == std::string("S\0", 2));
  CHECK(decode_name("S%C3%A4") == "S\xC3\xA4");
}

TEST_CASE("a percent sign that begins no escape stays") {
  CHECK(decode_name("S50%") == "S50%");
  CHECK(decode_name("S50%4") == "S50%4");
  CHECK(decode_name("S50%G0%0G") == "S50%G0%0G");
  CHECK(decode_name("S%%41") == "S%A");
}

TEST_CASE("names get numbers in order of appearance") {
  name_table names;
  CHECK(names.id("SLoader") == 0);
  CHECK(names.id("SCrop") == 1);
  CHECK(names.id("SLoader") == 0);
  CHECK(names.name(1) == "SCrop");
  CHECK(names.size() == 2);
}

TEST_CASE("raw names that mean the same share a number") {
  name_table names;
  CHECK(names.id("SA%2Cb") == 0);
  CHECK(names.id("SA%2cb") == 0);
  CHECK(names.id("S100%") == 1);
  CHECK(names.id("S100%25") == 1);
  CHECK(names.size() == 2);
}

TEST_CASE("many names, alike at both ends, stay apart") {
  name_table names;
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < 20000; ++i) {
      const std::string name = "SBeginning_" + std::to_string(i) + "_and_the_same_end";
      REQUIRE(names.id(name) == i);
    }
  }
  CHECK(names.name(12345) == "SBeginning_12345_and_the_same_end");
}
