// Tests which spans belong to the preprocessing of a batch: if several stages build the batch, if
// it consists of items, or if several threads preprocess parts of it, over several epochs.
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "catch.hpp"
#include "log/log_line.hpp"
#include "model/pipeline/items.hpp"
#include "model/run_model.hpp"

using namespace lotus::tool;

namespace {

using maybe = std::optional<std::int64_t>;

constexpr std::uint32_t read_stage = 0;
constexpr std::uint32_t decode_stage = 1;
constexpr std::uint32_t collate_stage = 2;

batch_record made(std::int64_t i, std::int64_t start, std::int64_t duration, std::uint32_t file) {
  return {start, duration, i, file_id(file), 0, record_kind::preprocessed};
}
batch_record waited(std::int64_t i, std::int64_t start, std::int64_t duration) {
  return {start, duration, i, file_id(0), 0, record_kind::wait};
}
batch_record used(std::int64_t i, std::int64_t start) {
  return {start, 1000, i, file_id(0), 0, record_kind::consumed};
}
stage_span span(std::uint32_t stage, std::int64_t i, std::int64_t start, std::int64_t duration,
                std::uint32_t file) {
  return {start, duration, i, stage, file_id(file)};
}

}  // namespace

TEST_CASE("batches that only stages build are complete and separate for each epoch") {
  batch_records records;
  std::vector<stage_span> stages;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t at = 10'000 * epoch + 100 * i;
      stages.push_back(span(read_stage, i, at, 10, 1));
      stages.push_back(span(decode_stage, i, at + 30, 40, 2));
      records.push_back(waited(i, at, 75));
      records.push_back(used(i, at + 75));
    }
  }
  const run_batches run(records, stages);
  REQUIRE(run.all().size() == 15);
  for (const batch& b : run.all()) {
    REQUIRE(b.spans == 2);
    CHECK(run.made(b)->duration_ns() == 70);
    CHECK(run.service_ns(b) == 50);
    CHECK(run.queueing_ns(b) == 20);
    CHECK(run.delay_ns(b) == maybe(5));
    CHECK(run.preprocess_ns(b) == maybe());
    CHECK(run.step_ns(b.consumed) == (b.index == 4 ? maybe() : maybe(25)));
  }
  REQUIRE(run.epochs().size() == 3);
  CHECK(run.epochs()[1].between_ns == maybe(20'000 - 10'475));
  CHECK(*run.steady_per_s() == Approx(1e9 / 100));
  CHECK_FALSE(run.in_parts());
}

TEST_CASE("with a pin thread after the workers, a batch is ready when the last stage ends") {
  batch_records records;
  std::vector<stage_span> stages;
  for (std::int64_t i = 0; i < 6; ++i) {
    records.push_back(made(i, 100 * i, 20, 1 + static_cast<std::uint32_t>(i % 2)));
    stages.push_back(span(decode_stage, i, 100 * i + 30, 30, 9));
    records.push_back(waited(i, 100 * i, 65));
    records.push_back(used(i, 100 * i + 65));
    // The consumer's own stage after receiving the batch does not belong to its preprocessing.
    stages.push_back(span(collate_stage, i, 100 * i + 70, 10, 0));
  }
  const run_batches run(records, stages);
  REQUIRE(run.all().size() == 6);
  for (const batch& b : run.all()) {
    CHECK(run.preprocess_ns(b) == maybe(20));
    CHECK(run.made(b)->duration_ns() == 60);
    CHECK(run.queueing_ns(b) == 10);
    CHECK(run.delay_ns(b) == maybe(5));
  }
}

TEST_CASE("stages of an epoch that was left early belong to no received batch") {
  std::vector<stage_span> stages;
  batch_records records;
  for (std::int64_t i = 0; i < 4; ++i) stages.push_back(span(decode_stage, i, 10 * i, 5, 1));
  records.push_back(used(0, 20));
  for (std::int64_t i = 0; i < 4; ++i) {
    stages.push_back(span(decode_stage, i, 1000 + 10 * i, 5, 1));
    records.push_back(used(i, 1007 + 10 * i));
  }
  const run_batches run(records, stages);
  REQUIRE(run.all().size() == 8);
  CHECK(run.delay_ns(run.all()[0]) == maybe(15));
  CHECK(run.delay_ns(run.all()[1]) == maybe());
  for (std::size_t i = 4; i < 8; ++i) CHECK(run.delay_ns(run.all()[i]) == maybe(2));
}

TEST_CASE(
    "items that pass a shuffle buffer are assigned to the batches that took them, per epoch") {
  constexpr std::int64_t in_batch = 4;
  constexpr std::int64_t batches = 25;
  std::mt19937 random(7);
  std::vector<stage_span> stages;
  std::vector<batch_inclusion> inclusions;
  batch_records records;
  std::vector<std::int64_t> first_ns;  // expected values by epoch and batch
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::int64_t begin = 1'000'000 * epoch;
    std::vector<std::int64_t> start(in_batch * batches);
    for (std::int64_t item = 0; item < in_batch * batches; ++item) {
      start[static_cast<std::size_t>(item)] = begin + 10 * item;
      stages.push_back(span(read_stage, item, begin + 10 * item, 3, 1));
      stages.push_back(span(decode_stage, item, begin + 10 * item + 4, 5, 2));
    }
    std::vector<std::int64_t> buffer;
    std::int64_t next = 0;
    for (std::int64_t b = 0; b < batches; ++b) {
      std::int64_t earliest = INT64_MAX;
      std::int64_t at = 0;
      for (std::int64_t k = 0; k < in_batch; ++k) {
        while (buffer.size() < 16 && next < in_batch * batches) buffer.push_back(next++);
        const std::size_t drawn = random() % buffer.size();
        const std::int64_t item = buffer[drawn];
        buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(drawn));
        at = begin + 10 * next + 100 + k;
        inclusions.push_back({at, b, item});
        earliest = std::min(earliest, start[static_cast<std::size_t>(item)]);
      }
      stages.push_back(span(collate_stage, b, at - 5, 20, 3));
      records.push_back(used(b, at + 20));
      first_ns.push_back(earliest);
    }
  }
  const run_batches run(records, stages, inclusions);
  REQUIRE(run.all().size() == 2 * batches);
  for (std::size_t i = 0; i < first_ns.size(); ++i) {
    const batch& b = run.all()[i];
    CAPTURE(i);
    REQUIRE(b.spans == 2 * in_batch + 1);
    CHECK(run.made(b)->start_ns == first_ns[i]);
    CHECK(run.service_ns(b) == 8 * in_batch + 20);
    CHECK(run.delay_ns(b) == maybe(5));
  }
  const std::vector<item> items = items_of(run);
  CHECK(items.size() == 2 * (in_batch * batches + batches));
}

TEST_CASE("stages whose numbers are not batch numbers have items that belong to no batch") {
  std::vector<stage_span> stages;
  batch_records records;
  for (std::int64_t item = 0; item < 100; ++item) {
    stages.push_back(span(decode_stage, item, 10 * item, 5, 1));
  }
  for (std::int64_t b = 0; b < 10; ++b) records.push_back(used(b, 100 * b + 100));
  const run_batches run(records, stages);
  CHECK(run.all().size() == 10);
  for (const batch& b : run.all()) CHECK(b.spans == 0);
  CHECK(run.preprocessing_spans().size() == 100);
}

TEST_CASE("a batch that several threads preprocess is one batch, not one per epoch") {
  batch_records records;
  for (std::int64_t i = 0; i < 30; ++i) {
    records.push_back(made(i, 100 * i, 20, 1));
    records.push_back(made(i, 100 * i + 10, 30, 2));
    records.push_back(made(i, 100 * i + 50, 10, 3));
    records.push_back(used(i, 100 * i + 61));
  }
  const run_batches run(records);
  CHECK(run.in_parts());
  REQUIRE(run.all().size() == 30);
  for (const batch& b : run.all()) {
    CHECK(run.preprocess_ns(b) == maybe(50));
    CHECK(run.service_ns(b) == 60);
    CHECK(run.queueing_ns(b) == 10);
    CHECK(run.delay_ns(b) == maybe(1));
  }
}

TEST_CASE("parts of a batch in several threads are one batch, whether they overlap or not") {
  // The parts of every `apart`-th batch do not overlap.
  const auto apart = GENERATE(as<std::int64_t>{}, 1, 2, 3, 10, 1000);
  batch_records records;
  std::vector<stage_span> stages;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::uint32_t part = 0; part < 4; ++part) {
      const std::int64_t after = part * (i % apart == apart - 1 ? 12 : 2);
      stages.push_back(span(decode_stage, i, 100 * i + after, 10, 1 + part));
    }
    records.push_back(waited(i, 100 * i, 60));
    records.push_back(used(i, 100 * i + 61));
  }
  const run_batches run(records, stages);
  CHECK(run.in_parts());
  REQUIRE(run.all().size() == 40);
  for (const batch& b : run.all()) {
    CHECK(b.spans == 4);
    CHECK(run.left_ns(b).has_value());
    CHECK(run.made(b)->duration_ns() == (b.index % apart == apart - 1 ? 46 : 16));
  }
}

TEST_CASE("with CONSUMED after the step, a batch is received at the end of its wait") {
  batch_records records;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    // Every fifth batch arrived early and was buffered: it has a marker instead of a wait.
    const bool aside = i % 5 == 4;
    records.push_back(aside ? waited(i, now - 60, 1000) : waited(i, now, 3));
    now += aside ? 0 : 3;
    now += 50;  // duration of the step
    records.push_back(used(i, now));
  }
  const run_batches run(records);
  CHECK(run.consumed_late());
  for (const batch& b : run.all()) {
    CHECK(run.step_ns(b.consumed) == (b.index == 19 ? maybe() : maybe(50)));
  }
}

TEST_CASE("the number of workers is that of overlapping batches, not of threads") {
  batch_records records;
  for (std::int64_t i = 0; i < 40; ++i) {
    records.push_back(made(i, 100 * i, 90, 1 + static_cast<std::uint32_t>(i % 4)));
  }
  CHECK(workers_at_once(run_batches(records)) == 1);
  // Each batch has its own thread, and two batches are in flight.
  records.clear();
  for (std::int64_t i = 0; i < 100; ++i) {
    records.push_back(made(i, 50 * i, 100, 1 + static_cast<std::uint32_t>(i)));
  }
  CHECK(workers_at_once(run_batches(records)) == 2);
}
