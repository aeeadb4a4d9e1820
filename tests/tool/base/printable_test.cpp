#include "base/printable.hpp"

#include <string>

#include "catch.hpp"

using lotus::tool::printable;
using lotus::tool::printable_line;
using lotus::tool::shell_word;

TEST_CASE("a word of a command is quoted if a shell would change it") {
  CHECK(shell_word("runs/rank-0") == "runs/rank-0");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("$(x)'s") == "'$(x)'\\''s'");
}

TEST_CASE("bytes that are not UTF-8 are shown as percent escapes") {
  CHECK(printable("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(printable("\xFF\xFE") == "%FF%FE");
  CHECK(printable("\xC3") == "%C3");
  CHECK(printable("\xC0\x80") == "%C0%80");                // an overlong encoding
  CHECK(printable("\xED\xA0\x80") == "%ED%A0%80");         // a UTF-16 surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "%F4%90%80%80");  // above U+10FFFF
  CHECK(printable("\xE2\x82x") == "%E2%82x");
}

TEST_CASE("control characters do not reach a terminal") {
  CHECK(printable_line("a\x1b[2J\n\x7f") == "a%1B[2J%0A%7F");
  CHECK(printable_line("\xC2\x9B") == "%C2%9B");
  for (const char* const end : {"\x80\x8F", "\x80\xAE", "\x81\xA6"}) {
    const std::string control = std::string("\xE2") + end;  // U+200F, U+202E, U+2066
    CHECK(printable_line(control).rfind("%E2%8", 0) == 0);
  }
  CHECK(printable_line("\xC3\xA4") == "\xC3\xA4");
}
