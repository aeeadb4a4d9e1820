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

TEST_CASE("wait, delay and step of a batch") {
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

TEST_CASE("a marker is no wait, and ends no step") {
  // 1 arrives out of order while 0 is waited for, and is taken from the cache without a wait.
  const run_batches run({waited(1, 150, 1000), waited(0, 100, 100), used(0, 210),
                         waited(3, 220, 1000), used(1, 300), waited(2, 350, 10), used(2, 360)});
  const batch& zero = run.all()[0];
  const batch& one = run.all()[1];
  CHECK(run.out_of_order(one));
  CHECK(run.wait_ns(one) == maybe(0));
  CHECK(run.step_ns(zero.consumed) == maybe(90));  // to the next consumption, past the marker
  CHECK(run.step_ns(one.consumed) == maybe(50));   // to the next wait
  CHECK_FALSE(run.out_of_order(zero));
  CHECK(run.all()[3].consumed == no_record);
}

TEST_CASE("numbers that come again are the next epoch, in order of time and not of the log") {
  const run_batches run({waited(0, 5000, 10), used(0, 5020), waited(0, 100, 10), used(0, 120),
                         made(0, 4000, 900), made(0, 10, 80)});
  REQUIRE(run.all().size() == 2);
  CHECK(run.all()[0].epoch == 0);
  CHECK(run.preprocess_ns(run.all()[0]) == maybe(80));
  CHECK(run.delay_ns(run.all()[0]) == maybe(30));
  CHECK(run.all()[1].epoch == 1);
  CHECK(run.delay_ns(run.all()[1]) == maybe(120));
  // The last step of an epoch ends nowhere; what lies between epochs is told apart.
  CHECK(run.step_ns(run.all()[0].consumed) == maybe());
  REQUIRE(run.epochs().size() == 2);
  CHECK(run.epochs()[0].between_ns == maybe(5000 - 120));
  CHECK(run.epochs()[1].between_ns == maybe());
}

TEST_CASE("an epoch that is left early leaves its prefetched batches to nobody") {
  // Batch 1 is made in both epochs, but the first one ends after batch 0.
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

TEST_CASE("work that was given out for an abandoned epoch is that epoch's") {
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

TEST_CASE("processes that consume at the same time have batches of their own") {
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
  // One after the other they are epochs of one, in order of time.
  const run_batches again(
      {of(1, made(0, 10, 10)), of(1, used(0, 25)), of(0, made(0, 100, 10)), of(0, used(0, 111))});
  REQUIRE(again.all().size() == 2);
  CHECK(again.delay_ns(again.all()[0]) == maybe(5));
  CHECK(again.delay_ns(again.all()[1]) == maybe(1));
}

TEST_CASE("batches come by epoch, then by number, whatever is missing") {
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

TEST_CASE("two consumers do not end each other's steps") {
  const run_batches run({used(0, 100, file_id(0)), used(2, 300, file_id(0)),
                         used(1, 150, file_id(2)), used(3, 400, file_id(2))});
  CHECK(run.step_ns(run.all()[0].consumed) == maybe(200));
  CHECK(run.step_ns(run.all()[1].consumed) == maybe(250));
  CHECK(run.step_ns(run.all()[2].consumed) == maybe());
  CHECK(run.step_ns(run.all()[3].consumed) == maybe());
}

TEST_CASE("no records, no batches") {
  CHECK(run_batches({}).all().empty());
}
