// Uses the classes with which a loader is marked. nothing_left.cmake checks that LOTUS_DISABLE
// leaves nothing of the library in the object file.
#include <cstdint>
#include <string>
#include <vector>

#include "lotus/lotus.hpp"

int classes(std::uint64_t batch, const std::string& name, const std::vector<int>& loader,
            int (*operation)(int)) {
  if (!lotus::start(name)) return -1;
  const lotus::scope scope{name};
  const lotus::stage stage{"Decode", batch};
  const lotus::range range{"epoch"};
  const lotus::loader_scope loader_scope{"val"};
  const lotus::batch_preprocessed whole{batch};
  lotus::batch_preprocessed late;
  late.number(batch);
  const lotus::batch_wait wait{batch};
  lotus::batch_wait late_wait;
  late_wait.consumed(batch);
  lotus::async_scope task{"Fetch"};
  task.suspend();
  task.resume();
  lotus::batch_consumed(batch);
  lotus::batch_queued(batch);
  lotus::batch_takes(batch, 1);
  lotus::counter("Depth", 1);
  int sum = 0;
  for (const int item : lotus::consume(loader)) sum += operation(item);
  lotus::flush();
  lotus::stop();
  return sum + (lotus::snapshot("end") ? 1 : 0) + static_cast<int>(lotus::dropped());
}
