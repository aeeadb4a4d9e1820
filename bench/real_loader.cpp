#include "real_loader.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <lotus/lotus.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {
namespace {

/// Computes for about `ms` milliseconds of CPU time. The amount of work is fixed, so other load on
/// the machine makes it take longer.
void burn(double ms) {
  static const double turns_per_ms = [] {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      timespec before{};
      timespec after{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      volatile double sum = 1;
      constexpr int turns = 400'000;
      for (int k = 0; k < turns; ++k) sum = sum * 1.0000001;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      const double took_ms = static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 +
                             static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-6;
      best = std::max(best, turns / took_ms);
    }
    return best;
  }();
  volatile double sum = 1;
  for (auto left = static_cast<std::int64_t>(ms * turns_per_ms); left > 0; --left) {
    sum = sum * 1.0000001;
  }
}

void sleep_ms(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

/// Limits how many threads run an operation at the same time. Threads enter in the order of
/// arrival.
class gate {
 public:
  void enter(int at_once) {
    std::unique_lock guard{mutex_};
    const std::uint64_t mine = next_++;
    left_.wait(guard, [&] { return mine < gone_ + static_cast<std::uint64_t>(at_once); });
  }
  void leave() {
    const std::lock_guard guard{mutex_};
    ++gone_;
    left_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::uint64_t next_ = 0;
  std::uint64_t gone_ = 0;
};

void do_operation(const real_operation& op, int batch) {
  static gate shared;  // one object is enough, because a loader limits at most one operation
  std::mt19937_64 random(std::hash<std::string>{}(op.name) + static_cast<std::uint64_t>(batch));
  random.discard(8);
  const double factor =
      op.sigma > 0 ? std::exp(std::normal_distribution<double>(0, op.sigma)(random)) : 1;
  LOTUS_SCOPE_DYNAMIC(op.name);
  if (op.at_once > 0) shared.enter(op.at_once);
  sleep_ms(op.sleep_ms * factor);
  burn(op.cpu_ms * factor);
  if (op.at_once > 0) shared.leave();
  if (op.locked_ms <= 0) return;
  static std::mutex lock;
  const std::lock_guard guard{lock};
  sleep_ms(op.locked_ms * factor);
}

/// A bounded queue of batch numbers.
class queue {
 public:
  explicit queue(std::size_t most) : most_{most} {}

  void put(int batch) {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return batches_.size() < most_; });
    batches_.push_back(batch);
    changed_.notify_all();
  }
  int take() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return !batches_.empty(); });
    const int batch = batches_.front();
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> batches_;
};

constexpr int the_end = -1;

void step(const real_loader& loader) {
  sleep_ms(loader.step_sleep_ms);
  burn(loader.step_cpu_ms);
}

/// Lets the calling thread run only on `count` of the CPUs that it may use, after the first `skip`
/// of them.
void stay_on_cpus(int skip, int count) {
  cpu_set_t allowed;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && count > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    CPU_SET(cpu, &chosen);
    --count;
  }
  sched_setaffinity(0, sizeof chosen, &chosen);
}

/// Works like PyTorch's DataLoader: assigns batches to the workers round-robin. At first assigns
/// `prefetch` batches to each worker, then one more whenever the consumer has received a batch.
void run_workers(const real_loader& loader) {
  std::vector<std::unique_ptr<queue>> work;
  queue made{SIZE_MAX};
  std::vector<std::thread> threads;
  for (int w = 0; w < loader.workers; ++w) {
    queue& mine = *work.emplace_back(std::make_unique<queue>(SIZE_MAX));
    threads.emplace_back([&loader, &mine, &made] {
      if (loader.loader_cpus > 0) stay_on_cpus(1, loader.loader_cpus);
      for (int batch = mine.take(); batch != the_end; batch = mine.take()) {
        {
          LOTUS_BATCH_PREPROCESSED(static_cast<std::uint64_t>(batch));
          for (const real_operation& op : loader.operations) do_operation(op, batch);
        }
        made.put(batch);
      }
    });
  }
  if (loader.loader_cpus > 0) stay_on_cpus(0, 1);
  int given = 0;
  const auto give = [&] {
    if (given >= loader.batches) return;
    work[static_cast<std::size_t>(given % loader.workers)]->put(given);
    ++given;
  };
  for (int i = 0; i < loader.workers * loader.prefetch; ++i) give();
  std::set<int> aside;
  for (int i = 0; i < loader.batches; ++i) {
    int batch = i;
    if (loader.ordered && aside.erase(i) != 0) {
      LOTUS_BATCH_CONSUMED(static_cast<std::uint64_t>(i));
    } else {
      lotus::batch_wait wait;
      for (batch = made.take(); loader.ordered && batch != i; batch = made.take()) {
        LOTUS_BATCH_ARRIVED(static_cast<std::uint64_t>(batch));
        aside.insert(batch);
      }
      wait.consumed(static_cast<std::uint64_t>(batch));
    }
    give();
    step(loader);
  }
  for (auto& mine : work) mine->put(the_end);
  for (std::thread& t : threads) t.join();
}

/// Runs the operations as stages, each with its own threads.
void run_stages(const real_loader& loader) {
  const std::size_t stages = loader.operations.size();
  const auto threads_of = [&](std::size_t stage) {
    if (stage == stages) return 1;  // the consumer
    const int own = loader.operations[stage].threads;
    return own > 0 ? own : loader.workers;
  };
  std::vector<std::unique_ptr<queue>> between;
  std::vector<std::unique_ptr<std::atomic<int>>> working;
  for (std::size_t s = 0; s <= stages; ++s) {
    between.push_back(std::make_unique<queue>(static_cast<std::size_t>(loader.prefetch)));
    working.push_back(std::make_unique<std::atomic<int>>(threads_of(s)));
  }
  const auto end = [&](std::size_t stage) {
    for (int w = 0; w < threads_of(stage); ++w) between[stage]->put(the_end);
  };
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < loader.batches; ++i) between.front()->put(i);
    end(0);
  });
  for (std::size_t s = 0; s < stages; ++s) {
    for (int w = 0; w < threads_of(s); ++w) {
      threads.emplace_back([&, s] {
        for (int batch = between[s]->take(); batch != the_end; batch = between[s]->take()) {
          {
            lotus::stage stage(loader.operations[s].name, static_cast<std::uint64_t>(batch));
            real_operation work = loader.operations[s];
            work.name += " inside";
            do_operation(work, batch);
          }
          between[s + 1]->put(batch);
        }
        if (--*working[s] == 0) end(s + 1);
      });
    }
  }
  while (true) {
    lotus::batch_wait wait;
    const int batch = between.back()->take();
    if (batch == the_end) break;
    wait.consumed(static_cast<std::uint64_t>(batch));
    step(loader);
  }
  for (std::thread& t : threads) t.join();
}

/// Starts processes that keep CPUs busy, and ends them in the destructor.
class neighbours {
 public:
  explicit neighbours(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child < 0) throw std::runtime_error("cannot fork");
      if (child > 0) {
        children_.push_back(child);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) burn(10);
    }
  }
  neighbours(const neighbours&) = delete;
  neighbours& operator=(const neighbours&) = delete;
  ~neighbours() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace

void run_real(const real_loader& loader, const std::string& folder) {
  burn(0);  // measures this CPU's speed once for all runs, before other processes keep CPUs busy
  const neighbours busy_neighbours(loader.neighbours);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    if (!lotus::start(folder + "/lotustrace_log")) _exit(1);
    if (loader.stages) {
      run_stages(loader);
    } else {
      run_workers(loader);
    }
    lotus::stop();
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("the loader failed");
  }
}

}  // namespace bench
