// Records coroutines (C++20) that pause and continue on another thread. A normal scope belongs to
// one thread, so an operation that contains a co_await needs a lotus::async_scope, which is
// suspended while the coroutine is.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <future>
#include <lotus/lotus.hpp>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "next_step.hpp"

namespace {

using namespace std::chrono_literals;

/// Resumes coroutines on any free thread, at the time that they request or later.
class thread_pool {
 public:
  using clock = std::chrono::steady_clock;

  explicit thread_pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    {
      const std::lock_guard hold{lock_};
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Pauses a coroutine, as in co_await pool.after(5ms). This stands for waiting for a disk or
  /// network without blocking a thread.
  auto after(clock::duration delay) {
    struct timer {
      thread_pool& pool;
      clock::duration delay;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> task) const { pool.post(task, delay); }
      void await_resume() const noexcept {}
    };
    return timer{*this, delay};
  }

 private:
  struct entry {
    clock::time_point due;
    std::coroutine_handle<> task;
    // The comparison is reversed, so that the priority queue returns the earliest entry first.
    bool operator<(const entry& other) const { return due > other.due; }
  };

  void post(std::coroutine_handle<> task, clock::duration delay) {
    {
      const std::lock_guard hold{lock_};
      tasks_.push({clock::now() + delay, task});
    }
    changed_.notify_one();
  }

  void work() {
    std::unique_lock hold{lock_};
    while (!ended_) {
      if (tasks_.empty()) {
        changed_.wait(hold);
      } else if (const auto due = tasks_.top().due; due > clock::now()) {
        changed_.wait_until(hold, due);
      } else {
        const std::coroutine_handle<> task = tasks_.top().task;
        tasks_.pop();
        hold.unlock();
        task.resume();
        hold.lock();
      }
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::priority_queue<entry> tasks_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

/// Awaits `inner` and suspends the scope until `inner` is ready. No other code is needed to use
/// lotus::async_scope with a coroutine library.
template <class Awaiter>
struct paused {
  lotus::async_scope& scope;
  Awaiter inner;

  bool await_ready() { return inner.await_ready(); }
  auto await_suspend(std::coroutine_handle<> task) {
    // Suspend first, because the coroutine may already continue on another thread during the next
    // call.
    scope.suspend();
    return inner.await_suspend(task);
  }
  decltype(auto) await_resume() {
    scope.resume();
    return inner.await_resume();
  }
};
template <class Awaiter>
paused(lotus::async_scope&, Awaiter) -> paused<Awaiter>;

/// The return type of a coroutine that nobody awaits. It returns its result through a std::promise.
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

using batch = std::vector<double>;
constexpr std::size_t batches = 24;

task make(thread_pool& pool, std::size_t number, std::promise<batch> made) {
  co_await pool.after(0ms);  // continues on a thread of the pool
  batch b;
  {
    lotus::async_scope load{"Load"};
    for (int part = 0; part < 3; ++part) {
      co_await paused{load, pool.after(2ms)};
      LOTUS_STAGE("Read", number);  // allowed, because the stage ends before the next co_await
      b.resize(b.size() + 50'000, 1.0);
    }
  }
  {
    LOTUS_STAGE("Decode", number);
    std::partial_sum(b.begin(), b.end(), b.begin());
  }
  made.set_value(std::move(b));
}

double train(const batch& b) {
  return *std::max_element(b.begin(), b.end());
}

}  // namespace

int main() {
  if (!lotus::start("run/lotustrace_log")) return 1;
  thread_pool pool{2};
  std::deque<std::future<batch>> coming;
  double loss = 0;
  for (std::size_t i = 0, asked = 0; i < batches; ++i) {
    for (; asked < batches && coming.size() < 4; ++asked) {
      std::promise<batch> made;
      coming.push_back(made.get_future());
      make(pool, asked, std::move(made));
    }
    lotus::batch_wait wait;
    const batch b = coming.front().get();
    wait.consumed(i);
    coming.pop_front();
    loss += train(b);
  }
  print_next_step("run/lotustrace_log");
  return loss > 0 ? 0 : 1;
}
