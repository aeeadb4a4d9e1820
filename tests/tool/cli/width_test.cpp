// Tests the width of output lines on terminals and in pipes.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "catch.hpp"
#include "tool/cli/on_terminal.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string& line : lines_of(text)) most = std::max(most, columns_of(line));
  return most;
}

std::string plain(const std::vector<std::string>& arguments, unsigned short columns) {
  return on_terminal(arguments, {{"NO_COLOR", "1"}}, columns);
}

std::string in_pipe(const std::string& before, const std::string& arguments) {
  const temp_dir dir;
  const std::string file = dir.path() + "/out";
  const std::string command =
      "env -u COLUMNS " + before + " '" + LOTUS_TOOL_PROGRAM + "' " + arguments + " | cat >" + file;
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(file);
}

table wide_table() {
  table t;
  t.spare({"least"});
  t.row({"name", "one", "two", "least", "three"});
  t.row({"a", "1.000 ms", "2.000 ms", "3.000 ms", "4.000 ms"});
  return t;
}

std::string printed(const table& t, std::size_t columns) {
  std::ostringstream out;
  set_line_width(out, columns);
  t.print(out);
  return out.str();
}

}  // namespace

TEST_CASE("lines of every command fit a terminal of 80 columns") {
  const std::string a = traces() + "/c_ooo_w4";
  const std::vector<std::vector<std::string>> commands{{"stats", a, "--per-worker"},
                                                       {"stats", a, "--style", "profile"},
                                                       {"diagnose", a, "--details"},
                                                       {"whatif", a},
                                                       {"whatif", a, "--target", "20/s"},
                                                       {"compare", a, a},
                                                       {"top", a, "--once"}};
  for (const std::vector<std::string>& command : commands) {
    INFO(command.front());
    const std::string text = plain(command, 80);
    CHECK(lines_of(text).size() > 5);
    for (const std::string& line : lines_of(text)) {
      // A line with the path of the traces may be longer, because a path is one word and is not
      // broken.
      if (contains(line, traces())) continue;
      // On a slow machine, the line may begin with a progress bar that was erased again.
      const std::string::size_type erased = line.rfind("\x1b[K");
      const std::string left = erased == std::string::npos ? line : line.substr(erased + 3);
      INFO(left);
      CHECK(columns_of(left) <= 80);
    }
  }
}

TEST_CASE("tables of real runs fit 80 columns too") {
  if (shared_traces().empty()) return lotus_test::skip("the larger set of traces is not there");
  for (const auto* run_dir : {"a_preproc_w1", "d_consumer_w2", "g_profiled_w2", "h_epochs2_w2"}) {
    for (const auto* command : {"stats", "diagnose", "whatif"}) {
      INFO(command << ' ' << run_dir);
      const std::string text = plain({command, shared_traces() + '/' + run_dir}, 80);
      for (const std::string& line : lines_of(text)) {
        if (contains(line, shared_traces())) continue;
        INFO(line);
        CHECK(columns_of(line) <= 80);
      }
    }
  }
}

TEST_CASE("a wider terminal shows more columns, and --wide shows all") {
  const std::string a = traces() + "/c_ooo_w4";
  const std::string narrow = plain({"stats", a}, 80);
  CHECK(contains(narrow, "--wide also shows 'std', 'min', 'p50', 'p90', '% under 10 ms', ..."));
  CHECK_FALSE(contains(narrow, "75.70 ms        88.67 %"));
  const std::string wide = plain({"stats", a}, 200);
  CHECK(contains(wide, "75.70 ms        88.67 %"));
  CHECK_FALSE(contains(wide, "also shows"));
  CHECK(plain({"stats", a, "--wide"}, 80) == wide);
  CHECK(widest(plain({"stats", a}, 120)) > 80);
}

TEST_CASE("COLUMNS overrides the terminal's width, and a pipe has 80 columns") {
  const std::string a = traces() + "/c_ooo_w4";
  CHECK(on_terminal({"stats", a}, {{"NO_COLOR", "1"}, {"COLUMNS", "200"}}, 80) ==
        plain({"stats", a}, 200));
  const std::string unknown = plain({"stats", a}, 0);
  CHECK(unknown == plain({"stats", a}, 80));
  CHECK(lines_of(in_pipe("", "stats '" + a + "'")) == lines_of(unknown));
  CHECK(lines_of(in_pipe("COLUMNS=nonsense", "stats '" + a + "'")) == lines_of(unknown));
  CHECK(lines_of(in_pipe("", "stats --wide '" + a + "'")) == lines_of(plain({"stats", a}, 200)));
  CHECK(lines_of(in_pipe("COLUMNS=200", "stats '" + a + "'")) ==
        lines_of(plain({"stats", a}, 200)));
  // CSV and JSON are for other programs, so the width of their lines is not limited.
  for (const std::string form : {"--csv", "--json"}) {
    CHECK(in_pipe("", "stats '" + a + "' " + form) ==
          in_pipe("COLUMNS=30", "stats '" + a + "' --wide " + form));
  }
}

TEST_CASE("the least important columns are omitted first, and their names are printed") {
  CHECK_FALSE(contains(printed(wide_table(), 0), "--wide"));
  CHECK_FALSE(contains(printed(wide_table(), 46), "--wide"));
  const std::string narrow = printed(wide_table(), 45);
  CHECK(contains(narrow, "  --wide also shows 'least'\n"));
  CHECK(contains(narrow, "4.000 ms"));
  CHECK(contains(printed(wide_table(), 35), "  --wide also shows 'least', ...\n"));
  CHECK(contains(printed(wide_table(), 1), "1.000 ms"));  // a number must never be broken
}

TEST_CASE("a name that is too long has a line of its own before its numbers") {
  table t;
  const std::string name(70, 'x');
  t.row({"name", "one", "two"});
  t.row({name, "1.000 ms", "2.000 ms"});
  t.row({"short", "3.000 ms", "4.000 ms"});
  const std::vector<std::string> lines = lines_of(printed(t, 80));
  REQUIRE(lines.size() == 4);
  CHECK(lines[1] == "  " + name);
  CHECK(contains(lines[2], "1.000 ms  2.000 ms"));
  CHECK(lines[2].size() == lines[3].size());
  CHECK(contains(printed(t, 60), "…"));
  CHECK(widest(printed(t, 60)) <= 60);
}

TEST_CASE("the end of a name that is too long is printed before its numbers") {
  table t;
  t.row({"change", "run time"});
  t.row({"3 workers instead of 1, 2 batches in flight per worker", "1.000 ms"});
  t.row({"a name of many words that no comma divides", "2.000 ms"});
  CHECK(printed(t, 45) ==
        "  change                             run time\n"
        "  3 workers instead of 1,\n"
        "    2 batches in flight per worker   1.000 ms\n"
        "  a name of many\n"
        "    words that no comma divides      2.000 ms\n");
}

TEST_CASE("sentences begin on new lines if lines have the usual width") {
  const std::string text = "It took 1.5 s. 'run' is one. `x.y. z` is another. The end";
  std::ostringstream out;
  set_line_width(out, 80);
  CHECK(fitted_sentences(out, text, "  ", "    ") ==
        "  It took 1.5 s.\n  'run' is one.\n  `x.y. z` is another.\n  The end");
  set_line_width(out, 0);
  CHECK(fitted_sentences(out, text, "  ", "    ") == "  " + text);
  set_line_width(out, 70);
  CHECK(fitted_sentences(out, text, "  ", "    ") == "  " + text);
}

TEST_CASE("columns of the same importance are stacked") {
  table t(table_form::blocks);
  t.row({"name", "one", "two", "three"});
  t.row({"a", "1.000 ms", "2.000 ms", "3.000 ms"});
  CHECK(lines_of(printed(t, 0)).size() == 2);
  const std::vector<std::string> lines = lines_of(printed(t, 28));
  REQUIRE(lines.size() == 5);
  CHECK(contains(lines[0], "one       two"));
  CHECK(contains(lines[3], "name     three"));
  CHECK(contains(lines[4], "a     3.000 ms"));
}

TEST_CASE("text is broken between words, but not between a number and its unit") {
  CHECK(in_lines("", 10).empty());
  CHECK(in_lines("one two three", 0) == "one two three");
  CHECK(in_lines("one two three", 8) == "one two\nthree");
  CHECK(in_lines("took 12.5 ms each", 9) == "took\n12.5 ms\neach");
  CHECK(in_lines("aa bb cc", 6, "- ", "  ") == "- aa\n  bb\n  cc");
  CHECK(in_lines("a longerthanaline b", 8) == "a\nlongerthanaline\nb");
  CHECK(without_middle("abcdefgh", 5) == "ab…gh");
  CHECK(without_middle("ääöö", 4) == "ääöö");
}

TEST_CASE("a share is printed as 100 % only if it is exactly 1") {
  CHECK(human_share(1) == "100.00 %");
  CHECK(human_share(0.9999) == "99.99 %");
  CHECK(human_share(0.999999) == "99.99 %");
  CHECK(human_share(0.41327) == "41.33 %");
}
