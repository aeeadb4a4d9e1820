#include "model/run_model.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "log/log_line.hpp"

using namespace lotus::tool;

namespace {

constexpr file_id consumer{0};
constexpr file_id worker{1};
constexpr optional_record no_record;

batch_record made(std::int64_t i, std::int64_t start, std::int64_t duration) {
  return {start, duration, i, worker, 0, record_kind::preprocessed};
}
batch_record waited(std::int64_t i, std::int64_t start, std::int64_t duration) {
  return {start, duration, i, consumer, 0, record_kind::wait};
}
batch_record used(std::int64_t i, std::int64_t start, file_id by = consumer) {
  return {start, 1000, i, by, 0, record_kind::consumed};
}

using maybe = std::optional<std::int64_t>;

}  // namespace

TEST_CASE("wait, delay and step of a batch are computed") {
  const run_batches run({waited(0, 100, 50), used(0, 200), waited(1, 260, 5000), used(1, 9000),
                         made(0, 10, 120), made(1, 140, 3000)});
  REQUIRE(run.all().size() == 2);
  const batch& first = run.all()[0];
  CHECK(run.preprocess_ns(first) == maybe(120));
  CHECK(run.wait_ns(first) == maybe(50));
  CHECK(run.delay_ns(first) == maybe(200 - 130));
  CHECK(run.step_ns(first.consumed) == maybe(60));
  CHECK(run.step_ns(run.all()[1].consumed) == maybe());
  CHECK(run.record(first.preprocessed)->file == worker);
}

TEST_CASE("an out-of-order marker is not a wait and does not end a step") {
  // Batch 1 arrives out of order while the consumer waits for batch 0. Later it is received from
  // the buffer, without a wait.
  const run_batches run({waited(1, 150, 1000), waited(0, 100, 100), used(0, 210),
                         waited(3, 220, 1000), used(1, 300), waited(2, 350, 10), used(2, 360)});
  const batch& zero = run.all()[0];
  const batch& one = run.all()[1];
  CHECK(run.out_of_order(one));
  CHECK(run.wait_ns(one) == maybe(0));
  // The step lasts until the next batch is received. The marker of batch 3, which arrives during
  // the step, does not end it.
  CHECK(run.step_ns(zero.consumed) == maybe(90));
  CHECK(run.step_ns(one.consumed) == maybe(50));  // lasts until the next wait
  CHECK_FALSE(run.out_of_order(zero));
  CHECK(run.all()[3].consumed == no_record);
}

TEST_CASE("repeated batch numbers begin the next epoch, in order of time") {
  const run_batches run({waited(0, 5000, 10), used(0, 5020), waited(0, 100, 10), used(0, 120),
                         made(0, 4000, 900), made(0, 10, 80)});
  REQUIRE(run.all().size() == 2);
  CHECK(run.all()[0].epoch == 0);
  CHECK(run.preprocess_ns(run.all()[0]) == maybe(80));
  CHECK(run.delay_ns(run.all()[0]) == maybe(30));
  CHECK(run.all()[1].epoch == 1);
  CHECK(run.delay_ns(run.all()[1]) == maybe(120));
  // The end of an epoch's last step is not recorded. The time between two epochs belongs to no
  // step.
  CHECK(run.step_ns(run.all()[0].consumed) == maybe());
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.epochs()[0].between_ns == maybe(5000 - 120));
  CHECK(run.epochs()[1].between_ns == maybe());
}

TEST_CASE("batches that were prefetched for an epoch left early are not received") {
  // Batch 1 is built in both epochs, but the first epoch ends after batch 0.
  const run_batches run({made(0, 10, 10), made(1, 20, 10), used(0, 40), made(0, 1000, 10),
                         made(1, 1020, 10), waited(1, 1010, 21), used(0, 1015), used(1, 1032)});
  REQUIRE(run.all().size() == 4);
  CHECK(run.delay_ns(run.all()[0]) == maybe(20));
  CHECK(run.delay_ns(run.all()[1]) == maybe());
  CHECK(run.preprocess_ns(run.all()[1]) == maybe(10));
  CHECK(run.delay_ns(run.all()[2]) == maybe(5));
  CHECK(run.delay_ns(run.all()[3]) == maybe(2));
  CHECK(run.wait_ns(run.all()[3]) == maybe(21));
}

TEST_CASE("a batch that was dispatched in an abandoned epoch belongs to that epoch") {
  const auto queued = [](std::int64_t i, std::int64_t start) {
    return batch_record{start, 1000, i, consumer, 0, record_kind::queued};
  };
  const run_batches run({queued(1, 5), made(1, 10, 10), made(1, 500, 10), queued(1, 900),
                         made(1, 1000, 10), used(1, 1020)});
  REQUIRE(run.all().size() == 3);
  CHECK(run.record(run.all()[0].queued)->start_ns == 5);
  CHECK(run.all()[1].queued == no_record);
  CHECK(run.record(run.all()[2].queued)->start_ns == 900);
  CHECK(run.delay_ns(run.all()[2]) == maybe(10));
}

TEST_CASE("throughput includes start-up and pauses between epochs, but not in steady state") {
  std::vector<batch_record> all;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::int64_t begin = 1000 * epoch;
    for (std::int64_t i = 0; i < 4; ++i) {
      all.push_back(made(i, begin + 50 * i, 100));
      all.push_back(waited(i, begin + (i == 0 ? 20 : 120 + 50 * i), i == 0 ? 90 : 10));
      all.push_back(used(i, begin + 110 + 50 * i + (i == 0 ? 0 : 20)));
    }
  }
  const run_batches run(batch_records(all.begin(), all.end()));
  // The steps last from 110 to 170, from 180 to 220 and from 230 to 270. So the last step, whose
  // end is unknown, is assumed to take 40.
  CHECK(run.length_ns() == 1000 + 280 + 40);
  CHECK(*run.achieved_per_s() == Approx(8e9 / 1320));
  CHECK(*run.steady_per_s() == Approx(6e9 / (2 * 170)));
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.last_step_ns(run.epochs()[0]) == 40);
}

TEST_CASE("a pass with only discarded batches does not shift later epochs") {
  // The reader prefetches batches 0 to 2 and is reset to the beginning of its data. Then it builds
  // batches 0 to 9, which are received.
  batch_records all;
  for (std::int64_t i = 0; i < 3; ++i) all.push_back(made(i, 10 * i, 8));
  for (std::int64_t i = 0; i < 10; ++i) {
    all.push_back(made(i, 100 + 10 * i, 8));
    all.push_back(waited(i, 101 + 10 * i, 8));
    all.push_back(used(i, 110 + 10 * i));
  }
  const run_batches run(all);
  REQUIRE(run.all().size() == 13);
  REQUIRE(run.epochs().size() == 1);
  CHECK(run.epochs()[0].delivered == 10);
  CHECK(*run.steady_per_s() == Approx(1e9 / 10));
  CHECK(run.discarded() == 3);
  for (std::size_t b = 0; b < 13; ++b) {
    CHECK(run.all()[b].epoch == (b < 3 ? 0U : 1U));
    CHECK(run.delay_ns(run.all()[b]) == (b < 3 ? maybe() : maybe(2)));
  }
}

TEST_CASE("a pass that ended early does not take batches of the next pass") {
  // Of six batches, 0 to 2 are received and 3 is discarded. Then a complete epoch follows.
  batch_records all;
  for (std::int64_t i = 0; i < 4; ++i) {
    all.push_back(made(i, 10 * i, 8));
    if (i < 3) all.push_back(used(i, 10 * i + 9));
  }
  for (std::int64_t i = 0; i < 6; ++i) {
    all.push_back(made(i, 100 + 10 * i, 8));
    all.push_back(used(i, 109 + 10 * i));
  }
  const run_batches run(all);
  REQUIRE(run.all().size() == 10);
  CHECK(run.discarded() == 1);
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.epochs()[0].delivered == 3);
  CHECK(run.epochs()[1].delivered == 6);
  CHECK(run.epochs()[1].first_ns == 109);
  CHECK(run.all()[3].index == 3);
  CHECK(run.all()[3].epoch == 0);
}

TEST_CASE("a batch that was built twice is one batch of its pass") {
  batch_records all;
  for (std::int64_t i = 0; i < 8; ++i) {
    all.push_back(made(i, 100 * i, 30));
    if (i == 5) all.push_back(made(i, 100 * i + 40, 30));
    all.push_back(used(i, 100 * i + 80));
  }
  const run_batches run(all);
  REQUIRE(run.all().size() == 8);
  REQUIRE(run.epochs().size() == 1);
  CHECK(run.discarded() == 0);
  CHECK(run.made(run.all()[5])->duration_ns() == 70);
}

TEST_CASE("batches that arrive in any order form one pass") {
  batch_records all;
  const std::int64_t order[] = {2, 0, 1, 4, 3, 5, 7, 6, 9, 8};
  for (std::int64_t pass = 0; pass < 2; ++pass) {
    for (std::int64_t at = 0; at < 10; ++at) {
      const std::int64_t i = order[at];
      all.push_back(made(i, 1000 * pass + 10 * at, 8));
      // The first epoch is left early, so its last batches are not built.
      if (pass == 0 && at >= 7) all.pop_back();
      if (pass == 1 || at < 7) all.push_back(used(i, 1000 * pass + 10 * at + 9));
    }
  }
  const run_batches run(all);
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.epochs()[0].delivered == 7);
  CHECK(run.epochs()[1].delivered == 10);
}

TEST_CASE("without a consumer, batches are done when their last stage ends") {
  const std::vector<stage_span> stages = [] {
    std::vector<stage_span> all;
    for (std::int64_t i = 0; i < 5; ++i) {
      for (const std::uint32_t s : {1U, 2U}) {
        stage_span& of = all.emplace_back();
        of.name = s;
        of.number = i;
        of.start_ns = 100 * i + 60 * (s - 1);
        of.duration_ns = 50;
        of.file = file_id(s);
      }
    }
    return all;
  }();
  const run_batches run({}, stages);
  REQUIRE(run.all().size() == 5);
  CHECK(run.pushed());
  CHECK(run.left_ns(run.all()[2]) == maybe(310));
  CHECK(run.delay_ns(run.all()[2]) == maybe());
  CHECK(run.length_ns() == 510);
  CHECK(*run.achieved_per_s() == Approx(5e9 / 510));
  CHECK(*run.steady_per_s() == Approx(1e9 / 100));
  CHECK(run.discarded() == 0);
  CHECK_FALSE(run_batches({used(0, 10)}, stages).pushed());
}

TEST_CASE("batches of processes that consume at the same time are kept apart") {
  const auto of = [](std::uint32_t consumer_process, batch_record r) {
    r.consumer = consumer_id(consumer_process);
    return r;
  };
  const run_batches run({of(0, made(0, 10, 10)), of(0, used(0, 25)), of(0, made(0, 100, 10)),
                         of(0, used(0, 115)), of(1, made(0, 10, 40)), of(1, used(0, 60)),
                         of(1, made(0, 110, 40)), of(1, used(0, 170))});
  REQUIRE(run.all().size() == 4);
  const std::int64_t delays[] = {5, 5, 10, 20};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(run.all()[i].epoch == i);
    CHECK(run.delay_ns(run.all()[i]) == maybe(delays[i]));
  }
  // If the processes consume one after the other, their epochs count as epochs of one consumer, in
  // order of time.
  const run_batches again(
      {of(1, made(0, 10, 10)), of(1, used(0, 25)), of(0, made(0, 100, 10)), of(0, used(0, 111))});
  REQUIRE(again.all().size() == 2);
  CHECK(again.delay_ns(again.all()[0]) == maybe(5));
  CHECK(again.delay_ns(again.all()[1]) == maybe(1));
}

TEST_CASE("batches are sorted by epoch and number, even if records are missing") {
  const run_batches run({made(7, 100, 1), made(2, 50, 1), made(2, 500, 1), used(9, 700)});
  std::vector<std::int64_t> order;
  for (const batch& b : run.all())
    order.push_back(static_cast<std::int64_t>(b.epoch) * 100 + b.index);
  CHECK(order == std::vector<std::int64_t>{2, 7, 9, 102});
  CHECK(run.wait_ns(run.all()[0]) == maybe());
  CHECK(run.delay_ns(run.all()[0]) == maybe());
  CHECK(run.preprocess_ns(run.all()[2]) == maybe());
  for (const batch_record& r : run.records()) {
    CHECK(run.at(run.batch_of(r)).index == r.index);
    CHECK(run.at(run.batch_of(r)).epoch == r.epoch);
  }
}

TEST_CASE("the steps of two consumers do not end each other") {
  const run_batches run({used(0, 100, file_id(0)), used(2, 300, file_id(0)),
                         used(1, 150, file_id(2)), used(3, 400, file_id(2))});
  CHECK(run.step_ns(run.all()[0].consumed) == maybe(200));
  CHECK(run.step_ns(run.all()[1].consumed) == maybe(250));
  CHECK(run.step_ns(run.all()[2].consumed) == maybe());
  CHECK(run.step_ns(run.all()[3].consumed) == maybe());
}

TEST_CASE("the waits for the pieces of a batch add up") {
  // Batch 0 is received while it is built, and batch 1 in pieces after it was built.
  const run_batches run({made(0, 0, 100), made(1, 100, 120), waited(0, 10, 40), used(0, 50),
                         waited(0, 60, 45), used(0, 105), waited(1, 130, 95), used(1, 225),
                         waited(1, 240, 1), used(1, 241), waited(1, 260, 2), used(1, 262),
                         waited(2, 270, 5), used(2, 275)});
  REQUIRE(run.all().size() == 3);
  CHECK(run.epochs().size() == 1);
  const batch& first = run.all()[0];
  const batch& second = run.all()[1];
  CHECK(run.wait_ns(first) == maybe(85));
  CHECK(run.wait_ns(second) == maybe(98));
  CHECK(run.delay_ns(first) == maybe(5));
  CHECK(run.delay_ns(second) == maybe(5));
  // A step takes the time from the reception to the next wait, without the waits for other pieces.
  CHECK(run.step_ns(first.consumed) == maybe(225 - 98 - 105));
  CHECK(run.step_ns(second.consumed) == maybe(270 - 225));
}

TEST_CASE("a batch is built once even if its pieces are built one after another") {
  std::vector<batch_record> all;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = 1000 * i;
    for (const batch_record& r :
         {made(i, at, 100), waited(i, at + 50, 52), used(i, at + 102), made(i, at + 200, 100),
          waited(i, at + 210, 92), used(i, at + 302)}) {
      all.push_back(r);
    }
  }
  const run_batches run({all.begin(), all.end()});
  REQUIRE(run.all().size() == 4);
  for (const batch& b : run.all()) {
    CHECK(run.preprocess_ns(b) == maybe(200));
    CHECK(run.wait_ns(b) == maybe(52 + 92));
    CHECK(run.delay_ns(b) == maybe(2));
  }
}

TEST_CASE("waits for one batch before a single reception add up") {
  const run_batches run({made(0, 0, 100), waited(0, 10, 20), waited(0, 30, 20), waited(0, 50, 55),
                         used(0, 106), waited(1, 150, 5), used(1, 155)});
  REQUIRE(run.all().size() == 2);
  CHECK(run.wait_ns(run.all()[0]) == maybe(95));
  CHECK(run.delivery_ns(run.all()[0]) == maybe(106));
  CHECK(run.step_ns(run.all()[0].consumed) == maybe(44));
}

TEST_CASE("an epoch that begins with the last number of the one before is no piece of it") {
  const run_batches run({made(0, 0, 10), made(1, 10, 10), made(2, 20, 10), made(2, 100, 10),
                         made(1, 110, 10), made(0, 120, 10), used(0, 15), used(1, 25), used(2, 35),
                         used(2, 115), used(1, 125), used(0, 135)});
  REQUIRE(run.all().size() == 6);
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.epochs()[0].delivered == 3);
}

TEST_CASE("a run without records has no batches") {
  CHECK(run_batches({}).all().empty());
}
