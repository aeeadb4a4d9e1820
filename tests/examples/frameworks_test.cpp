// Tests the examples that use FFmpeg, oneTBB and OpenCV: their logs must contain the expected
// records, and lotus-tool must be able to read them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "catch.hpp"
#include "example_run.hpp"
#include "support.hpp"
#ifdef EXAMPLE_IMAGENET_PIPELINE_PROGRAM
  #include "imagenet/images/synthetic.hpp"
#endif

using namespace example_run;

TEST_CASE("ffmpeg_clips records one batch for each clip") {
#ifdef EXAMPLE_FFMPEG_CLIPS_PROGRAM
  const example e{EXAMPLE_FFMPEG_CLIPS_PROGRAM};
  const auto lines = e.logs();
  for (const char* kind : {"SBatchPreprocessed", "SBatchWait", "SBatchConsumed"}) {
    CHECK(numbers_of(lines, kind) == all_below(8));
  }
  CHECK(named(lines, "SOpen") == 8);
  CHECK(named(lines, "SScale") == 8 * 48);
  for (const char* part : {"SOpen", "SDemux", "SDecode", "SScale"}) {
    CHECK(lies_within(lines, part, "SBatchPreprocessed_"));
  }
  e.check_tool();
#else
  lotus_test::skip("the example is not built");
#endif
}

#ifdef EXAMPLE_IMAGENET_PIPELINE_PROGRAM
namespace {

constexpr std::size_t image_count = 20;

/// The folder of JPEG files that all test cases use whose examples are built.
[[maybe_unused]] const std::string& images() {
  static const support::temp_directory folder;
  static const std::string path = [] {
    std::string made = (folder.path() / "images").string();
    imagenet::make_images(made, image_count, 1);
    return made;
  }();
  return path;
}

}  // namespace

TEST_CASE("tbb_stages records every stage of every image, and the batch of each image") {
  #ifdef EXAMPLE_TBB_STAGES_PROGRAM
  const example e{EXAMPLE_TBB_STAGES_PROGRAM, images()};
  const auto lines = e.logs();
  const auto stages = e.side_lines("stage");
  std::map<std::int64_t, std::int64_t> ended_ns;
  for (const char* name : {"SRead", "SDecode", "SAugment", "SCollate"}) {
    INFO(name);
    CHECK(named(lines, name) == image_count);
    const auto items = by_number(stages, name);
    CHECK(items.size() == image_count);
    for (const auto& [item, spans] : items) {
      REQUIRE(spans.size() == 1);
      CHECK(spans[0].time_ns >= ended_ns[item]);
      ended_ns[item] = spans[0].time_ns + spans[0].a;
      CHECK(std::any_of(lines.begin(), lines.end(), [&, &s = spans[0]](const log_line& l) {
        return l.name == name && l.start_ns == s.time_ns && l.duration_ns == s.a && l.tid == s.tid;
      }));
    }
  }
  CHECK(ended_ns.size() == image_count);

  const auto takes = e.side_lines("takes");
  CHECK(takes.size() == image_count);
  for (const side_log_line& l : takes) CHECK(l.a == l.b / 8);
  CHECK(e.side_lines("counter").size() == 3);
  CHECK(numbers_of(lines, "SBatchWait") == all_below(3));
  CHECK(numbers_of(lines, "SBatchConsumed") == all_below(3));
  CHECK(lies_within(lines, "SRandomResizedCrop", "SAugment"));
  e.check_tool();
  #else
  lotus_test::skip("the example is not built");
  #endif
}

TEST_CASE("opencv_workers records all batches, with the operations of all images") {
  #ifdef EXAMPLE_OPENCV_WORKERS_PROGRAM
  const example e{EXAMPLE_OPENCV_WORKERS_PROGRAM, images()};
  const auto lines = e.logs();
  for (const char* kind : {"SBatchPreprocessed", "SBatchWait", "SBatchConsumed"}) {
    CHECK(numbers_of(lines, kind) == all_below(3));
  }
  for (const char* operation : {"SLoad", "SResize", "SFlip", "SNormalize", "STransform"}) {
    CHECK(named(lines, operation) == image_count);
    CHECK(lies_within(lines, operation, "SBatchPreprocessed_"));
  }
  e.check_tool();
  #else
  lotus_test::skip("the example is not built");
  #endif
}
#endif
