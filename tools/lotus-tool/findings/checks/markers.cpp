// Finds batch macros, such as LOTUS_BATCH_CONSUMED, that a program lacks or uses incorrectly.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "findings/checks/checked_run.hpp"
#include "findings/words.hpp"
#include "log/log_line.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Counts the records of one kind and detects whether all of them have the same batch number.
class marked_batches {
 public:
  void add(std::int64_t number) {
    one_number_ = count_ == 0 || (one_number_ && number == number_);
    number_ = number;
    ++count_;
  }
  std::size_t count() const noexcept { return count_; }
  std::int64_t number() const noexcept { return number_; }
  /// Returns whether all numbers are equal. At least three equal numbers are a mistake in the
  /// program, because three epochs of one batch each are unlikely.
  bool all_the_same() const noexcept { return one_number_ && count_ >= 3; }

 private:
  std::size_t count_ = 0;
  std::int64_t number_ = 0;
  bool one_number_ = false;
};

struct all_marked {
  marked_batches preprocessed;
  marked_batches wait;
  marked_batches consumed;
  bool has_stages = false;

  explicit all_marked(const run_data& run) : has_stages(!run.side.stages.empty()) {
    for (const batch_record& r : run.batches.records()) {
      if (r.kind == record_kind::preprocessed) preprocessed.add(r.index);
      if (r.kind == record_kind::wait) wait.add(r.index);
      if (r.kind == record_kind::consumed) consumed.add(r.index);
    }
  }

  bool has_builders() const noexcept { return has_stages || preprocessed.count() > 0; }
  bool has_consumer() const noexcept { return wait.count() > 0 || consumed.count() > 0; }
};

}  // namespace

/// Batch macros that the program lacks or calls with the same number each time. It is no fault if a
/// program has stages but no consumer, because the program may be a service.
void missing_markers(checked_run& r) {
  const all_marked marked(r.run);
  const std::size_t before = r.failed.size();
  const auto missing = [&r](std::string_view id, const char* text, const char* to_do) {
    r.fail(id, true, {text}, {to_do});
  };
  if (!marked.has_consumer()) return;
  if (!marked.has_builders()) {
    missing("no-preprocessed",
            "no SBatchPreprocessed records, so it is unknown when batches were built",
            "put LOTUS_BATCH_PREPROCESSED(i) at the beginning of the block that builds batch i");
  }
  if (marked.wait.count() == 0) {
    missing("no-wait", "no SBatchWait records, so it is unknown how long the consumer waited",
            "create lotus::batch_wait before the consumer asks for the next batch, and call "
            "its consumed(i) when it has received batch i");
  }
  if (marked.consumed.count() == 0) {
    missing("no-consumed",
            "no SBatchConsumed records, so it is unknown when the consumer's steps began",
            "call wait.consumed(i), or LOTUS_BATCH_CONSUMED(i), right after the wait");
  }
  if (marked.consumed.count() >= enough_batches &&
      2 * marked.wait.count() < marked.consumed.count() && marked.wait.count() > 0) {
    r.fail("few-waits", true,
           {"waits are recorded for only % of % received batches",
            {count_word{marked.wait.count()}, count_word{marked.consumed.count()}}},
           {"create a lotus::batch_wait for each batch, before the consumer asks for it"});
  }
  const auto same = [&r](const marked_batches& batches, const char* macro) {
    if (!batches.all_the_same()) return;
    r.fail("same-number", true,
           {"batch numbers repeat: % was given % for all % batches",
            {name_word{macro}, name_word{std::to_string(batches.number())},
             count_word{batches.count()}}},
           {"number the batches of an epoch 0, 1, 2, ... and pass each batch's own number "
            "to all macros"});
  };
  same(marked.preprocessed, "LOTUS_BATCH_PREPROCESSED");
  if (r.failed.size() == before) same(marked.wait, "the wait");
  if (r.failed.size() == before) same(marked.consumed, "LOTUS_BATCH_CONSUMED");
  r.lacks_markers = r.failed.size() > before;
}

phrase why_no_pipeline(const run_data& run) {
  const all_marked marked(run);
  if (marked.has_consumer() || run.batches.pushed()) return {};
  return phrase{marked.has_builders()
                    ? "no consumer is marked, so the waits for these batches are unknown; put "
                    : "no batches are marked; for a verdict put LOTUS_BATCH_PREPROCESSED(i) into "
                      "the function that builds a batch, and "}
      .add(
          "`for (auto&& batch : lotus::consume(loader))`, or lotus::batch_wait with consumed(i), "
          "into the consumer");
}

}  // namespace lotus::tool
