// Tests environment variables with invalid values: each must be reported once and then ignored.
#include "lotus/base/environment.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <lotus/lotus.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lotus/collectors/collector_kinds.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/record/environment_report.hpp"
#include "support.hpp"

namespace {

namespace detail = lotus::detail;
using detail::variable;
using detail::variable_type;
using settings = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

void record() {
  for (int i = 0; i < 2; ++i) {
    lotus::start("log/lotustrace_log");
    { LOTUS_SCOPE("an operation"); }
    LOTUS_MAP_REGION("a region") {}
    lotus::collector::resume();
    lotus::collector::pause();
    lotus::stop();
  }
  lotus::collector::detach();
}

struct recorded {
  std::string err;
  std::string info;  ///< last block of the process's information file
  /// Values of all environment variables, in the order of detail::environment_table.
  std::vector<std::uint64_t> values;
};

/// Runs a process with these environment variables. The process makes a recording and reads all
/// variables, and then does both again: a message must nevertheless be printed only once.
recorded run(const settings& environment) {
  const support::temp_directory dir;
  const pid_t child = fork();
  if (child == 0) {
    for (const detail::variable_row& row : detail::environment_table) unsetenv(row.name);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    if (chdir(dir.path().c_str()) != 0) _exit(1);
    dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    record();
    std::ofstream values("values");
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < detail::environment_variables; ++i) {
        const auto which = static_cast<variable>(i);
        std::uint64_t value = 0;
        switch (detail::row_of(which).type) {
          case variable_type::number:
            value = detail::number_setting(which);
            break;
          case variable_type::word:
            value = detail::environment_word(which, 0, detail::say_of_variable);
            break;
          case variable_type::words:
            value = detail::environment_words(which, detail::say_of_variable);
            break;
          case variable_type::text:
            break;
        }
        if (round == 1) values << value << '\n';
      }
    }
    values.close();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  recorded made;
  made.err = text_of(dir.path() / "err");
  for (const auto& file : std::filesystem::directory_iterator(dir.path() / "log")) {
    if (file.path().filename().string().rfind(detail::run_info_start, 0) == 0) {
      made.info += text_of(file.path());
    }
  }
  std::ifstream values(dir.path() / "values");
  for (std::uint64_t value = 0; values >> value;) made.values.push_back(value);
  REQUIRE(made.values.size() == detail::environment_variables);
  return made;
}

std::uint64_t value_in(const recorded& made, variable which) {
  return made.values[static_cast<std::size_t>(which)];
}

TEST_CASE("an invalid number is reported once, and the default is used") {
  for (std::size_t i = 0; i < detail::environment_variables; ++i) {
    const auto which = static_cast<variable>(i);
    const detail::variable_row& row = detail::row_of(which);
    if (row.type != variable_type::number) continue;
    CAPTURE(row.name);
    std::vector<std::string> garbage{
        "-5", "+5", " 5", "5x", "5 ", "1.5", "word", "0x10", "99999999999999999999999"};
    if (row.least > 0) garbage.emplace_back("0");
    if (row.most < UINT64_MAX) garbage.push_back(std::to_string(row.most + 1));
    for (const std::string& value : garbage) {
      CAPTURE(value);
      const recorded made = run({{row.name, value}, {"LOTUS_COLLECTOR", "builtin"}});
      CHECK(count(made.err, std::string("lotus: ") + row.name + '=' + value + ": must be") == 1);
      CHECK(count(made.err, row.name) == 1);
      CHECK(count(made.err, std::string("taken as ") + row.otherwise + '\n') == 1);
      CHECK(value_in(made, which) == row.by_default);
    }
  }
}

TEST_CASE("an unknown word is reported once, and the default is used") {
  const std::vector<std::pair<variable, std::string>> unknown{
      {variable::format, "compact "},   {variable::format, "Compact"},
      {variable::format, "-5"},         {variable::annotate, "vtune"},
      {variable::annotate, "itt2,-5"},  {variable::collector, "vtune"},
      {variable::collector, "perf,itt"}};
  for (const auto& [which, value] : unknown) {
    const detail::variable_row& row = detail::row_of(which);
    CAPTURE(row.name);
    CAPTURE(value);
    const recorded made = run({{row.name, value}});
    CHECK(count(made.err, row.name) == 1);
    CHECK(count(made.err, " is not known; it can be ") == 1);
    CHECK(value_in(made, which) == 0);
  }
}

TEST_CASE("an invalid text is reported once") {
  for (const char* const value : {"fifo", "fifo:only", "pipe:1,2", "-5"}) {
    CAPTURE(value);
    const recorded made = run({{"LOTUS_PERF_CONTROL", value}, {"LOTUS_COLLECTOR", "perf"}});
    CHECK(count(made.err, "LOTUS_PERF_CONTROL") == 1);
  }
  const recorded list = run({{"LOTUS_MAP_LIST", "missing/folder/list"}});
  CHECK(count(list.err, "LOTUS_MAP_LIST: cannot write missing/folder/list: ") == 1);
  CHECK(count(list.err, "LOTUS_MAP_LIST") == 1);
}

TEST_CASE("an empty variable counts as not set") {
  for (std::size_t i = 0; i < detail::environment_variables; ++i) {
    const detail::variable_row& row = detail::row_of(static_cast<variable>(i));
    CAPTURE(row.name);
    const recorded made = run({{row.name, ""}, {"LOTUS_MAP_PASSES", ""}});
    CHECK(count(made.err, row.name) == 0);
    CHECK(made.values[i] == row.by_default);
  }
}

TEST_CASE("valid values are used without a message") {
  const recorded made = run({{"LOTUS_KEEP_BYTES", "18446744073709551615"},
                             {"LOTUS_FORMAT", "compact"},
                             {"LOTUS_MAP_WARMUP", "0"},
                             {"LOTUS_MAP_RATE", "1000000"},
                             {"LOTUS_RANK", "4294967295"}});
  CHECK(made.err.find("LOTUS_") == std::string::npos);
  CHECK(value_in(made, variable::keep_bytes) == UINT64_MAX);
  CHECK(value_in(made, variable::format) == 1);
  CHECK(value_in(made, variable::map_warmup) == 0);
  CHECK(value_in(made, variable::map_rate) == 1'000'000);
  CHECK(made.info.find("rank 4294967295\n") != std::string::npos);
}

TEST_CASE("an invalid LOTUS_RANK falls back to the launcher's rank") {
  const recorded made = run({{"LOTUS_RANK", "-5"}, {"RANK", "x"}, {"SLURM_PROCID", "3"}});
  CHECK(made.info.find("rank 3\n") != std::string::npos);
  CHECK(made.info.find("rank 18446744073709551611") == std::string::npos);
  CHECK(count(made.err, "LOTUS_RANK=-5: must be a number from 0; taken as ") == 1);
}

TEST_CASE("the values documented for LOTUS_COLLECTOR are the collectors") {
  std::string words = "auto";
  for (const detail::collector_kind& kind : detail::collector_kinds) {
    words += std::string("|") + kind.name;
  }
  CHECK(words + "|none" == detail::row_of(variable::collector).values);
}

}  // namespace
