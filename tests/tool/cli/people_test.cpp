// Tests the features for interactive use: progress bar, colors, shell completion, and the manual
// page.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/progress.hpp"
#include "catch.hpp"
#include "tool/cli/on_terminal.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

std::string shell(const std::string& command) {
  const temp_dir dir;
  const std::string script = dir.file("script", command);
  const std::string call = "bash '" + script + "' >'" + dir.path() + "/out' 2>&1";
  const int status = std::system(call.c_str());
  INFO(command << '\n' << read_file(dir.path() + "/out"));
  REQUIRE(status == 0);
  return read_file(dir.path() + "/out");
}

bool is_installed(const std::string& program) {
  const std::string call = "command -v " + program + " >/dev/null 2>&1";
  const bool found = std::system(call.c_str()) == 0;
  if (!found) lotus_test::skip(program + " is not installed");
  return found;
}

}  // namespace

TEST_CASE("output is colored on terminals only, and not if NO_COLOR is set") {
  const std::string run_dir = traces() + "/c_ooo_w4";
  CHECK(contains(on_terminal({"diagnose", run_dir}, {{"NO_COLOR", nullptr}}), "\x1b[1m"));
  CHECK(contains(on_terminal({"diagnose", run_dir}, {{"NO_COLOR", ""}}), "\x1b[1m"));
  // Checks only that the output sets no colors: on a slow machine a progress bar appears, which
  // uses other escape sequences.
  const std::string plain = on_terminal({"diagnose", run_dir}, {{"NO_COLOR", "1"}});
  CHECK_FALSE(std::regex_search(plain, std::regex("\x1b\\[[0-9;]*m")));
  CHECK_FALSE(contains(run({"diagnose", run_dir}).out, "\x1b["));
  CHECK(contains(on_terminal({"stats", "/no/such/folder"}, {{"NO_COLOR", nullptr}}),
                 "\x1b[31mlotus-tool:"));
}

TEST_CASE("a stream is colored only if colors are allowed for it") {
  std::ostringstream plain;
  CHECK(styled(plain, style::red, "x") == "x");
  std::ostringstream coloured;
  allow_colors(coloured);
  CHECK(styled(coloured, style::red, "x") == "\x1b[31mx\x1b[0m");
  diagnostic_log(coloured, false).warning("careful");
  CHECK(contains(coloured.str(), "\x1b[33mwarning:\x1b[0m careful\n"));
}

TEST_CASE("the progress bar shows percent and megabytes") {
  CHECK(progress_text(0, 0) == "[..............................]   0 %  0 of 0 MB");
  CHECK(progress_text(50'000'000, 100'000'000) ==
        "[###############...............]  50 %  50 of 100 MB");
  CHECK(progress_text(120'000'000, 100'000'000) ==
        "[##############################] 100 %  120 of 120 MB");
}

TEST_CASE("the progress bar appears after a delay and is removed at the end") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  {
    const progress_bar bar(ends[1], std::chrono::milliseconds(0), std::chrono::milliseconds(1));
    expect_bytes(100'000'000);
    count_bytes(50'000'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  { const progress_bar quick(ends[1], std::chrono::hours(1)); }
  close(ends[1]);
  std::string text;
  std::array<char, 65536> block{};
  ssize_t n = 0;
  while ((n = read(ends[0], block.data(), block.size())) > 0) {
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  CHECK(contains(text, "50 of 100 MB"));
  REQUIRE(text.size() >= 4);
  CHECK(text.substr(text.size() - 4) == "\r\x1b[K");
}

TEST_CASE("a quick command shows no progress bar") {
  CHECK_FALSE(contains(on_terminal({"stats", traces() + "/c_ooo_w4"}, {}), "MB"));
}

TEST_CASE("the manual page names every command and option, and is valid") {
  const std::string page = run({"man"}).out;
  for (const auto* part :
       {"lotus\\-tool viz", "lotus\\-tool stats", "lotus\\-tool diagnose", "lotus\\-tool compare",
        "\\-\\-only\\-slowest", "\\-\\-fail\\-above", "NO_COLOR", ".SH EXIT STATUS"}) {
    INFO(part);
    CHECK(contains(page, part));
  }
  if (!is_installed("groff")) return;
  const temp_dir dir;
  const std::string file = dir.file("lotus-tool.1", page);
  CHECK(shell("groff -man -Tutf8 -ww -z '" + file + "'").empty());
}

TEST_CASE("bash completes commands, options and files") {
  const temp_dir dir;
  const std::string script = dir.file("completion", run({"completion", "bash"}).out);
  const auto completed = [&script](const std::string& words, int current) {
    return shell("set -u\nsource '" + script + "'\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=" +
                 std::to_string(current) + "\n_lotus_tool\necho \"${COMPREPLY[@]:-}\"");
  };
  CHECK(completed("lotus-tool vi", 1) == "viz\n");
  CHECK(completed("lotus-tool viz --only", 2) == "--only-slowest\n");
  CHECK(completed("lotus-tool viz run --tor", 3) == "--torch-trace\n");
  CHECK(completed("lotus-tool stats --tor", 2) == "\n");
  CHECK(completed("lotus-tool map bui", 2) == "build\n");
  CHECK(completed("lotus-tool viz --format per", 3) == "perfetto\n");
  CHECK(completed("lotus-tool completion f", 2) == "fish\n");
  // If the completion script suggests nothing, the shell completes file names.
  CHECK(completed("lotus-tool stats ''", 2) == "\n");
  CHECK(contains(run({"completion", "bash"}).out, "complete -o default"));
}

TEST_CASE("zsh and fish accept their completion scripts") {
  for (const std::string name : {"zsh", "fish"}) {
    const result r = run({"completion", name});
    CHECK(r.status == 0);
    CHECK(contains(r.out, "only-slowest"));
    if (!is_installed(name)) continue;
    const temp_dir dir;
    CHECK(shell(name + " -n '" + dir.file("script", r.out) + "'").empty());
  }
  CHECK(run({"completion", "tcsh"}).status == 2);
}
