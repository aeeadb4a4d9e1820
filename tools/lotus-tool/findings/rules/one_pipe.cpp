// The largest part of the path waits for the other end of one pipe, such as standard input, or of
// many, such as those to child processes.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

std::optional<finding> waits_for_one_pipe(const run_facts& f) {
  constexpr std::uint64_t fewest = 10;
  constexpr double worth_saying = 0.3;
  const path_share* const work = f.largest_work();
  const blocked_list* const list = work == nullptr ? nullptr : f.d.blocked_on.of('S' + work->name);
  if (list == nullptr || list->samples < fewest) return std::nullopt;
  const blocked_on* pipe = nullptr;  // the one with the most samples comes first
  double of_pipes = 0;
  for (const blocked_on& one : list->by) {
    if (one.reason != wait_reason::pipe) continue;
    if (pipe == nullptr) pipe = &one;
    of_pipes += one.share;
  }
  // Threads may have a pipe each, such as to a child process; then more threads are more pipes.
  if (pipe == nullptr || pipe->share < 0.8 * of_pipes) return std::nullopt;
  const double share = pipe->share * f.states_of(work->name).blocked;
  if (share < worth_saying) return std::nullopt;
  return finding{
      "one-pipe",
      {"% can be only as fast as what is at the other end of its pipe.", {name_word{work->name}}},
      {"Make that faster; more threads at the same pipe gain nothing."},
      share,
      {},
      forbids_threads | forbids_faster_others};
}

std::optional<finding> waits_for_many_pipes(const run_facts& f) {
  constexpr std::size_t many = 8;
  constexpr double worth_saying = 0.3;
  const path_share* const work = f.largest_work();
  const blocked_list* const list = work == nullptr ? nullptr : f.d.blocked_on.of('S' + work->name);
  if (list == nullptr) return std::nullopt;
  std::size_t pipes = 0;
  double of_pipes = 0;
  for (const blocked_on& one : list->by) {
    if (one.reason != wait_reason::pipe) continue;
    ++pipes;
    of_pipes += one.share;
  }
  const double share = of_pipes * f.states_of(work->name).blocked;
  if (pipes < many || share < worth_saying) return std::nullopt;
  const bool is_full = f.cpus > 0 && f.others_cpus.value_or(0) >= 0.6 * f.cpus;
  return finding{
      "many-pipes",
      {"the other ends of the pipes for which % waits are probably processes; the CPUs that these "
       "use count as used by other programs.",
       {name_word{work->name}}},
      {"If it starts a process for each call, keep one that answers many calls, or call a "
       "library."},
      share,
      {},
      explains_queues | (is_full ? forbids_threads : 0U)};
}

}  // namespace lotus::tool
