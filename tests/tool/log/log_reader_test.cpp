#include "log/log_reader.hpp"

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::contains;
using lotus::tool_test::temp_dir;

namespace {

struct reading {
  std::vector<std::string> names;
  std::string diagnostics;
  std::uint64_t malformed = 0;
};

reading read(const log_file& file) {
  reading r;
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  read_log(file, &diagnostics, [&](const log_line& line) { r.names.emplace_back(line.name); });
  r.diagnostics = err.str();
  r.malformed = diagnostics.malformed_lines();
  return r;
}

reading read(const std::string& text) {
  const temp_dir dir;
  log_file file;
  file.path = dir.file("log", text);
  file.bytes = text.size();
  return read(file);
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("unusual input is accepted with a note") {
  CHECK(contains(read("").diagnostics, "log: empty"));

  const reading crlf = read("SA,1,2\r\n\r\n\r\nSB,3,4\r\n");
  CHECK(crlf.names == names{"SA", "SB"});
  CHECK(contains(crlf.diagnostics, "lines end in CR LF"));
  CHECK(contains(crlf.diagnostics, "2 blank lines ignored"));
  CHECK(crlf.malformed == 0);

  const reading blanks = read("SA, 1, 2\n");
  CHECK(blanks.names == names{"SA"});
  CHECK(contains(blanks.diagnostics, "spaces after commas"));

  const reading torn = read("SA,1,2\nSLoad");
  CHECK(torn.names == names{"SA"});
  CHECK(contains(torn.diagnostics, "log:2: incomplete last line ignored"));
  CHECK(torn.malformed == 0);

  const reading whole = read("SA,1,2\nSB,3,4");
  CHECK(whole.names == names{"SA", "SB"});
  CHECK(whole.diagnostics.empty());
}

TEST_CASE("malformed lines are skipped and reported by line number") {
  const reading r = read("SA,1,2\nnonsense\nSB,3,4\nSC,5\n");
  CHECK(r.names == names{"SA", "SB"});
  CHECK(contains(r.diagnostics, "log:2: one field"));
  CHECK(contains(r.diagnostics, "log:4: two fields"));
  CHECK(r.malformed == 2);
}

TEST_CASE("of many malformed lines, the first are reported and the others counted") {
  std::string text;
  for (int i = 0; i < 250; ++i) text += "x\n";
  const reading r = read(text);
  CHECK(r.malformed == 250);
  CHECK(contains(r.diagnostics, "log:100: "));
  CHECK_FALSE(contains(r.diagnostics, "log:101: "));
  CHECK(contains(r.diagnostics, "150 more malformed lines"));
}

TEST_CASE("lines that cross block boundaries are read whole") {
  std::string text;
  names expected;
  for (int i = 0; i < 60000; ++i) {
    // The lengths vary, so that block borders occur at every position within a line.
    expected.push_back("S" + std::string(static_cast<std::size_t>(i % 37), 'x') +
                       std::to_string(i));
    text += expected.back() + ",1795250976218670248,109224822\n";
  }
  REQUIRE(text.size() > 2'000'000);
  const reading r = read(text);
  CHECK(r.malformed == 0);
  CHECK(r.names == expected);
}

TEST_CASE("a line of megabytes takes bounded memory, and other lines are still read") {
  const std::string huge(5'000'000, 'x');
  const reading r = read("SA,1,2\n" + huge + "\nSB,3,4\nS" + huge + ",1,2\nSC,5,6\n" + huge);
  CHECK(r.names == names{"SA", "SB", "SC"});
  CHECK(r.malformed == 3);
  CHECK(contains(r.diagnostics, "log:2: the line is longer than 1 MiB"));
  CHECK(contains(r.diagnostics, "log:4: the line is longer than 1 MiB"));
  CHECK(contains(r.diagnostics, "log:6: the line is longer than 1 MiB"));
}

TEST_CASE("only the counted bytes of a growing log and its tail are read") {
  const temp_dir dir;
  log_file file;
  file.path = dir.file("log", "SA,1,2\nSB,3,4\nSC,");
  file.bytes = 14;
  file.tail = "SD,5,6\nSE,7,8\n";
  CHECK(read(file).names == names{"SA", "SB", "SD", "SE"});
  file.bytes = 1000;  // as if the file had become shorter after it was found
  file.tail.clear();
  CHECK(read(file).names == names{"SA", "SB"});
  file.path += "-not-there";
  file.bytes = 0;
  file.tail = "SF,5,6\n";
  CHECK(read(file).names == names{"SF"});
  file.bytes = 1;
  CHECK_THROWS_AS(read(file), input_error);
}

TEST_CASE("any byte, even NUL, may occur in a name") {
  const reading r = read(std::string("S\0\xFF\x01,1,2\n", 9));
  REQUIRE(r.names.size() == 1);
  CHECK(r.names[0] == std::string("S\0\xFF\x01", 4));
}
