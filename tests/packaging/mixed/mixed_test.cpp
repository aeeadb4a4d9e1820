// Tests a program of two files. One of them is compiled with LOTUS_DISABLE; its macros and classes
// must do nothing, and those in the other file must record.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

int recording_pipeline();
int disabled_pipeline();
int recording_on_one_line();
int disabled_on_one_line();
bool disabled_start(const std::string& log_file);

namespace {

/// Runs `pipeline` and returns the sorted names in its log.
std::vector<std::string> names_logged(int (*pipeline)(), int arguments_evaluated) {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  CHECK(pipeline() == arguments_evaluated);
  lotus::stop();
  std::vector<std::string> names;
  for (const auto& line : support::read_logs(run.path())) names.push_back(line.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("without LOTUS_DISABLE every macro and class records") {
  CHECK(names_logged(recording_pipeline, 7) ==
        std::vector<std::string>{"SBatchConsumed_6", "SBatchPreprocessed_2", "SBatchQueued_5",
                                 "SBatchWait_3", "SBatchWait_5", "STransform", "STransform",
                                 "SrecordingChain", "SrecordingCompose", "SrecordingDynamic",
                                 "SrecordingScope"});
}

TEST_CASE("LOTUS_DISABLE disables macros and classes, and only in its own file") {
  CHECK(names_logged(disabled_pipeline, 0).empty());
}

TEST_CASE("with LOTUS_DISABLE, start() succeeds and starts nothing") {
  const support::temp_directory run;
  CHECK(disabled_start(run.prefix()));
  CHECK(recording_pipeline() == 7);
  CHECK(support::fs::is_empty(run.path()));
}

TEST_CASE("several scopes can be on one line and in one macro, even if they are disabled") {
  CHECK(names_logged(recording_on_one_line, 0) ==
        std::vector<std::string>{"SLeft", "SRight", "STwice", "STwiceAgain"});
  CHECK(names_logged(disabled_on_one_line, 0).empty());
}
