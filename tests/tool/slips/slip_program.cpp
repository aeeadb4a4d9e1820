// Small programs as new users write them, each with one mistake. The first argument selects a
// program.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <future>
#include <lotus/lotus.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void work_for(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
}

void operations(int count) {
  for (int i = 0; i < count; ++i) {
    {
      LOTUS_SCOPE("Read");
      work_for(std::chrono::milliseconds(1));
    }
    LOTUS_SCOPE("Decode");
    work_for(std::chrono::milliseconds(3));
  }
}

/// Which macros for batches the program uses, and whether all batches get the same number.
enum class marks { all, without_consumed, without_wait, with_one_number };

std::int64_t make_batch(std::int64_t i, marks how) {
  LOTUS_BATCH_PREPROCESSED(how == marks::with_one_number ? 0 : i);
  operations(1);
  return i;
}

void receive(std::int64_t i, marks how, const std::function<std::int64_t()>& next) {
  const std::int64_t number = how == marks::with_one_number ? 0 : i;
  if (how == marks::without_wait) {
    next();
  } else {
    LOTUS_BATCH_WAIT(number);
    next();
  }
  if (how != marks::without_consumed) LOTUS_BATCH_CONSUMED(number);
  work_for(std::chrono::milliseconds(1));
}

/// Without prefetching: the consumer calls the loader, which then builds the batch.
void on_own_thread(int batches) {
  for (int i = 0; i < batches; ++i)
    receive(i, marks::all, [i] { return make_batch(i, marks::all); });
}

/// Without prefetching: a worker builds a batch only when the consumer asks for it.
void one_at_a_time(int batches) {
  for (int i = 0; i < batches; ++i) {
    receive(i, marks::all, [i] {
      std::thread worker([i] { make_batch(i, marks::all); });
      worker.join();
      return i;
    });
  }
}

/// A loader whose workers build batches before the consumer asks for them.
struct prefetching {
  int batches = 30;
  std::size_t workers = 2;
  int in_flight = 8;
  marks how = marks::all;
  /// Builds batch i; if empty, make_batch() does so.
  std::function<void(int)> build = {};
  std::chrono::milliseconds step{1};
};

void prefetched(const prefetching& p) {
  std::mutex lock;
  std::condition_variable ready;
  std::vector<bool> is_ready(static_cast<std::size_t>(p.batches));
  int next = 0;
  int received = 0;
  std::vector<std::thread> threads;
  for (std::size_t w = 0; w < p.workers; ++w) {
    threads.emplace_back([&] {
      for (;;) {
        std::unique_lock<std::mutex> hold(lock);
        ready.wait(hold, [&] { return next == p.batches || next < received + p.in_flight; });
        if (next == p.batches) return;
        const int i = next++;
        hold.unlock();
        if (p.build) {
          LOTUS_BATCH_PREPROCESSED(i);
          p.build(i);
        } else {
          make_batch(i, p.how);
        }
        hold.lock();
        is_ready[static_cast<std::size_t>(i)] = true;
        ready.notify_all();
      }
    });
  }
  for (int i = 0; i < p.batches; ++i) {
    receive(i, p.how, [&] {
      std::unique_lock<std::mutex> hold(lock);
      ready.wait(hold, [&] { return is_ready[static_cast<std::size_t>(i)]; });
      received = i + 1;
      ready.notify_all();
      return i;
    });
    work_for(p.step - std::chrono::milliseconds(1));
  }
  for (std::thread& t : threads) t.join();
}

prefetching with_marks(marks how) {
  prefetching p;
  p.how = how;
  return p;
}

void compute_for(std::chrono::microseconds time) {
  LOTUS_SCOPE("Compute");
  timespec now{};
  const auto cpu = [&now] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto end = cpu() + time;
  while (cpu() < end) {
  }
}

prefetching with_computing(std::size_t workers) {
  prefetching p;
  p.workers = workers;
  p.batches = 60;
  p.in_flight = static_cast<int>(2 * workers);
  p.build = [](int) { compute_for(std::chrono::milliseconds(4)); };
  return p;
}

prefetching with_one_lock() {
  static std::mutex device;
  prefetching p;
  p.workers = 4;
  p.build = [](int) {
    LOTUS_SCOPE("Fetch");
    const std::lock_guard<std::mutex> hold(device);
    work_for(std::chrono::milliseconds(5));
  };
  return p;
}

/// No limit on batches that are built ahead, and slow steps.
prefetching without_limit() {
  prefetching p;
  p.batches = 60;
  p.in_flight = p.batches;
  p.step = std::chrono::milliseconds(12);
  return p;
}

/// Two workers build every other batch each. One of them ends with an exception, and the consumer
/// leaves out what it does not get.
void with_dying_worker(int batches) {
  std::mutex lock;
  std::condition_variable changed;
  std::vector<bool> is_ready(static_cast<std::size_t>(batches));
  bool died = false;
  int received = 0;
  const auto build_every_other = [&](int first) {
    try {
      for (int i = first; i < batches; i += 2) {
        {
          // The other worker must not end first, even if it alone has a CPU.
          std::unique_lock<std::mutex> hold(lock);
          changed.wait(hold, [&] { return i < received + 8; });
        }
        LOTUS_BATCH_PREPROCESSED(i);
        operations(1);
        if (i == 29) throw std::runtime_error("cannot decode");
        const std::lock_guard<std::mutex> hold(lock);
        is_ready[static_cast<std::size_t>(i)] = true;
        changed.notify_all();
      }
    } catch (const std::exception&) {
      const std::lock_guard<std::mutex> hold(lock);
      died = true;
      changed.notify_all();
    }
  };
  std::thread even{build_every_other, 0};
  std::thread odd{build_every_other, 1};
  for (int i = 0; i < batches; ++i) {
    lotus::batch_wait wait;
    std::unique_lock<std::mutex> hold(lock);
    const auto index = static_cast<std::size_t>(i);
    changed.wait(hold, [&] { return is_ready[index] || (died && i % 2 == 1); });
    received = i + 1;
    changed.notify_all();
    if (!is_ready[index]) continue;
    wait.consumed(static_cast<std::uint64_t>(i));
    hold.unlock();
    work_for(std::chrono::milliseconds(1));
  }
  even.join();
  odd.join();
}

/// Calls wait.consumed() after the step, which works for `step`.
void consumed_after_step(int batches, void (*step)()) {
  std::mutex lock;
  std::condition_variable ready;
  int built = 0;
  std::thread worker{[&] {
    for (int i = 0; i < batches; ++i) {
      make_batch(i, marks::all);
      const std::lock_guard<std::mutex> hold(lock);
      built = i + 1;
      ready.notify_all();
    }
  }};
  for (int i = 0; i < batches; ++i) {
    lotus::batch_wait wait;
    {
      std::unique_lock<std::mutex> hold(lock);
      ready.wait(hold, [&] { return built > i; });
    }
    step();
    wait.consumed(static_cast<std::uint64_t>(i));
  }
  worker.join();
}

/// A worker builds batches in parts, and the consumer receives each part and works on it.
void in_parts(int batches, int parts) {
  std::mutex lock;
  std::condition_variable changed;
  int ready = 0;  // number of parts of all batches
  std::thread worker{[&] {
    for (int i = 0; i < batches; ++i) {
      const auto publish = [&] {
        const std::lock_guard<std::mutex> hold(lock);
        ++ready;
        changed.notify_all();
      };
      {
        LOTUS_BATCH_PREPROCESSED(i);
        operations(1);
        for (int part = 1; part < parts; ++part) {
          publish();
          operations(1);
        }
      }
      publish();
    }
  }};
  for (int part = 0; part < batches * parts; ++part) {
    lotus::batch_wait wait;
    {
      std::unique_lock<std::mutex> hold(lock);
      changed.wait(hold, [&] { return ready > part; });
    }
    wait.consumed(static_cast<std::uint64_t>(part / parts));
    work_for(std::chrono::milliseconds(1));
  }
  worker.join();
}

/// Starts a batch with std::async and drops the future of that call, whose destructor waits until
/// the batch has been built.
void with_dropped_future(int batches) {
  for (int i = 0; i < batches; ++i) {
    std::promise<std::int64_t> built;
    std::future<std::int64_t> batch = built.get_future();
    {
      const std::future<void> dropped = std::async(
          std::launch::async, [&built, i] { built.set_value(make_batch(i, marks::all)); });
    }
    lotus::batch_wait wait;
    wait.consumed(static_cast<std::uint64_t>(batch.get()));
    work_for(std::chrono::milliseconds(1));
  }
}

prefetching with_slow_steps() {
  prefetching p;
  p.step = std::chrono::milliseconds(12);
  return p;
}

prefetching with_some_slow_batches() {
  prefetching p;
  p.batches = 40;
  p.in_flight = 3;
  p.build = [](int i) {
    LOTUS_SCOPE("Decode");
    work_for(std::chrono::milliseconds(i % 2 == 0 ? 40 : 4));
  };
  p.step = std::chrono::milliseconds(12);
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string slip = argc > 1 ? argv[1] : "";
  const char* const log_file = argc > 2 ? argv[2] : nullptr;
  if (log_file != nullptr && !lotus::start(log_file)) return 1;
  if (slip == "operations") operations(20);
  if (slip == "own-thread") on_own_thread(30);
  if (slip == "one-at-a-time") one_at_a_time(30);
  if (slip == "no-consumed") prefetched(with_marks(marks::without_consumed));
  if (slip == "no-wait") prefetched(with_marks(marks::without_wait));
  if (slip == "one-number") prefetched(with_marks(marks::with_one_number));
  if (slip == "right") prefetched({});
  if (slip == "computing") prefetched(with_computing(2));
  if (slip == "computing-alone") prefetched(with_computing(1));
  if (slip == "oversubscribed") prefetched(with_computing(16));
  if (slip == "no-limit") prefetched(without_limit());
  if (slip == "dying") with_dying_worker(100);
  if (slip == "late-sleep") {
    consumed_after_step(40, [] { work_for(std::chrono::milliseconds(12)); });
  }
  if (slip == "late-compute") {
    consumed_after_step(40, [] {
      // Not with compute_for(), which is a scope.
      const std::clock_t end = std::clock() + CLOCKS_PER_SEC * 12 / 1000;
      while (std::clock() < end) {
      }
    });
  }
  if (slip == "in-parts") in_parts(30, 4);
  if (slip == "dropped-future") with_dropped_future(40);
  if (slip == "lock") prefetched(with_one_lock());
  if (slip == "slow-steps") prefetched(with_slow_steps());
  if (slip == "order") prefetched(with_some_slow_batches());
  // Stops the recording and starts it again several times, as a program does that records only some
  // of its epochs.
  if (slip == "restarts") {
    for (int i = 0; i < 4; ++i) {
      operations(1);
      lotus::stop();
      if (!lotus::start(log_file)) return 1;
    }
  }
  if (slip == "epochs") {
    prefetched({});
    prefetched({});
  }
  // Starts several sets of worker processes one after the other. This process records nothing
  // itself.
  if (slip == "generations") {
    for (int i = 0; i < 2; ++i) {
      if (fork() == 0) {
        operations(5);
        lotus::stop();
        _exit(0);
      }
      wait(nullptr);
    }
  }
  if (slip == "forks") {
    for (int i = 0; i < 2; ++i) {
      if (fork() != 0) continue;
      operations(5);
      lotus::stop();
      _exit(0);
    }
    operations(5);
    while (wait(nullptr) > 0) {
    }
  }
  return 0;
}
