// Programs that record pipelines of many shapes, with operations that sleep or compute.
#include "tool/diagnose/planted/real_programs.hpp"

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"
#include "tool/diagnose/planted/crew.hpp"

namespace lotus::tool_test {

measured* work = nullptr;

namespace {

constexpr int batches = 30;

void spend(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void burn(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void make(int i, int ms, void (*how)(int) = spend) {
  LOTUS_BATCH_PREPROCESSED(i);
  work->add([&] {
    {
      LOTUS_SCOPE("Load");
      how(ms * 2 / 3);
    }
    LOTUS_SCOPE("Crop");
    how(ms - ms * 2 / 3);
  });
}

void train(int ms) {
  LOTUS_SCOPE("Train");
  spend(ms);
}

/// Receives all batches of an epoch.
void consume(channel& from, int step_ms, unsigned wrong_by = 0) {
  while (true) {
    lotus::batch_wait wait;
    const std::optional<int> i = from.take();
    if (!i) return;
    wait.consumed(static_cast<unsigned>(*i) + wrong_by);
    train(step_ms);
  }
}

/// Receives all batches in order, and says that a batch was consumed only after its step.
void consume_late(channel& from, int step_ms, int count) {
  std::set<int> arrived;
  for (int i = 0; i < count; ++i) {
    {
      LOTUS_BATCH_WAIT(i);
      while (arrived.count(i) == 0) arrived.insert(from.take().value());
    }
    train(step_ms);
    LOTUS_BATCH_CONSUMED(i);
  }
}

void workers(int make_ms, int step_ms, int count = batches, bool late = false,
             unsigned wrong_by = 0) {
  channel made(4);
  const crew all(2, numbers(count), made, [&](int i) { make(i, make_ms); });
  late ? consume_late(made, step_ms, count) : consume(made, step_ms, wrong_by);
}

void stages() {
  channel read(2);
  channel decoded(2);
  channel collated(2);
  const crew readers(1, numbers(batches), read, [](int i) {
    LOTUS_STAGE("Read", i);
    spend(2);
  });
  const crew decoders(2, out_of(read), decoded, [](int i) {
    LOTUS_STAGE("Decode", i);
    work->add([] { spend(12); });
  });
  const crew collators(1, out_of(decoded), collated, [](int i) {
    LOTUS_STAGE("Collate", i);
    spend(1);
  });
  consume(collated, 1);
}

void workers_and_pin() {
  channel made(4);
  channel pinned(2);
  const crew all(2, numbers(batches), made, [](int i) {
    LOTUS_BATCH_PREPROCESSED(i);
    LOTUS_SCOPE("Load");
    spend(4);
  });
  const crew pin(1, out_of(made), pinned, [](int i) {
    LOTUS_STAGE("Pin", i);
    work->add([] { spend(8); });
  });
  consume(pinned, 2);
}

void a_thread_a_batch() {
  std::deque<std::future<void>> coming;
  for (int i = 0, asked = 0; i < batches; ++i) {
    for (; asked < batches && asked < i + 2; ++asked) {
      coming.push_back(std::async(std::launch::async, make, asked, 9, spend));
    }
    {
      LOTUS_BATCH_WAIT(i);
      coming.front().get();
      coming.pop_front();
    }
    LOTUS_BATCH_CONSUMED(i);
    train(1);
  }
}

void one_thread() {
  for (int i = 0; i < batches; ++i) {
    {
      LOTUS_BATCH_WAIT(i);
      make(i, 6);
    }
    LOTUS_BATCH_CONSUMED(i);
    train(3);
  }
}

void two_loaders(bool named) {
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const char* const name : {"train", "val"}) {
      channel made(4);
      const int count = name[0] == 't' ? batches : batches / 3;
      const crew all(2, numbers(count), made, [&](int i) {
        const lotus::loader_scope of{named ? name : ""};
        make(i, 4);
      });
      const lotus::loader_scope of{named ? name : ""};
      consume(made, 2);
    }
  }
}

void service() {
  channel answered(1000);
  const crew all(2, numbers(batches), answered, [](int request) {
    LOTUS_STAGE("Request", request);
    LOTUS_SCOPE("Parse");
    work->add([] { spend(5); });
  });
}

/// Fetches asynchronously; the fetches are resumed on the thread that builds the batch.
void asynchronous() {
  channel asked(2);
  channel made(4);
  std::vector<std::unique_ptr<lotus::async_scope>> fetches(batches);
  const crew askers(1, numbers(batches), asked, [&](int i) {
    fetches[static_cast<std::size_t>(i)] = std::make_unique<lotus::async_scope>("Fetch");
    fetches[static_cast<std::size_t>(i)]->suspend();
    spend(1);
  });
  const crew makers(2, out_of(asked), made, [&](int i) {
    LOTUS_BATCH_PREPROCESSED(i);
    fetches[static_cast<std::size_t>(i)]->resume();
    work->add([] { spend(8); });
    fetches[static_cast<std::size_t>(i)].reset();
  });
  consume(made, 1);
}

/// The workers do most of their work outside of the scope LOTUS_BATCH_PREPROCESSED.
void unrecorded() {
  channel made(4);
  const crew all(2, numbers(batches), made, [](int i) {
    {
      LOTUS_SCOPE("Decode");
      spend(6);
    }
    make(i, 3);
  });
  consume(made, 1);
}

/// Builds each batch a second time, outside of the scope LOTUS_BATCH_PREPROCESSED.
void twice() {
  channel made(4);
  const crew all(2, numbers(batches), made, [](int i) {
    make(i, 6);
    {
      LOTUS_SCOPE("Load");
      spend(4);
    }
    LOTUS_SCOPE("Crop");
    spend(2);
  });
  consume(made, 1);
}

void in_parts() {
  channel made(4);
  const crew all(1, numbers(batches), made, [](int i) {
    const auto half = std::async(std::launch::async, make, i, 4, spend);
    make(i, 4);
  });
  consume(made, 1);
}

/// Records a scope that begins on one thread and ends on another, during one of that thread's
/// operations.
void crossing() {
  channel made(4);
  std::optional<lotus::scope> hops;
  const crew all(1, numbers(batches), made, [&](int i) {
    hops.emplace("Fetch");
    std::thread([&] {
      LOTUS_BATCH_PREPROCESSED(i);
      {
        LOTUS_SCOPE("Load");
        spend(3);
        hops.reset();
        spend(3);
      }
    }).join();
  });
  consume(made, 1);
}

void oversubscribed() {
  channel made(4);
  const crew all(3, numbers(batches), made, [](int i) { make(i, 6, burn); });
  consume(made, 1);
}

/// Records faster than the drain thread can empty the rings. The rings are so small that the drain
/// thread is too slow even if a sanitizer slows the recording.
void dropping() {
  workers(6, 1);
  while (lotus::dropped() == 0) {
    for (int i = 0; i < 100; ++i) LOTUS_SCOPE("Tiny");
  }
}

void on_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

}  // namespace

const std::vector<real_program>& real_programs() {
  static const std::vector<real_program> all{
      {"workers", [] { workers(9, 1); }, {}, {}, "preprocessing-bound", 2},
      {"a slow consumer", [] { workers(2, 15); }, {}, {}, "consumer-bound", 2},
      {"consumed late",
       [] { workers(2, 15, batches, true); },
       {"consumed-late"},
       {},
       "consumer-bound",
       2},
      {"stages", stages, {}, {}, "stage-bound", 2},
      {"workers and pin", workers_and_pin, {}, {}, "stage-bound", 1},
      {"a thread a batch", a_thread_a_batch, {}, {}, "preprocessing-bound", 2},
      {"one thread", one_thread, {}, {}, {}, 1},
      {"asynchronous", asynchronous, {}, {"unrecorded-work"}, {}, 2},
      {"two loaders", [] { two_loaders(true); }, {}, {}, {}, 0},
      {"two loaders without names",
       [] { two_loaders(false); },
       {"loaders-mixed"},
       {"negative-delay"},
       {},
       0},
      {"service", service, {}, {}, {}, 0},
      {"short", [] { workers(6, 1, 6); }, {"short"}, {}, {}, 2},
      {"unrecorded", unrecorded, {"unrecorded-work"}, {}, {}, 0},
      {"twice", twice, {"twice"}, {"unrecorded-work"}, {}, 0},
      {"in pieces", in_parts, {"pieces"}, {}, {}, 0},
      {"crossing", crossing, {"overlap"}, {"unrecorded-work"}, {}, 0},
      {"wrong number", [] { workers(6, 1, batches, false, 5); }, {"other-numbers"}, {}, {}, 0},
      {"dropping", dropping, {"dropped"}, {"unrecorded-work"}, {}, 0, true, nullptr, 64},
      {"oversubscribed", oversubscribed, {"oversubscribed"}, {}, {}, 0, true, on_one_cpu}};
  return all;
}

}  // namespace lotus::tool_test
