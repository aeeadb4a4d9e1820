// Why marked work waits for a CPU: a cgroup's limit, bound threads, or the program's other threads.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// A part of the critical path that is smaller than this needs no explanation.
constexpr double much = 0.15;

/// Whether the largest part of the path often waits for pages of memory that are on the disk.
bool reads_mapped_pages(const run_facts& f) {
  constexpr std::uint64_t fewest = 5;
  const path_share* const most = f.largest_work();
  const blocked_list* const list = most == nullptr ? nullptr : f.d.blocked_on.of('S' + most->name);
  if (list == nullptr) return false;
  return std::any_of(list->by.begin(), list->by.end(), [&](const blocked_on& one) {
    return one.reason == wait_reason::page_fault && one.samples >= fewest && one.share >= 0.3;
  });
}

/// Finds threads that share too few CPUs because their process was bound to a part of the CPUs
/// before its first record.
std::optional<finding> bound_process(const run_facts& f, std::size_t threads) {
  const std::optional<usable_cpus>& on = f.run.cpus;
  if (!on || on->limit || on->affinity == 0 || on->parents <= on->affinity) return std::nullopt;
  if (on->affinity >= threads || f.states().queue < much) return std::nullopt;
  // The simulation knows what more CPUs would gain, so this does not explain_queues.
  return finding{
      "bound-process",
      {"% share %: the process is bound to so few, although the program that started it "
       "may use %. They wait for a CPU during % of the run.",
       {count_word{threads, "thread", "threads"}, count_word{on->affinity, "CPU", "CPUs"},
        count_word{on->parents}, share_word{f.states().queue}}},
      {"Find what sets the affinity (a library, taskset, OMP_PROC_BIND, a job "
       "scheduler), and let it allow more."},
      f.states().queue,
      {},
      gives_reason | forbids_threads};
}

}  // namespace

std::optional<finding> cpu_limit(const run_facts& f) {
  const system_counts& c = f.run.counts;
  if (c.periods < 5 || 10 * c.stopped < c.periods || f.states().queue < much) return std::nullopt;
  const double limit = f.run.cpus && f.run.cpus->limit ? *f.run.cpus->limit : f.cpus;
  return finding{"cpu-limit",
                 {"the CPU limit of the container or cgroup (%) stopped the program in % of % "
                  "periods; the critical path waited for a CPU during % of the run.",
                  {count_word{limit, "CPU", "CPUs"}, count_word{c.stopped}, count_word{c.periods},
                   share_word{f.states().queue}}},
                 {"Raise this limit, or use fewer threads: all threads of the program count."},
                 f.states().queue,
                 {},
                 gives_reason | forbids_threads | explains_queues};
}

std::optional<finding> pinned_threads(const run_facts& f) {
  std::set<std::uint64_t> bound;
  std::set<std::uint64_t> all;
  std::set<std::pair<std::uint32_t, std::uint32_t>> sets;
  for (const preprocessing_span& s : f.run.batches.preprocessing_spans()) {
    if (!s.file) continue;
    const std::uint64_t thread = f.run.log(*s.file).number;
    if (!all.insert(thread).second) continue;
    const std::optional<thread_cpus>& on = f.run.thread_cpus_of[s.file->value()];
    if (!on) continue;
    bound.insert(thread);
    sets.emplace(on->count, on->first);
  }
  if (bound.empty()) return bound_process(f, all.size());
  // Threads that are bound to CPUs of their own do not share them.
  if (bound.size() < 2 || 2 * bound.size() < all.size() || sets.size() != 1) return std::nullopt;
  const auto cpus = static_cast<double>(sets.begin()->first);
  if (cpus >= static_cast<double>(bound.size()) || f.states().queue < much) return std::nullopt;
  return finding{
      "bound-threads",
      {"% share %, because their affinity binds them to it, although the program may use %. They "
       "wait for a CPU during % of the run.",
       {count_word{bound.size(), "thread", "threads"}, count_word{cpus, "CPU", "CPUs"},
        count_word{f.cpus, "CPU", "CPUs"}, share_word{f.states().queue}}},
      {"Find what sets the affinity (a library, taskset, OMP_PROC_BIND), and remove it."},
      f.states().queue,
      {},
      gives_reason | forbids_threads | explains_queues};
}

std::optional<finding> unmarked_threads(const run_facts& f) {
  // Where the consumer spins, other threads often do, too.
  const double worth_saying = wait_spins(f) ? 0.1 : 0.25;
  constexpr double takes_cpus = 0.25;
  if (f.unmarked_share < worth_saying || f.cpus <= 0) return std::nullopt;
  // What a thread does outside of the markers of one loader may be in those of another.
  if (!f.run.files->loader.empty() && f.unmarked_in && f.unmarked_in->have_markers) {
    return std::nullopt;
  }
  // The start of many threads is such code, too.
  const std::optional<finding> started = thread_for_each_batch(f);
  if (started && started->has(gives_reason)) return std::nullopt;
  // Other programs may be the cause if they use more.
  if (f.unmarked_cpus < 0.5 * f.others_cpus.value_or(0)) return std::nullopt;
  // Other threads matter if the path waits for a CPU while they use a good part of the CPUs, or if
  // it is blocked while they use most of them: then it probably waits for them.
  const path_states states = f.states();
  const double working = states.blocked - f.states(path_kind::step).blocked;
  const bool queues = states.queue >= much && f.unmarked_cpus >= 0.15 * f.cpus;
  // One thread may be what everything waits for.
  const bool is_one = f.unmarked_cpus >= 0.8 && f.waits.idle_ns() >= 0.25 * f.waits.all_ns;
  const bool waits = working >= 0.3 && (f.unmarked_cpus >= 0.5 * f.cpus || is_one);
  if (!queues && !waits) return std::nullopt;
  const double share = queues ? states.queue : working;
  const bool is_seen = f.unmarked_in && !f.unmarked_in->function.empty();
  const bool is_loader = f.unmarked_in && !f.unmarked_in->loader.empty();
  phrase because{is_loader ? "outside of this loader, the program used % of its CPU time (% of %),"
                           : "code outside of all markers used % of the program's CPU time (% of "
                             "%),",
                 {share_word{f.unmarked_share}, count_word{f.unmarked_cpus, "CPU", "CPUs"},
                  count_word{f.cpus}}};
  phrase to_do{
      "Let libraries use fewer threads (such as OMP_NUM_THREADS=1), and let idle threads sleep."};
  if (is_one && !queues) {
    to_do = {"Mark what this thread does with LOTUS_STAGE(name, i), and make it faster."};
  }
  // Threads that begin in a lambda whose source is known are rarely those of a library.
  if (f.unmarked_in && f.unmarked_in->group.threads > 1 && !f.unmarked_in->group.lambda.empty()) {
    to_do = {"Let these threads sleep while they have nothing to do, or use fewer of them."};
  }
  if (is_loader) {
    to_do = {"Let that loader build less, or at another time, or give it fewer threads."};
  } else if (!f.unmarked_in) {
    to_do.add(" Record with 'lotus-tool run' to see which threads these are.");
  } else if (f.unmarked_in->group.threads == 1 && !f.unmarked_in->have_markers && queues) {
    to_do = {"Let this thread do less, or do it when the loader does not need the CPUs."};
  } else if (f.unmarked_in->have_markers) {
    to_do = {"Let them sleep while they wait, such as at a condition variable, or mark the rest."};
  }
  if (f.unmarked_in) because.add(" most of it in ").add(words_of(*f.unmarked_in)).add(",");
  because.add(" and the critical path % during % of the run.",
              {name_word{queues ? "waited for a CPU" : "was blocked"}, share_word{share}});
  return finding{
      "unmarked-threads",
      std::move(because),
      std::move(to_do),
      share,
      queues && share >= takes_cpus ? std::optional(verdict::preprocessing_bound) : std::nullopt,
      forbids_threads | explains_queues | (share >= (is_seen ? 0.25 : 0.3) ? gives_reason : 0U)};
}

namespace {

/// Whether most of this time may belong to a few long calls, such as those in which buffers that
/// are kept are touched for the first time. Then a mean over all batches says nothing.
bool may_be_rare(const run_facts& f, double system_ns) {
  constexpr double most = 0.5;
  return std::any_of(f.changes.begin(), f.changes.end(), [&](const time_change& c) {
    return c.is == time_change::shape::now_again && c.every == 0 &&
           static_cast<double>(c.rare) * c.rare_mean_ns >= most * system_ns;
  });
}

}  // namespace

std::optional<finding> time_in_kernel(const run_facts& f) {
  constexpr double mostly = 0.4;
  const system_counts& c = f.run.counts;
  if (c.cpu_ns == 0 || f.cpus <= 0) return std::nullopt;
  const double share = static_cast<double>(c.system_ns) / static_cast<double>(c.cpu_ns);
  if (share < mostly || f.used_cpus < 0.1 * f.cpus || f.states().cpu < much) return std::nullopt;
  if (may_be_rare(f, static_cast<double>(c.system_ns))) return std::nullopt;
  finding of{"kernel-time",
             {"the program spends % of its CPU time in the kernel.", {share_word{share}}},
             {"See which system calls it makes (strace -c -f)."},
             share * f.states().cpu};
  // With the clearing of its page, a page fault takes about 1 us.
  constexpr double fault_ns = 1000;
  const auto faults = static_cast<double>(c.faults);
  if (faults * fault_ns > 0.3 * static_cast<double>(c.system_ns)) {
    const auto batches = static_cast<double>(f.d.received > 0 ? f.d.received : 1);
    of.because = {"the program spends % of its CPU time in the kernel, with % per batch.",
                  {share_word{share}, count_word{faults / batches, "page fault", "page faults"}}};
    of.to_do = {"Reuse buffers instead of allocating them for each batch."};
    return of;
  }
  if (reads_mapped_pages(f)) {
    of.because.add(" Its page faults read a mapped file from the disk.");
    of.to_do = {"Read these pages ahead (posix_madvise, or read() of larger blocks)."};
    return of;
  }
  if (const std::string function = function_that_reads(f.run); !function.empty()) {
    of.because = {"the program spends % of its CPU time in the kernel, mostly where % reads.",
                  {share_word{share}, name_word{function}}};
    of.to_do = {"Read larger blocks, or keep what is read again."};
  }
  // If the consumer rarely waits, this time may not be on the critical path. And if threads wait
  // for a lock, these are the system calls.
  constexpr double rarely_waits = 0.05;
  if (f.waits.share() < rarely_waits || perhaps_a_lock(f)) return std::nullopt;
  return of;
}

}  // namespace lotus::tool
