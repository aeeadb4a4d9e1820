// Tests a program of two files. One of them is compiled with LOTUS_DISABLE; its macros must do
// nothing, and the macros in the other file must record.
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
                                 "STransform", "SrecordingChain", "SrecordingCompose",
                                 "SrecordingDynamic", "SrecordingLap", "SrecordingScope"});
}

TEST_CASE("LOTUS_DISABLE disables only the macros, and only in its own file") {
  CHECK(names_logged(disabled_pipeline, 0) ==
        std::vector<std::string>{"STransform", "STransform", "STransform", "SdisabledChain",
                                 "SdisabledCompose", "SdisabledLap"});
}

TEST_CASE("several scopes can be on one line and in one macro, even if they are disabled") {
  CHECK(names_logged(recording_on_one_line, 0) ==
        std::vector<std::string>{"SLeft", "SRight", "STwice", "STwiceAgain"});
  CHECK(names_logged(disabled_on_one_line, 0).empty());
}
