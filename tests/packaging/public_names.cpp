// Uses every public name, in a program that runs on every platform, even if the library does not
// record there. public_names.cmake checks that no name is missing.
//
// If a program contains several such files, PUBLIC_NAMES is the name of this file's function.
// Otherwise, this file is the whole program.
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "lotus/lotus.hpp"

#if !defined(PUBLIC_NAMES)
  #define PUBLIC_NAMES use_public_names
  #define HAS_MAIN
#endif

namespace {

// Programs do not name these types, but macros create objects of them.
static_assert(!std::is_copy_constructible_v<lotus::scope_with_arguments> &&
              !std::is_copy_constructible_v<lotus::aggregated_scope>);

struct Double {
  int operator()(int x) const { return 2 * x; }
};

struct sample {
  int value;
  int doubled() const { return 2 * value; }
};

int macros(int batch, const std::string& name) {
  int runs = 0;
  if (batch == 1) LOTUS_SCOPE("Literal");
  LOTUS_LOADER(name);
  LOTUS_SCOPE_DYNAMIC(name);
  LOTUS_SCOPE_ARGS("Arguments", batch, name, 0.5, true);
  LOTUS_SCOPE_AGGREGATED("Aggregated");
  LOTUS_BATCH_PREPROCESSED(batch);
  LOTUS_BATCH_WAIT(batch);
  LOTUS_BATCH_QUEUED(batch);
  LOTUS_BATCH_ARRIVED(batch);
  LOTUS_BATCH_CONSUMED(batch);
  LOTUS_BATCH_TAKES(batch, batch);
  LOTUS_STAGE("Stage", batch);
  LOTUS_COUNTER("Counter", batch);
  LOTUS_RESUME();
  LOTUS_MAP_REGION("Region", batch, runs) {
    ++runs;
  }
  LOTUS_PAUSE();
  LOTUS_DETACH();
  return runs;
}

int classes(const std::string& name) {
  const lotus::loader_scope loader{name};
  const lotus::scope scope{name};
  const lotus::range range{"epoch 3"};
  lotus::async_scope async{name};
  async.suspend();
  async.resume();
  lotus::stage stage{name, 1};
  stage.end();
  stage.discard();
  if (lotus::in_stage(name, 2, [] { return 1; }) != 1) return 0;
  const lotus::batch_preprocessed preprocessed{1};
  lotus::batch_preprocessed numbered_late;
  numbered_late.number(1);
  numbered_late.discard();
  const lotus::batch_wait wait{1};
  lotus::batch_wait late;
  late.consumed(3);
  late.discard();
  lotus::batch_arrived(1);
  lotus::batch_consumed(1);
  lotus::batch_queued(1);
  lotus::batch_takes(1, 1);
  lotus::counter(name, 1);
  const auto now = std::chrono::steady_clock::now();
  lotus::record_span(name, now - std::chrono::milliseconds{1}, now);
  lotus::collector::resume();
  lotus::collector::pause();
  lotus::collector::detach();
  int runs = 0;
  for (lotus::map_region region{"Class"}; region.next();) ++runs;
  const sample samples[]{{1}, {2}};
  int sum = 0;
  for (const sample& s : lotus::consume(samples)) sum += s.value;
  for (const sample& s : lotus::consume(samples, samples + 2)) sum += s.value;
  for (const sample& s : lotus::consume(samples, &sample::value)) sum += s.value;
  for (const sample& s : lotus::consume(samples, samples + 2, &sample::doubled)) sum += s.value;
  if (sum != 12) return 0;
  for (lotus::fenced_map_region<int> region{"Fenced", runs}; region.next();) ++runs;
  return runs;
}

int transforms() {
  lotus::composed fixed =
      lotus::compose(Double{}, lotus::operation{"Add", [](int x) { return x + 1; }});
  const lotus::operation named{"Double", Double{}};
  auto members = lotus::compose(&sample::doubled, named);
  auto moved = lotus::compose([](std::unique_ptr<int> x) { return x; });
  lotus::chain<int> chain;
  chain.add("Double", Double{}).add("Change", [](int& x) { x += 1; });
  auto copied = chain;
  return fixed(1) + chain(1) + copied(1) + members(sample{1}) + *moved(std::make_unique<int>(1)) +
         static_cast<int>(chain.size());
}

}  // namespace

/// Uses every name except start and stop. Returns 0, or the number of the check that failed.
int PUBLIC_NAMES(const char* name) {
  if (macros(1, name) != 1) return 2;
  if (classes(name) != 2) return 3;
  if (transforms() != 3 + 3 + 3 + 4 + 1 + 2) return 4;
  return 0;
}

#if defined(HAS_MAIN)
  #if defined(LOTUS_DISABLE)
constexpr bool starts = true;
  #else
constexpr bool starts = LOTUS_SUPPORTED != 0;
  #endif

int main(int argc, char** argv) {
  lotus::options chosen;
  chosen.log_file = argc > 1 ? argv[1] : "lotustrace_log";
  chosen.when_full = lotus::full_ring::drop;
  chosen.format = lotus::log_format::text;
  chosen.on_message = [](const char*) {};
  const bool started = lotus::start(chosen) && lotus::start(chosen.log_file);
  if (started != starts) return 1;
  const int wrong = use_public_names("Dynamic");
  lotus::snapshot("reason");
  lotus::flush();
  lotus::stop();
  lotus::schedule steps;
  steps.on_trace_ready = [](const std::string& folder) { static_cast<void>(folder); };
  if (lotus::start(chosen, steps) != starts) return 5;
  lotus::step();
  lotus::stop();
  return lotus::dropped() == 0 ? wrong : 6;
}
#endif
