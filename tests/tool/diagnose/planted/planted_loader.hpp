// A loader and work for programs whose cause of slowness is planted.
#ifndef LOTUS_TESTS_PLANTED_LOADER_HPP
#define LOTUS_TESTS_PLANTED_LOADER_HPP

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lotus/lotus.hpp"

namespace planted {

inline bool slow = true;
inline double seconds = 1;

inline void nap(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

inline double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Computes until the thread has used so much CPU time.
inline void burn(double ms) {
  const double end = cpu_ms() + ms;
  double x = 1;
  while (cpu_ms() < end) {
    for (int i = 0; i < 2000; ++i) x = x * 1.0000001;
  }
  if (x == 0) std::puts("");
}

/// Returns how many batches take about as long as the program shall run.
inline int batches_of(double ms) {
  return std::max(12, static_cast<int>(seconds * 1000 / ms));
}

template <class Work>
void step(const char* name, Work&& work) {
  const lotus::scope s(name);
  work();
}

/// Holds the lock if the cause is not cured.
inline std::unique_lock<std::mutex> held(std::mutex& m) {
  std::unique_lock<std::mutex> guard(m, std::defer_lock);
  if (slow) guard.lock();
  return guard;
}

/// A service that answers calls at a steady rate, each of them `latency_ms` after its turn.
struct limited_service {
  double interval_ms;
  double latency_ms;
  std::mutex guard{};
  std::chrono::steady_clock::time_point turn{};

  void call() {
    auto until = std::chrono::steady_clock::now();
    if (slow) {
      const std::lock_guard<std::mutex> lock(guard);
      turn = until = std::max(until, turn + milliseconds(interval_ms));
    }
    std::this_thread::sleep_until(until + milliseconds(latency_ms));
  }

 private:
  static std::chrono::steady_clock::duration milliseconds(double ms) {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double, std::milli>(ms));
  }
};

/// Threads that build batches, at most `ahead` per thread before the consumer receives them.
struct loader {
  int workers = 2;
  int ahead = 2;
  int batches = 100;
  std::function<void(int)> make;
  std::function<void(int)> begin = [](int) {};  // in each worker
  std::function<void(int)> unpack;              // in the consumer's wait
  std::function<void(int)> pass_on;             // in a thread between workers and consumer
  std::function<bool(int, int)> may_begin;      // (batch, received)
  bool begins_after_step = false;               // a batch begins when the step before it ended
  bool spins = false;
  bool consumer_spins = false;
  double poll_ms = 0;
  double look_again_ms = 0;  // the consumer is not notified, but looks again after this time

  /// Lets the workers look again whether they may begin a batch.
  void look() { changed_.notify_all(); }

  void run(const std::function<void(int)>& train) {
    for (int w = 0; w < workers; ++w) threads_.emplace_back([this, w] { work(w); });
    if (pass_on) threads_.emplace_back([this] { pass(); });
    for (int i = 0; i < batches; ++i) {
      {
        lotus::batch_wait wait;
        get(i);
        wait.consumed(static_cast<unsigned>(i));
      }
      train(i);
      const std::lock_guard<std::mutex> lock(mutex_);
      ++used_;
      if (begins_after_step) changed_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
  }

 private:
  bool has_work() const {
    if (begins_after_step && next_ > used_) return false;
    return next_ < received_ + workers * ahead && (!may_begin || may_begin(next_, received_));
  }

  void work(int w) {
    begin(w);
    std::unique_lock<std::mutex> lock(mutex_);
    while (next_ < batches) {
      if (!has_work()) {
        if (!spins) {
          changed_.wait(lock);
          continue;
        }
        lock.unlock();
        for (int k = 0; k < 300; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
        lock.lock();
        continue;
      }
      const int i = next_++;
      lock.unlock();
      {
        LOTUS_BATCH_PREPROCESSED(static_cast<unsigned>(i));
        make(i);
      }
      lock.lock();
      ready_[i] = true;
      changed_.notify_all();
    }
  }

  void pass() {
    for (int i = 0; i < batches; ++i) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return ready_[i]; });
      lock.unlock();
      pass_on(i);
      lock.lock();
      passed_[i] = true;
      changed_.notify_all();
    }
  }

  void get(int i) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::map<int, bool>& from = pass_on ? passed_ : ready_;
    while (consumer_spins && !from[i]) {
      lock.unlock();
      for (int k = 0; k < 300; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
      lock.lock();
    }
    if (poll_ms > 0) {
      do {
        lock.unlock();
        nap(poll_ms);
        lock.lock();
      } while (!from[i]);
    } else if (look_again_ms > 0) {
      do {
        nobody_notifies_.wait_for(lock, std::chrono::duration<double, std::milli>(look_again_ms));
      } while (!from[i]);
    } else {
      changed_.wait(lock, [&] { return from[i]; });
    }
    received_ = i + 1;
    changed_.notify_all();
    lock.unlock();
    if (unpack) unpack(i);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable nobody_notifies_;
  std::map<int, bool> ready_;
  std::map<int, bool> passed_;
  int next_ = 0;
  int received_ = 0;
  int used_ = 0;
  std::vector<std::thread> threads_;
};

inline void train(double nap_ms, double burn_ms = 0) {
  step("Train", [&] {
    burn(burn_ms);
    nap(nap_ms);
  });
}

}  // namespace planted

#endif  // LOTUS_TESTS_PLANTED_LOADER_HPP
