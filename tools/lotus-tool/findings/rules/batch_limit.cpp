// Work on a batch waits because only so many batches may be between it and a later moment.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "findings/facts/batch_limits.hpp"
#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// Whether an operation waits for other threads nearly whenever it is blocked, as samples show.
bool waits_for_threads(const run_facts& f, const std::string& name) {
  constexpr std::uint64_t fewest = 5;
  const blocked_list* const list = f.d.blocked_on.of('S' + name);
  if (list == nullptr || list->samples < fewest) return false;
  double share = 0;
  for (const blocked_on& one : list->by) {
    if (one.reason == wait_reason::condition) share += one.share;
  }
  return share >= 0.8;
}

/// Whether so many batches, if each is worked on as the path outside of the operation is, keep the
/// CPUs busy. Then more of them would only wait for a CPU.
bool needs_all_cpus(const run_facts& f, const path_states& operation, std::size_t batches) {
  constexpr double nearly_all = 0.8;
  const path_states path = f.states();
  const double busy = path.cpu - operation.cpu + path.queue - operation.queue;
  const double all = busy + path.blocked - operation.blocked;
  return all > 0 && f.cpus > 0 && static_cast<double>(batches) * busy > nearly_all * f.cpus * all;
}

/// Returns the moment until which a batch counts, and what must happen for the wait to end.
struct moment_words {
  phrase happens;
  phrase until;
};

moment_words words_of(const batch_limit& limit) {
  using until = batch_limit::until;
  const name_word of{limit.of};
  switch (limit.ends) {
    case until::step:
      return {{"the consumer has finished a batch"}, {"the end of the consumer's step"}};
    case until::reception:
      return {{"the consumer has received a batch"}, {"the consumer's reception"}};
    case until::consumer_operation:
      return {{"the consumer has finished %", {of}}, {"the end of the consumer's %", {of}}};
    case until::operation:
      return {{"another thread has finished %", {of}}, {"the end of %", {of}}};
    case until::batch:
      break;
  }
  return {{"another thread has built a batch"}, {"the end of the work on the batch"}};
}

}  // namespace

std::optional<finding> limited_batches(const run_facts& f) {
  // A longer run is not searched, because its calls would take much memory.
  constexpr std::uint64_t most_operations = 2'000'000;
  constexpr double worth_saying = 0.2;
  constexpr double nearly_all = 0.85;
  if (f.waits.share() < waits_much || f.run.operations > most_operations) return std::nullopt;
  for (const path_share& share : f.path.shares) {
    if (!is_work(share)) continue;
    const path_states states = f.states_of(share.name);
    if (states.blocked < worth_saying) break;
    if (states.blocked < nearly_all * (states.all - states.queue)) continue;
    if (!waits_for_threads(f, share.name)) continue;
    const std::optional<batch_limit> limit = batch_limit_of(f.run, share.name);
    if (!limit || needs_all_cpus(f, states, limit->most)) continue;
    const moment_words moment = words_of(*limit);
    phrase because{"% waits until ", {name_word{share.name}}};
    because.add(moment.happens)
        .add(": only % may be between % and ",
             {count_word{limit->most, "batch", "batches"}, name_word{share.name}})
        .add(moment.until)
        .add(" (a pool of buffers, a limit).");
    return finding{
        "batch-limit",
        std::move(because),
        {"Raise this number; more workers would wait as well."},
        states.blocked,
        share.kind == path_kind::stage ? verdict::stage_bound : verdict::preprocessing_bound,
        gives_reason | forbids_threads | forbids_simulation};
  }
  return std::nullopt;
}

}  // namespace lotus::tool
