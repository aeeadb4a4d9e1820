#include "names.hpp"

#include <string>

#include "catch.hpp"

using lotus::tool::decode_name;
using lotus::tool::name_table;
using lotus::tool::printable;
using lotus::tool::printable_line;

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

TEST_CASE("what is not UTF-8 is shown as it stands in the log") {
  CHECK(printable("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(printable("\xFF\xFE") == "%FF%FE");
  CHECK(printable("\xC3") == "%C3");
  CHECK(printable("\xC0\x80") == "%C0%80");                // overlong
  CHECK(printable("\xED\xA0\x80") == "%ED%A0%80");         // a surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "%F4%90%80%80");  // above U+10FFFF
  CHECK(printable("\xE2\x82x") == "%E2%82x");
}

TEST_CASE("control characters do not reach a terminal") {
  CHECK(printable_line("a\x1b[2J\n\x7f") == "a%1B[2J%0A%7F");
  CHECK(printable_line("\xC2\x9B") == "%C2%9B");
  CHECK(printable_line("\xC3\xA4") == "\xC3\xA4");
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
