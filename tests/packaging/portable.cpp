// The whole API, in a program for a platform where nothing is recorded; on one where it is, too.
#include <memory>
#include <string>

#include "lotus/lotus.hpp"

namespace {

struct Double {
  int operator()(int x) const { return 2 * x; }
};

int work(int batch, const std::string& name) {
  int runs = 0;
  {
    if (batch == 1) LOTUS_SCOPE("Literal");
    LOTUS_SCOPE_DYNAMIC(name);
    LOTUS_BATCH_PREPROCESSED(batch);
    LOTUS_BATCH_WAIT(batch);
    LOTUS_SCOPE_AGGREGATED("Aggregated");
    LOTUS_BATCH_QUEUED(batch);
    LOTUS_BATCH_ARRIVED(batch);
    LOTUS_BATCH_CONSUMED(batch);
    LOTUS_RESUME();
    LOTUS_MAP_REGION("Region", batch, runs) {
      ++runs;
    }
    LOTUS_PAUSE();
    LOTUS_DETACH();
    const lotus::scope scope{name};
    const lotus::batch_preprocessed preprocessed{1};
    const lotus::batch_wait wait{1};
    lotus::batch_arrived(1);
    lotus::batch_consumed(1);
    lotus::batch_queued(1);
    lotus::collector::resume();
    lotus::collector::pause();
    lotus::collector::detach();
  }
  for (lotus::map_region region{"Class"}; region.next();) ++runs;
  return runs;
}

int transforms() {
  auto fixed = lotus::compose(Double{}, lotus::op("Add", [](int x) { return x + 1; }));
  auto moved = lotus::compose([](std::unique_ptr<int> x) { return x; });
  lotus::chain<int> chain;
  chain.add("Double", Double{}).add("Change", [](int& x) { x += 1; });
  lotus::laps lap;
  lap("Lap");
  return fixed(1) + chain(1) + *moved(std::make_unique<int>(1)) + static_cast<int>(chain.size());
}

}  // namespace

int main(int argc, char** argv) {
  lotus::options chosen;
  chosen.log_file = argc > 1 ? argv[1] : "lotustrace_log";
  chosen.when_full = lotus::full_ring::drop;
  chosen.on_message = [](const char*) {};
  const bool started = lotus::start(chosen) && lotus::start(chosen.log_file);
  if (started != static_cast<bool>(LOTUS_SUPPORTED)) return 1;
  if (work(1, "Dynamic") != 2) return 2;
  if (transforms() != 3 + 3 + 1 + 2) return 3;
  lotus::flush();
  lotus::stop();
  return lotus::dropped() == 0 ? 0 : 4;
}
