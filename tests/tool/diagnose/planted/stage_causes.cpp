// Pipelines of stages whose cause of slowness is planted.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"
#include "planted_causes.hpp"
#include "planted_loader.hpp"

namespace planted {
namespace {

/// A queue of batch numbers, which holds up to four.
class bounded_queue {
 public:
  void push(int i) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return numbers_.size() < 4; });
    numbers_.push_back(i);
    changed_.notify_all();
  }

  std::optional<int> pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !numbers_.empty(); });
    if (numbers_.empty()) return std::nullopt;
    const int i = numbers_.front();
    numbers_.pop_front();
    changed_.notify_all();
    return i;
  }

  /// Takes the next number without a wait, and looks for it only now and then.
  std::optional<int> poll(double every_ms) {
    for (;;) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!numbers_.empty() || closed_) break;
      }
      nap(every_ms);
    }
    return pop();
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> numbers_;
  bool closed_ = false;
};

struct stage {
  const char* name;  ///< nullptr: it has no marker
  int threads;
  std::function<void(int)> work;
  double poll_ms = 0;  ///< how often its threads look for work; 0: they wait until there is some
};

void work_on(const stage& s, int i) {
  if (s.name == nullptr) return s.work(i);
  const lotus::stage marker(s.name, static_cast<unsigned>(i));
  s.work(i);
}

/// Passes batches through the stages; the consumer receives them in the order in which they come.
void run_stages(const std::vector<stage>& stages, int batches,
                const std::function<void(int)>& train) {
  std::vector<bounded_queue> after(stages.size());
  std::vector<std::atomic<int>> live(stages.size());
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    live[s] = stages[s].threads;
    for (int t = 0; t < stages[s].threads; ++t) {
      threads.emplace_back([&, s] {
        const auto take = [&]() -> std::optional<int> {
          const double poll_ms = stages[s].poll_ms;
          if (s > 0) return poll_ms > 0 ? after[s - 1].poll(poll_ms) : after[s - 1].pop();
          const int i = next++;
          return i < batches ? std::optional<int>(i) : std::nullopt;
        };
        while (const std::optional<int> i = take()) {
          work_on(stages[s], *i);
          after[s].push(*i);
        }
        if (--live[s] == 0) after[s].close();
      });
    }
  }
  for (int k = 0; k < batches; ++k) {
    std::optional<int> i;
    {
      lotus::batch_wait wait;
      i = after.back().pop();
      wait.consumed(static_cast<unsigned>(*i));
    }
    train(*i);
  }
  for (std::thread& t : threads) t.join();
}

/// Batches that the consumer takes as they come.
struct lined_up {
  bounded_queue ready{};

  void build(int i, double ms) {
    {
      LOTUS_BATCH_PREPROCESSED(static_cast<unsigned>(i));
      step("Load", [ms] { nap(ms); });
    }
    ready.push(i);
  }

  void receive(int batches) {
    for (int k = 0; k < batches; ++k) {
      std::optional<int> i;
      {
        lotus::batch_wait wait;
        i = ready.pop();
        wait.consumed(static_cast<unsigned>(*i));
      }
      train(1.5);
    }
  }
};

/// @param before  what worker w does before it takes the next batch: before(w).
void run_workers(int count, int batches, const std::function<void(int)>& before, double ms) {
  lined_up out;
  std::atomic<int> next{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < count; ++w) {
    workers.emplace_back([&, w] {
      for (;;) {
        before(w);
        const int i = next++;
        if (i >= batches) break;
        out.build(i, ms);
      }
    });
  }
  out.receive(batches);
  for (std::thread& t : workers) t.join();
}

/// A semaphore that batches take in the order of their numbers. In another order, those that hold
/// it could wait for the consumer, which waits for one that does not.
class semaphore {
 public:
  explicit semaphore(int free) : free_(free) {}

  void take(int i) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, i] { return free_ > 0 && next_ == i; });
    --free_;
    ++next_;
    changed_.notify_all();
  }

  void give() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++free_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  int next_ = 0;
};

/// Blocks of 4 KiB from another process, one at a time.
class slow_pipe {
 public:
  slow_pipe(int blocks, double ms) {
    if (pipe(ends_.data()) != 0) std::exit(1);
    writer_ = fork();
    if (writer_ != 0) {
      close(ends_[1]);
      return;
    }
    std::array<char, 4096> block{};
    for (int i = 0; i < blocks; ++i) {
      nap(ms);
      if (write(ends_[1], block.data(), block.size()) < 0) break;
    }
    _exit(0);
  }
  ~slow_pipe() {
    close(ends_[0]);
    waitpid(writer_, nullptr, 0);
  }
  slow_pipe(const slow_pipe&) = delete;
  slow_pipe& operator=(const slow_pipe&) = delete;

  void read_block() {
    std::array<char, 4096> block{};
    for (ssize_t got = 1, sum = 0; got > 0 && sum < 4096; sum += got) {
      got = read(ends_[0], block.data(), block.size() - static_cast<std::size_t>(sum));
    }
  }

 private:
  std::array<int, 2> ends_{};
  pid_t writer_ = 0;
};

}  // namespace

/// In both kinds of threads, so that its name does not say which of them used the time.
__attribute__((noinline)) void grind(double ms) {
  burn(ms);
}

const cause_map& stage_causes() {
  static const cause_map all{
      {"stage-pipe",
       [] {
         const int n = batches_of(slow ? 8 : 5);
         slow_pipe input(n, slow ? 8 : 1);
         run_stages(
             {{"Read", 1, [&](int) { input.read_block(); }}, {"Decode", 2, [](int) { nap(5); }}}, n,
             [](int) { train(1); });
       }},
      {"stage-rate",
       [] {
         limited_service service{8, 20};
         run_stages(
             {{"Fetch", 5, [&](int) { service.call(); }}, {"Decode", 2, [](int) { nap(4); }}},
             batches_of(slow ? 8 : 5), [](int) { train(1); });
       }},
      {"stages-lock",
       [] {
         const auto use_codec = [](int) {
           const auto guard = held(codec_mutex);
           nap(4);
         };
         run_stages({{"Decode", 2, use_codec}, {"Augment", 2, use_codec}}, batches_of(slow ? 9 : 4),
                    [](int) { train(1); });
       }},
      {"stage-polls",
       [] {
         run_stages({{"Read", 1, [](int) { nap(2); }},
                     {"Decode", 1, [](int) { nap(1); }, slow ? 20.0 : 0.0}},
                    batches_of(slow ? 6 : 3), [](int) { train(1); });
       }},
      {"dispenser",
       [] {
         std::mutex turn;
         const auto take = [&turn] {
           const std::lock_guard<std::mutex> lock(turn);
           nap(slow ? 9 : 0.05);
         };
         run_workers(
             3, batches_of(slow ? 9 : 3), [&](int) { take(); }, 5);
       }},
      {"thieves",
       [] {
         // The first worker has all batches, and the others look for some of them rarely.
         run_workers(
             3, batches_of(slow ? 7 : 4), [](int w) { nap(slow && w > 0 ? 50 : 0.1); }, 9);
       }},
      {"uneven",
       [] {
         // Each worker has batches of its own.
         const int n = batches_of(slow ? 7 : 4);
         lined_up out;
         std::vector<std::thread> workers;
         for (int w = 0; w < 3; ++w) {
           workers.emplace_back([&out, n, w] {
             for (int i = 0; i < n; ++i) {
               const int of = slow ? (i % 10 < 7 ? 0 : i % 10 == 7 ? 1 : 2) : i % 3;
               if (of == w) out.build(i, 9);
             }
           });
         }
         out.receive(n);
         for (std::thread& t : workers) t.join();
       }},
      {"equal-stages",
       [] {
         const auto work = [](int) { nap(slow ? 12 : 4); };
         run_stages({{"Read", 2, work}, {"Decode", 2, work}, {"Label", 1, [](int) { nap(1); }}},
                    batches_of(slow ? 6 : 3), [](int) { train(2.5); });
       }},
      {"served-in-turn",
       [] {
         // One thread takes 7 ms for each record, and workers wait until there is room for theirs.
         bounded_queue records;
         std::thread writer([&records] {
           while (records.pop()) nap(slow ? 7 : 0.5);
         });
         loader l;
         l.workers = 3;
         l.batches = batches_of(slow ? 4 : 2);
         l.make = [&records](int i) {
           step("Decode", [] { nap(3); });
           step("Audit", [&records, i] { records.push(i); });
         };
         l.run([](int) { train(1); });
         records.close();
         writer.join();
       }},
      {"stage-copy",
       [] {
         // The stage between the two others has no marker, but a function that they use as well.
         run_stages({{"Read", 1, [](int) { grind(1); }},
                     {nullptr, 1, [](int) { grind(slow ? 9 : 0.1); }},
                     {"Decode", 2, [](int) { grind(2); }}},
                    batches_of(slow ? 9 : 4), [](int) { train(0.5); });
       }},
      {"short-threads",
       [] {
         const int parts = slow ? 64 : 1;  // each in a thread of its own
         std::deque<std::vector<std::thread>> ahead;
         const int n = batches_of(slow ? 8 : 4);
         const auto begin = [&](int i) {
           ahead.emplace_back();
           for (int part = 0; part < parts; ++part) {
             ahead.back().emplace_back([=] {
               const lotus::stage marker("Tokenize", static_cast<unsigned>(i));
               slow ? burn(0.005) : nap(3);
             });
           }
         };
         begin(0);
         for (int i = 0; i < n; ++i) {
           if (i + 1 < n) begin(i + 1);
           {
             lotus::batch_wait wait;
             for (std::thread& t : ahead.front()) t.join();
             ahead.pop_front();
             wait.consumed(static_cast<unsigned>(i));
           }
           train(0.1);
         }
       }},
      {"read-in-wait",
       [] {
         const int n = batches_of(slow ? 9 : 4);
         slow_pipe input(n, slow ? 8 : 0.1);
         loader l;
         l.batches = n;
         l.make = [](int) { step("Load", [] { nap(3); }); };
         l.unpack = [&](int) { input.read_block(); };
         l.run([](int) { train(1); });
       }},
      {"late-reader",
       [] {
         loader l;
         l.workers = 4;
         l.ahead = 4;
         l.batches = batches_of(slow ? 7 : 3);
         const auto began = std::chrono::steady_clock::now();
         l.may_begin = [began](int i, int) {  // one thread reads a batch in 7 ms
           return std::chrono::steady_clock::now() - began >
                  std::chrono::milliseconds(slow ? 7 * i : 0);
         };
         std::atomic<bool> done{false};
         std::thread reader([&] {
           while (!done) {
             nap(0.5);
             l.look();
           }
         });
         l.make = [](int) { step("Decode", [] { nap(4); }); };
         l.run([](int) { train(1); });
         done = true;
         reader.join();
       }},
      {"few-in-flight",
       [] {
         loader l;
         l.workers = 4;
         l.batches = batches_of(slow ? 8 : 4);
         l.may_begin = [](int i, int received) { return !slow || i < received + 2; };
         l.make = [](int i) { step("Read", [i] { nap(8 + i % 3); }); };
         l.run([](int) { train(1); });
       }},
      {"buffers",
       [] {
         semaphore buffers(slow ? 2 : 12);  // the consumer returns each of them after its step
         loader l;
         l.workers = 6;
         l.ahead = 100;
         l.batches = batches_of(slow ? 8 : 4);
         l.make = [&](int i) {
           step("GetBuffer", [&] { buffers.take(i); });
           step("Read", [] { nap(12); });
         };
         l.run([&](int) {
           train(2);
           buffers.give();
         });
       }},
      {"tokens",
       [] {
         semaphore tokens(slow ? 3 : 8);  // of a library that decodes so many images at once
         loader l;
         l.workers = 8;
         l.ahead = 100;
         l.batches = batches_of(slow ? 5 : 3);
         l.make = [&](int i) {
           step("GetToken", [&] { tokens.take(i); });
           step("Decode", [i] { nap(13 + i % 4); });
           tokens.give();
           step("Pack", [] { nap(1); });
         };
         l.run([](int) { train(1); });
       }},
      {"pool",
       [] {
         semaphore connections(slow ? 2 : 8);
         loader l;
         l.workers = 6;
         l.ahead = 100;
         l.batches = batches_of(slow ? 8 : 3);
         l.make = [&](int i) {
           step("Request", [&] {
             connections.take(i);
             nap(11 + i * 7 % 9);
             connections.give();
           });
         };
         l.run([](int) { train(2); });
       }},
      {"one-asked-for",
       [] {
         loader l;
         l.workers = 6;
         l.batches = batches_of(slow ? 12 : 4);
         l.begins_after_step = slow;
         l.make = [](int) { step("Load", [] { nap(9); }); };
         l.run([](int) { train(3); });
       }},
      {"stage-worker", [] {
         static std::atomic<int> begun{0};
         run_stages({{"Read", 1, [](int) { nap(1); }},
                     {"Decode", 3,
                      [](int) {
                        static thread_local const bool is_slow = slow && begun++ == 0;
                        nap(is_slow ? 60 : 6);
                      }}},
                    std::max(60, batches_of(4)), [](int) { train(1); });
       }}};
  return all;
}

}  // namespace planted
