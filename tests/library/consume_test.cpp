// Tests consume(), which records a loop over a loader: it must record every batch and not change
// how the loop behaves.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::log_line;

namespace {

using namespace std::chrono_literals;

struct numbered {
  std::uint64_t index;
  std::uint64_t twice() const { return 2 * index; }
};

/// Runs `loop` between start() and stop() and returns its records.
template <class Loop>
std::vector<log_line> recorded(Loop&& loop) {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  loop();
  lotus::stop();
  return support::read_logs(run.path());
}

/// Returns whether the records show one wait and one step for each of these batches, and nothing
/// else.
bool has_just(const std::vector<log_line>& lines, const std::vector<int>& batches) {
  bool all = lines.size() == 2 * batches.size();
  for (const int batch : batches) {
    all = all && count_named(lines, "SBatchWait_" + std::to_string(batch)) == 1 &&
          count_named(lines, "SBatchConsumed_" + std::to_string(batch)) == 1;
  }
  return all;
}

std::int64_t wait_ns(const std::vector<log_line>& lines, const std::string& batch) {
  for (const log_line& l : lines) {
    if (l.name == "SBatchWait_" + batch) return l.duration_ns;
  }
  return -1;
}

/// A loader like those of libtorch: begin() waits for the first batch and ++ for the next one. Only
/// after a last wait does the loader find out that no batch is left. Its iterator cannot be copied.
class slow_loader {
 public:
  struct sentinel {};
  class iterator {
   public:
    explicit iterator(int left) : left_{left} { next(); }
    iterator(const iterator&) = delete;
    iterator(iterator&&) = default;
    iterator& operator=(const iterator&) = delete;
    iterator& operator=(iterator&&) = default;
    ~iterator() = default;
    std::unique_ptr<int>& operator*() { return batch_; }
    iterator& operator++() {
      --left_;
      next();
      return *this;
    }
    bool operator!=(sentinel) const { return left_ > 0; }

   private:
    void next() {
      std::this_thread::sleep_for(2ms);
      batch_ = std::make_unique<int>(left_);
    }
    int left_;
    std::unique_ptr<int> batch_;
  };
  static iterator begin() { return iterator{3}; }
  static sentinel end() { return {}; }
};

/// A loader that builds a batch when its iterator is dereferenced. The batches cannot be moved.
struct lazy {
  struct pinned {
    explicit pinned(int n) : number{n} { std::this_thread::sleep_for(2ms); }
    pinned(const pinned&) = delete;
    pinned& operator=(const pinned&) = delete;
    ~pinned() = default;
    int number;
  };
  struct iterator {
    int at;
    pinned operator*() const { return pinned{at}; }
    iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const iterator& other) const { return at != other.at; }
  };
  static iterator begin() { return {0}; }
  static iterator end() { return {2}; }
};

}  // namespace

TEST_CASE("consume does not change a loop over a container, and numbers its batches from 0") {
  std::vector<int> batches{10, 20, 30};
  const auto lines = recorded([&] {
    for (auto&& batch : lotus::consume(batches)) ++batch;
  });
  CHECK(batches == std::vector<int>{11, 21, 31});
  CHECK(has_just(lines, {0, 1, 2}));
}

TEST_CASE("each wait lasts as long as the loader takes for the next batch") {
  slow_loader loader;
  std::vector<int> seen;
  const auto lines = recorded([&] {
    for (auto& batch : lotus::consume(loader)) {
      seen.push_back(*batch);
      std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(seen == std::vector<int>{3, 2, 1});
  CHECK(has_just(lines, {0, 1, 2}));
  for (const char* batch : {"0", "1", "2"}) CHECK(wait_ns(lines, batch) >= 2'000'000);
  for (const log_line& l : lines) CHECK(l.role == "main");
}

TEST_CASE("a batch that its iterator builds on access is waited for, and is not moved") {
  int sum = 0;
  const auto lines = recorded([&] {
    for (const lazy::pinned& batch : lotus::consume(lazy{})) sum += 10 + batch.number;
  });
  CHECK(sum == 21);
  CHECK(has_just(lines, {0, 1}));
  CHECK(wait_ns(lines, "1") >= 2'000'000);
}

TEST_CASE("batches are recorded under a number that a member, function or lambda returns") {
  const std::vector<numbered> batches{{7}, {5}};
  const auto by_member = recorded([&] {
    for (const numbered& b : lotus::consume(batches, &numbered::index)) CHECK(b.index > 0);
  });
  CHECK(has_just(by_member, {7, 5}));
  const auto by_function = recorded([&] {
    for (const numbered& b : lotus::consume(batches, &numbered::twice)) CHECK(b.index > 0);
  });
  CHECK(has_just(by_function, {14, 10}));
  const auto by_call = recorded([&] {
    const auto next = [](const numbered& b) { return b.index + 1; };
    for (const numbered& b : lotus::consume(batches.begin(), batches.end(), next))
      CHECK(b.index > 0);
  });
  CHECK(has_just(by_call, {8, 6}));
}

TEST_CASE("a batch returned by value is moved and not copied if a projection numbers it") {
  struct source {
    struct iterator {
      int at;
      std::unique_ptr<int> operator*() const { return std::make_unique<int>(at); }
      iterator& operator++() {
        ++at;
        return *this;
      }
      bool operator!=(const iterator& other) const { return at != other.at; }
    };
    static iterator begin() { return {3}; }
    static iterator end() { return {5}; }
  };
  const auto lines = recorded([] {
    int expected = 3;
    for (auto&& batch : lotus::consume(source{}, [](const auto& b) { return *b; })) {
      CHECK(*batch == expected++);
    }
  });
  CHECK(has_just(lines, {3, 4}));
}

TEST_CASE("consume accepts iterators, arrays and streams") {
  const int array[]{1, 2};
  CHECK(has_just(recorded([&] {
                   for (const int batch : lotus::consume(array)) CHECK(batch > 0);
                 }),
                 {0, 1}));
  CHECK(has_just(recorded([&] {
                   for (const int batch : lotus::consume(array, array + 1)) CHECK(batch == 1);
                 }),
                 {0}));
  const std::forward_list<int> list{1, 2, 3};
  CHECK(has_just(recorded([&] {
                   for (const int batch : lotus::consume(list.begin(), list.end())) {
                     CHECK(batch > 0);
                   }
                 }),
                 {0, 1, 2}));
  std::istringstream text{"1 2 3 4"};
  CHECK(has_just(recorded([&] {
                   using words = std::istream_iterator<int>;
                   for (const int batch : lotus::consume(words{text}, words{})) CHECK(batch > 0);
                 }),
                 {0, 1, 2, 3}));
  const std::vector<int> none;
  CHECK(recorded([&] {
          for (const int batch : lotus::consume(none)) FAIL(batch);
        }).empty());
}

TEST_CASE("consume keeps a temporary container, and each loop over it numbers from 0") {
  const auto lines = recorded([] {
    auto batches = lotus::consume(std::vector<int>{1, 2});
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const int batch : batches) CHECK(batch > 0);
    }
  });
  CHECK(lines.size() == 8);
  CHECK(count_named(lines, "SBatchWait_0") == 2);
  CHECK(count_named(lines, "SBatchConsumed_1") == 2);
}

TEST_CASE("no wait is recorded for leaving the loop early or for a loader that throws") {
  const std::vector<int> batches{1, 2, 3};
  CHECK(has_just(recorded([&] {
                   for (const int batch : lotus::consume(batches)) {
                     if (batch == 2) break;
                   }
                 }),
                 {0, 1}));
  struct throwing {
    int at;
    int operator*() const { return at; }
    throwing& operator++() { throw std::runtime_error{"no more"}; }
    bool operator!=(const throwing& other) const { return at != other.at; }
  };
  CHECK(has_just(recorded([] {
                   try {
                     for (const int batch : lotus::consume(throwing{0}, throwing{9})) {
                       CHECK(batch == 0);
                     }
                   } catch (const std::runtime_error&) {
                   }
                 }),
                 {0}));
}

TEST_CASE("wait.consumed ends the wait and records the batch, and without it nothing is recorded") {
  const auto lines = recorded([] {
    for (std::uint64_t i = 4; i < 6; ++i) {
      lotus::batch_wait wait;
      std::this_thread::sleep_for(2ms);
      wait.consumed(i);
      std::this_thread::sleep_for(5ms);  // the consumer's step
    }
    const lotus::batch_wait nothing_came;
  });
  CHECK(has_just(lines, {4, 5}));
  CHECK(wait_ns(lines, "4") >= 2'000'000);
}
