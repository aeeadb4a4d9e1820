// How the program hands out its batches: a thread for each of them, or ever more of them ahead.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "findings/checks/consumers.hpp"
#include "findings/facts/facts.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/identifiers.hpp"
#include "model/path/span_segments.hpp"
#include "model/pipeline/awaited_spans.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {
namespace {

/// Most loaders build fewer batches ahead than this, so only a larger number is reported.
constexpr std::size_t fewest_batches = 20;

/// Returns how many of the sorted times are not after `at_ns`.
std::size_t until(const std::vector<std::int64_t>& times, std::int64_t at_ns) {
  return static_cast<std::size_t>(std::upper_bound(times.begin(), times.end(), at_ns) -
                                  times.begin());
}

/// The spans of a stage that threads wait for in their own spans of the same batches.
struct joined_parts {
  bool any = false;
  /// If the threads that wait also build such parts, as those of one pool: how many they are
  /// together, and how many of them wait on average. 0 otherwise.
  std::size_t pool = 0;
  double waiting = 0;
};

joined_parts find_joined_parts(const run_facts& f, stage_id stage) {
  const std::vector<preprocessing_span>& spans = f.run.batches.preprocessing_spans();
  const awaited_spans forked(f.run, segmented_spans(f.run.batches));
  joined_parts found;
  std::set<file_id> build_parts;
  std::map<file_id, intervals> wait;
  for (span_number n = 0; forked.any() && n < spans.size(); ++n) {
    const preprocessing_span& s = spans[n];
    if (!s.file) continue;
    if (s.stage == stage) {
      found.any = found.any || forked.is_forked(n);
      build_parts.insert(*s.file);
    } else if (forked.waited_ns(n) > 0) {
      wait[*s.file].push_back({s.start_ns, s.end_ns()});
    }
  }
  std::size_t do_both = 0;
  for (auto& [file, whole] : wait) {
    do_both += build_parts.count(file);
    build_parts.insert(file);
    const off_cpu_time* const off = f.run.side.off_cpu_of(file);
    if (off == nullptr) return {found.any};
    const auto blocked_ns = [off](const time_span& of) {
      return static_cast<double>(off->split(of.start_ns, of.end_ns).blocked_ns.value_or(0));
    };
    const intervals times = joined(std::move(whole));
    for (const time_span& of : times) found.waiting += blocked_ns(of) / f.run_ns;
    // In its own operations, it waits for something else.
    f.run.for_each_operation(file.value(), [&](const operation& op) {
      if (covered(times, op.start_ns, op.end_ns()) == 0) return;
      found.waiting -= blocked_ns({op.start_ns, op.end_ns()}) / f.run_ns;
    });
  }
  if (wait.size() < 2 || 2 * do_both < wait.size()) return {found.any};
  found.pool = build_parts.size();
  return found;
}

/// Returns the finding about a pool whose threads wait for parts that the same pool has to build.
std::optional<finding> pool_waits_for_itself(const run_facts& f, const joined_parts& parts,
                                             const std::string& stage) {
  const auto threads = static_cast<double>(parts.pool);
  if (parts.pool == 0 || parts.waiting < 0.3 * threads) return std::nullopt;
  return finding{
      "pool-waits-for-itself",
      {"the % threads that build batches also have to do %, for which they wait: % of "
       "them only wait on average. If all do, the program hangs.",
       {count_word{parts.pool}, name_word{stage}, count_word{std::round(10 * parts.waiting) / 10}}},
      {"Give % threads of its own, or do it in the thread that needs it.", {name_word{stage}}},
      f.waits.share(),
      verdict::preprocessing_bound,
      gives_reason | forbids_limit};
}

}  // namespace

std::optional<finding> thread_for_each_batch(const run_facts& f) {
  const run_batches& batches = f.run.batches;
  constexpr double as_long_as_start_ns = 1.5e5;
  if (f.started.count > 0 && f.started.cpu_ns < as_long_as_start_ns) {
    const auto threads = static_cast<double>(f.started.count);
    return finding{
        "many-short-threads",
        {"% were started, % for each batch, and each used only % of CPU time: to "
         "start and end a thread may take as long.",
         {name_word{f.started.shown},
          count_word{threads / static_cast<double>(batches.all().size())},
          time_word{f.started.cpu_ns}}},
        {"Let a few threads that stay do this work, or give each thread more of it."},
        f.waits.share(),
        f.waits.share() >= waits_much ? std::optional(verdict::preprocessing_bound) : std::nullopt,
        gives_reason};
  }
  const batch_threads& threads = f.for_each_batch;
  if (threads.threads == 0) return std::nullopt;
  if (threads.shares_logs) {
    // Many loaders start a task for each batch, so this is short and has no figures of the start.
    phrase because =
        threads.all_known
            ? phrase{"each of the % batches was built by a thread of its own",
                     {count_word{threads.batches}}}
            : phrase{"at least % threads built only one batch each", {count_word{threads.threads}}};
    return finding{"thread-for-each-batch",
                   std::move(because.add(".")),
                   {"If these prepare something for themselves (a decoder, a connection), let a "
                    "few threads build one batch after another, and keep it."},
                   0,
                   {},
                   explains_building};
  }
  return finding{"thread-for-each-batch",
                 {"each of the % batches was built by a thread of its own, in % on average. The "
                  "start of the thread, and what it prepares for itself (buffers, decoders, "
                  "connections), is paid anew for each batch.",
                  {count_word{threads.batches}, time_word{threads.mean_ns}}},
                 {"Let a few threads build one batch after another."}};
}

std::optional<finding> forked_batches(const run_facts& f) {
  std::vector<stage_span> spans = f.run.side.stages;
  if (f.waits.share() < waits_much || spans.empty()) return std::nullopt;
  std::sort(spans.begin(), spans.end(), [](const stage_span& a, const stage_span& b) {
    return std::tie(a.name, a.number, a.start_ns) < std::tie(b.name, b.number, b.start_ns);
  });
  // For each stage: the number of batches or items, and of those on which several threads worked at
  // once. `most`: on how many threads a stage works on the same batch or item at once, at most.
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> numbers;
  std::size_t most = 0;
  std::uint32_t most_in = 0;
  for (std::size_t first = 0; first < spans.size();) {
    std::map<optional_file, std::int64_t> open;  // when each thread ends its work on the number
    std::size_t at_once = 0;
    std::size_t i = first;
    for (; i < spans.size() && spans[i].name == spans[first].name &&
           spans[i].number == spans[first].number;
         ++i) {
      for (auto at = open.begin(); at != open.end();) {
        at = at->second <= spans[i].start_ns ? open.erase(at) : std::next(at);
      }
      std::int64_t& end_ns = open[spans[i].file];
      end_ns = std::max(end_ns, spans[i].end_ns());
      at_once = std::max(at_once, open.size());
    }
    auto& [all, forked] = numbers[spans[first].name];
    ++all;
    if (at_once > 1) ++forked;
    if (at_once > most) {
      most = at_once;
      most_in = spans[first].name;
    }
    first = i;
  }
  if (2 * numbers[most_in].second < numbers[most_in].first) return std::nullopt;
  constexpr double much_queued = 0.3;
  constexpr double most_of_them = 0.7;
  const bool queues = f.states().queue >= much_queued;
  phrase to_do;
  // Otherwise, other programs make the threads wait.
  const bool is_own = f.used_cpus >= most_of_them * f.cpus;
  if (queues && is_own && static_cast<double>(most) > f.cpus && f.cpus > 0) {
    to_do = {"They mostly wait for a CPU: use % threads for one batch, as many as there are CPUs.",
             {count_word{f.cpus}}};
  }
  phrase because{"up to % threads work on the same batch or item in % at once.",
                 {count_word{most}, name_word{shown_name(f.run.names.name(most_in))}}};
  constexpr double nearly_all = 0.93;
  const bool is_full = f.cpus > 0 && f.used_cpus - f.unmarked_cpus >= nearly_all * f.cpus;
  if (is_full) {
    because.add(" Work in operations uses % of %: more threads gain nothing.",
                {count_word{f.used_cpus - f.unmarked_cpus}, count_word{f.cpus, "CPU", "CPUs"}});
  }
  // The simulation knows parts for which the thread that builds the batch waits.
  const joined_parts parts = find_joined_parts(f, stage_id(most_in));
  const bool joined = parts.any;
  if (auto pool = pool_waits_for_itself(f, parts, shown_name(f.run.names.name(most_in)))) {
    return pool;
  }
  return finding{joined ? "joined-batches" : "forked-batches",
                 std::move(because),
                 std::move(to_do),
                 0,
                 {},
                 (queues || is_full ? forbids_threads : 0U) | (joined ? 0U : forbids_simulation)};
}

namespace {

/// How the threads of a stage divide single batches.
struct divided_batches {
  std::size_t batches = 0;  ///< with at least three parts on several threads
  std::size_t parts = 0;    ///< of these batches
  bool shared = false;      ///< whether a thread ever did several parts of one of them
  bool overlap = false;     ///< whether two parts of any batch were ever done at once
  double parts_ns = 0;      ///< the sum of the times of their parts
  double batches_ns = 0;    ///< the sum of the times from the first part to the last
};

/// Adds the parts of one batch.
void add_parts(std::vector<preprocessing_span> parts, divided_batches& to) {
  constexpr std::size_t fewest = 3;
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  std::set<optional_file> threads;
  double sum_ns = 0;
  std::int64_t end_ns = INT64_MIN;
  for (const preprocessing_span& part : parts) {
    to.overlap = to.overlap || part.start_ns < end_ns;
    end_ns = std::max(end_ns, part.end_ns());
    threads.insert(part.file);
    sum_ns += static_cast<double>(part.duration_ns);
  }
  if (parts.size() < fewest || threads.size() < 2) return;
  ++to.batches;
  to.parts += parts.size();
  to.shared = to.shared || threads.size() < parts.size();
  to.parts_ns += sum_ns;
  to.batches_ns += static_cast<double>(end_ns - parts.front().start_ns);
}

}  // namespace

std::optional<finding> parts_in_sequence(const run_facts& f) {
  constexpr std::size_t fewest = 5;
  constexpr double nearly_always = 0.8;
  constexpr double mostly = 0.5;
  if (f.d.pushed || f.waits.share() < mostly) return std::nullopt;
  std::map<stage_id, divided_batches> stages;
  for (const batch& b : f.run.batches.all()) {
    std::map<stage_id, std::vector<preprocessing_span>> parts;
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      const preprocessing_span& s = f.run.batches.preprocessing_spans()[n];
      parts[s.stage].push_back(s);
    }
    for (auto& [stage, all] : parts) add_parts(std::move(all), stages[stage]);
  }
  for (const auto& [stage, of] : stages) {
    if (stage == preprocess_stage || of.batches < fewest || of.overlap) continue;
    // Otherwise, threads may have nothing to do until the next part arrives. To start a thread for
    // each part takes time between them.
    if (of.parts_ns < (of.shared ? nearly_always : mostly) * of.batches_ns) continue;
    const double each = static_cast<double>(of.parts) / static_cast<double>(of.batches);
    return finding{
        "parts-in-sequence",
        {"of the % parts that % has for each batch, one begins when the one before has "
         "ended, although several threads do them.",
         {count_word{std::round(each)}, name_word{shown_name(f.run.names.name(stage.value()))}}},
        {"Start all parts of a batch before you wait for the first."},
        f.waits.share(),
        {},
        gives_reason};
  }
  return std::nullopt;
}

std::optional<finding> several_consumers(const run_facts& f) {
  const concurrent_consumers found = find_concurrent_consumers(f.run);
  if (!found.share_loader) return std::nullopt;
  return finding{"several-consumers",
                 {"The batches are received by % threads; times of waits and steps are sums "
                  "over them.",
                  {count_word{found.threads}}},
                 {},
                 0,
                 {},
                 forbids_simulation};
}

std::optional<finding> batches_pile_up(const run_facts& f) {
  const run_batches& batches = f.run.batches;
  if (f.d.pushed || f.d.makes_itself || batches.epochs().size() != 1) return std::nullopt;
  std::vector<std::int64_t> built;
  std::vector<std::int64_t> received;
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.made(b);
    if (made) built.push_back(made->end_ns);
    if (const auto left = batches.left_ns(b)) received.push_back(*left);
  }
  if (built.size() < 2 * fewest_batches) return std::nullopt;
  std::sort(built.begin(), built.end());
  std::sort(received.begin(), received.end());
  const auto ready_after = [&](std::size_t n) {
    return static_cast<double>(n) - static_cast<double>(until(received, built[n - 1]));
  };
  // A queue with a limit is full early, and then holds the same number until the last batch is
  // built.
  const double at_end = ready_after(built.size());
  const double at_half = ready_after(built.size() / 2);
  if (at_end < 0.5 * static_cast<double>(built.size()) || at_half > 0.75 * at_end) {
    return std::nullopt;
  }
  return finding{
      "batches-pile-up",
      {"the batches that were ready but not received grew in number, up to % of %: nothing "
       "limited how far the workers built ahead, and each of these batches takes memory.",
       {count_word{at_end}, count_word{built.size()}}},
      {"Let the workers wait while the queue holds a few batches for each of them."}};
}

}  // namespace lotus::tool
