// Two files of one program, one with LOTUS_DISABLE: only the macros of that one are gone.
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

/// The names in the log of one run of `pipeline`, sorted.
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

TEST_CASE("where nothing is disabled every macro and class logs") {
  CHECK(names_logged(recording_pipeline, 7) ==
        std::vector<std::string>{"SBatchConsumed_6", "SBatchPreprocessed_2", "SBatchQueued_5",
                                 "SBatchWait_3", "SBatchWait_5", "STransform", "STransform",
                                 "STransform", "SrecordingChain", "SrecordingCompose",
                                 "SrecordingDynamic", "SrecordingLap", "SrecordingScope"});
}

TEST_CASE("LOTUS_DISABLE in one file takes its macros away, and neither classes nor other files") {
  CHECK(names_logged(disabled_pipeline, 0) ==
        std::vector<std::string>{"STransform", "STransform", "STransform", "SdisabledChain",
                                 "SdisabledCompose", "SdisabledLap"});
}

TEST_CASE("several scopes stand on one line and in one macro, also where they are disabled") {
  CHECK(names_logged(recording_on_one_line, 0) ==
        std::vector<std::string>{"SLeft", "SRight", "STwice", "STwiceAgain"});
  CHECK(names_logged(disabled_on_one_line, 0).empty());
}
