// Runs a pipeline whose throughput depends on its settings in a known way. tune_pipelines.py uses
// it to test lotus-tool tune.
//
// Usage: tune_pipelines KIND [NAME=NUMBER]... The settings are workers, prefetch, order (0: the
// consumer receives batches in any order), batch_size, first and second (threads of two stages).
// The environment variable TUNE_VARIANT is a random seed that changes the times of all operations.
// Runs until it is killed. Most work is sleeping, so that the throughput does not depend on the
// CPUs.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <lotus/lotus.hpp>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

/// An operation of a batch. If `at_once` or `apart_ms` is not 0, its calls wait for each other.
struct operation {
  std::string name;
  double sleep_ms = 0;
  double sigma = 0;  ///< standard deviation of the logarithm of sleep_ms (log-normal distribution)
  /// Maximum number of calls that run at the same time, in the order of arrival; 0: no limit.
  int at_once = 0;
  double apart_ms = 0;  ///< minimum time between the starts of two calls (a rate limit)
  double cpu_ms = 0;
  double per_sample_ms = 0;    ///< added to sleep_ms for each sample in the batch
  double slower_by_other = 0;  ///< share by which each other running call makes this call slower
};

enum class bound { per_worker, queue, total };
enum class style { pool, thread_per_batch, stages, push, printed };

struct kind {
  std::vector<operation> work;
  operation step;
  bound rule = bound::per_worker;
  style how = style::pool;
  std::uint64_t slow_every = 0;  ///< if not 0, every slow_every-th batch takes 2.5 times as long
};

/// Multiplies the durations of each operation, in all pipelines, by a random factor from 0.6 to
/// 1.65.
void vary(std::map<std::string, kind>& all, const char* seed) {
  std::mt19937_64 random(std::strtoull(seed, nullptr, 10));
  std::uniform_real_distribution<double> exponent(-0.5, 0.5);
  for (auto& [name, k] : all) {
    const auto change = [&](operation& op) {
      const double factor = std::exp(exponent(random));
      for (double* const ms : {&op.sleep_ms, &op.apart_ms, &op.cpu_ms, &op.per_sample_ms}) {
        *ms *= factor;
      }
    };
    for (operation& op : k.work) change(op);
    change(k.step);
  }
}

const std::map<std::string, kind>& kinds() {
  static const std::map<std::string, kind> all = [] {
    std::map<std::string, kind> k;
    const operation short_step{"Train", 1};
    k["free"] = {{{"Read", 20, 0.3}}, {"Train", 4}};
    k["consumer"] = {{{"Read", 12, 0.3}}, {"Train", 8}};
    k["lock"] = {{{"Read", 12, 0.2}, {"Index", 4, 0.2, 1}}, short_step};
    k["lock_around_work"] = {{{"Read", 8, 0.2, 1}}, short_step};
    k["device_1"] = {{{"Seek", 5, 0.3, 1}, {"Parse", 10}}, short_step};
    k["device_2"] = {{{"Seek", 10, 0.3, 2}, {"Parse", 8}}, short_step};
    k["device_3"] = {{{"Seek", 12, 0.3, 3}, {"Parse", 6}}, short_step};
    k["rate_limit"] = {{{"Fetch", 15, 0.2, 0, 5}}, short_step};
    k["order"] = {{{"Read", 8, 1.0}}, {"Train", 3}};
    k["heavy_tail"] = {{{"Read", 8, 1.2}}, {"Train", 4}};
    k["prefetch"] = {{{"Read", 16}}, {"Train", 5}, bound::per_worker, style::pool, 8};
    k["prefetch_queue"] = {{{"Read", 16}}, {"Train", 5}, bound::queue, style::pool, 8};
    k["prefetch_total"] = {{{"Read", 16}}, {"Train", 5}, bound::total, style::pool, 8};
    k["thread_per_batch"] = {{{"Read", 18, 0.4}}, {"Train", 4}};
    k["thread_per_batch"].how = style::thread_per_batch;
    k["stages"] = {{{"Read", 9, 0.2}, {"Decode", 18, 0.2}}, {"Train", 5}};
    k["stages"].how = style::stages;
    k["push"] = {{{"Decode", 12, 0.2}, {"Encode", 20, 0.2}}, {}};
    k["push"].how = style::push;
    k["batch_size"] = {{{"Read", 12, 0.2, 0, 0, 0, 0.5}}, {"Train", 4, 0, 0, 0, 0, 0.1}};
    k["slower_together"] = {{{"Read", 10, 0.2, 0, 0, 0, 0, 0.3}}, short_step};
    // A copy of the pipeline "free". tune_pipelines.py passes the settings of this copy under names
    // that the simulation of lotus-tool does not know.
    k["lanes"] = k["free"];
    k["printed"] = k["free"];
    k["printed"].how = style::printed;
    k["cpu"] = {{{"Decode", 0, 0, 0, 0, 5}}, short_step};
    k["sleep_and_cpu"] = {{{"Read", 8, 0.3}, {"Decode", 0, 0, 0, 0, 2}}, short_step};
    if (const char* const seed = std::getenv("TUNE_VARIANT")) vary(k, seed);
    return k;
  }();
  return all;
}

/// Prints the current time if the environment variable TUNE_TIMES is set. Called after each batch.
void print_time() {
  static const bool wanted = std::getenv("TUNE_TIMES") != nullptr;
  if (!wanted) return;
  const std::chrono::duration<double> now = clock_type::now().time_since_epoch();
  std::printf("%.6f\n", now.count());
  std::fflush(stdout);
}

/// Computes until the thread has used `ms` of CPU time.
void burn(double ms) {
  const auto now_ms = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  };
  const double end_ms = ms > 0 ? now_ms() + ms : 0;
  while (ms > 0 && now_ms() < end_ms) {
  }
}

/// The state through which the calls of one operation wait for each other.
struct shared_state {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t next = 0;
  std::uint64_t gone = 0;
  clock_type::time_point free_at{};
  std::atomic<int> running{0};
};

/// Executes an operation for batch `i`. The times are random, but every run has the same times.
void execute(const operation& op, std::uint64_t i, double samples, double factor = 1) {
  static std::map<std::string, shared_state> shared;
  static std::mutex shared_mutex;
  shared_state* state = nullptr;
  {
    const std::lock_guard<std::mutex> lock(shared_mutex);
    state = &shared[op.name];
  }
  std::mt19937_64 random(std::hash<std::string>{}(op.name) + 7919 * i);
  random.discard(8);
  if (op.sigma > 0) factor *= std::exp(std::normal_distribution<double>(0, op.sigma)(random));
  if (op.at_once > 0) {
    std::unique_lock<std::mutex> lock(state->mutex);
    const std::uint64_t mine = state->next++;
    state->changed.wait(
        lock, [&] { return mine < state->gone + static_cast<std::uint64_t>(op.at_once); });
  }
  if (op.apart_ms > 0) {
    clock_type::time_point mine;
    {
      const std::lock_guard<std::mutex> lock(state->mutex);
      mine = std::max(clock_type::now(), state->free_at);
      state->free_at =
          mine + std::chrono::duration_cast<clock_type::duration>(milliseconds(op.apart_ms));
    }
    std::this_thread::sleep_until(mine);
  }
  const int others = state->running++;
  const double ms = factor * (op.sleep_ms + samples * op.per_sample_ms);
  std::this_thread::sleep_for(milliseconds(ms * (1 + op.slower_by_other * others)));
  burn(factor * op.cpu_ms);
  --state->running;
  if (op.at_once > 0) {
    const std::lock_guard<std::mutex> lock(state->mutex);
    ++state->gone;
    state->changed.notify_all();
  }
}

std::uint64_t setting(int argc, char** argv, const std::string& name, std::uint64_t otherwise) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.compare(0, name.size() + 1, name + '=') == 0) {
      return std::strtoull(word.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return otherwise;
}

/// A loader: threads build batches, and the calling thread consumes them.
class loader {
 public:
  loader(kind what, std::uint64_t workers, std::uint64_t prefetch, bool ordered, double samples)
      : what_(std::move(what)), workers_(workers), ordered_(ordered), samples_(samples) {
    in_flight_ = what_.rule == bound::per_worker ? workers * prefetch
                 : what_.rule == bound::queue    ? workers + prefetch
                                                 : prefetch;
  }

  [[noreturn]] void run() {
    const bool many = what_.how == style::thread_per_batch;
    for (std::uint64_t w = 0; w < (many ? 1 : workers_); ++w) {
      std::thread([this, many] { many ? start_threads() : work(); }).detach();
    }
    auto second = clock_type::now();
    for (std::uint64_t n = 0;; ++n) {
      const std::uint64_t i = receive(n);
      print_time();
      execute(what_.step, i, samples_);
      if (what_.how != style::printed || n % 10 != 9) continue;
      const milliseconds took = clock_type::now() - second;
      second = clock_type::now();
      std::printf("%.2f it/s\n", 1e4 / took.count());
      std::fflush(stdout);
    }
  }

 private:
  std::uint64_t receive(std::uint64_t n) {
    lotus::batch_wait wait;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = [&] {
      return ordered_ ? std::find(ready_.begin(), ready_.end(), n) : ready_.begin();
    };
    changed_.wait(lock, [&] { return found() != ready_.end(); });
    const std::uint64_t i = *found();
    ready_.erase(found());
    ++taken_;
    changed_.notify_all();
    wait.consumed(i);
    return i;
  }

  std::uint64_t next() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return begun_ < taken_ + in_flight_; });
    return begun_++;
  }

  void build(std::uint64_t i) {
    {
      LOTUS_BATCH_PREPROCESSED(i);
      const bool slow = what_.slow_every > 0 && i % what_.slow_every == 0;
      for (const operation& op : what_.work) {
        LOTUS_SCOPE_DYNAMIC(op.name);
        execute(op, i, samples_, slow ? 2.5 : 1);
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_.push_back(i);
    --building_;
    changed_.notify_all();
  }

  void work() {
    while (true) {
      const std::uint64_t i = next();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++building_;
      }
      build(i);
    }
  }

  /// Starts a new thread for each batch. At most `workers` of these threads run at the same time.
  void start_threads() {
    while (true) {
      const std::uint64_t i = next();
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return building_ < workers_; });
      ++building_;
      std::thread([this, i] { build(i); }).detach();
    }
  }

  kind what_;
  std::uint64_t workers_;
  bool ordered_;
  double samples_;
  std::uint64_t in_flight_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> ready_;
  std::uint64_t begun_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t building_ = 0;
};

/// A queue of at most four numbers.
class queue {
 public:
  void put(std::uint64_t i) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return items_.size() < 4; });
    items_.push_back(i);
    changed_.notify_all();
  }
  std::uint64_t take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty(); });
    const std::uint64_t i = items_.front();
    items_.pop_front();
    changed_.notify_all();
    return i;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> items_;
};

/// Runs two stages, each with threads of its own. A pipeline with style::push ends with the second
/// stage; any other pipeline also has a consumer, which receives the batches.
[[noreturn]] void run_stages(const kind& what, const std::vector<std::uint64_t>& threads) {
  static std::vector<queue> between(3);
  std::thread([] {
    for (std::uint64_t i = 0;; ++i) between[0].put(i);
  }).detach();
  const bool push = what.how == style::push;
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::uint64_t t = 0; t < threads[s]; ++t) {
      std::thread([&what, s, push] {
        while (true) {
          const std::uint64_t i = between[s].take();
          {
            lotus::stage stage(what.work[s].name, i);
            execute(what.work[s], i, 1);
          }
          if (s == 0 || !push) {
            between[s + 1].put(i);
          } else {
            print_time();
          }
        }
      }).detach();
    }
  }
  while (true) {
    if (push) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (push) continue;
    lotus::batch_wait wait;
    const std::uint64_t i = between[2].take();
    wait.consumed(i);
    print_time();
    execute(what.step, i, 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = kinds().find(argc > 1 ? argv[1] : "");
  if (found == kinds().end()) {
    std::fprintf(stderr, "usage: tune_pipelines KIND [NAME=NUMBER]...; kinds:");
    for (const auto& [name, unused] : kinds()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const auto number = [&](const char* name, std::uint64_t otherwise) {
    return setting(argc, argv, name, otherwise);
  };
  const kind& what = found->second;
  // style::printed stands for programs without markers, so the library must not record.
  if (what.how == style::printed) unsetenv("LOTUS_LOG_FILE");
  if (what.how == style::stages || what.how == style::push) {
    run_stages(what, {number("first", 1), number("second", 1)});
  }
  loader all(what, number("workers", 1), number("prefetch", 2), number("order", 1) != 0,
             static_cast<double>(number("batch_size", 1)));
  all.run();
}
