// Tests the words for changes of a pipeline.
#include "replay/change_text.hpp"

#include <string>

#include "catch.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

using namespace lotus::tool;

TEST_CASE("changes are joined where they are listed, not at a comma in a name") {
  recorded_pipeline pipeline;
  recorded_stage& stage = pipeline.stages.emplace_back();
  stage.name = "decode, crop";
  stage.threads = 4;
  pipeline_change change;
  CHECK(change_text(change, pipeline).empty());
  change.threads["decode, crop"] = 8;
  CHECK(change_text(change, pipeline, " and ") == "8 threads in decode, crop instead of 4");
  change.step = 0.5;
  CHECK(change_text(change, pipeline, " and ") ==
        "8 threads in decode, crop instead of 4 and consumer 2x faster");
  change.no_start_up = true;
  CHECK(change_text(change, pipeline) ==
        "8 threads in decode, crop instead of 4, consumer 2x faster, no start-up time");
}
