#include "base/formats/csv.hpp"

#include <string>

#include "catch.hpp"

using namespace lotus::tool;

TEST_CASE("csv_field quotes a field only if necessary") {
  CHECK(csv_field("") == "");
  CHECK(csv_field("SCrop 3|a") == "SCrop 3|a");
  CHECK(csv_field("a,b") == R"("a,b")");
  CHECK(csv_field(R"(say "a")") == R"("say ""a""")");
}

TEST_CASE("csv_exact_field keeps every text unchanged, as a database needs it") {
  CHECK(csv_exact_field("") == R"("")");
  CHECK(csv_exact_field("SCrop 3|a") == "SCrop 3|a");
  CHECK(csv_exact_field("a,\"b\"") == R"("a,""b""")");
  CHECK(csv_exact_field("a\nb") == "\"a\nb\"");
  CHECK(csv_exact_field("\xFF") == "%FF");
}

TEST_CASE("csv_guarded makes no field a formula, and removing one apostrophe restores the text") {
  for (const std::string text :
       {"=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "\t=1", "\r=1", "\n=1", "'quoted'", "''",
        "\uFF1D1", "plain", "a=1", "", "SCrop"}) {
    CAPTURE(text);
    const std::string guarded = csv_guarded(text);
    CHECK((guarded == text || guarded == "'" + text));
    CHECK((text.empty() || std::string("=+-@\t\r\n").find(guarded[0]) == std::string::npos));
    CHECK(guarded.substr(guarded.substr(0, 1) == "'" ? 1 : 0) == text);
  }
  CHECK(csv_field("=1+1") == "'=1+1");
  CHECK(csv_field("@a,b") == R"("'@a,b")");
  CHECK(csv_exact_field("=1+1") == "=1+1");
}

TEST_CASE("a CSV record is one line, whatever characters a name has") {
  CHECK(csv_field("a\nb") == "a%0Ab");
  CHECK(csv_field("a\r\n,b") == R"("a%0D%0A,b")");
  CHECK(csv_field("\xFF") == "%FF");
}
