#include "findings/facts/facts.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "findings/finding.hpp"
#include "model/path/span_segments.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/stage_threads.hpp"
#include "model/quantities.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Returns the number of the operation's name in the run.
std::optional<std::uint32_t> name_in(const run_data& run, std::string_view name) {
  const std::uint32_t found = run.names.find('S' + std::string(name));
  return found == raw_name_table::none ? std::nullopt : std::optional(found);
}

/// Whether calls that begin together, as at the start of a run, end one interval after another.
/// Calls that take the same time, but do not wait for each other, end together.
bool end_in_turn(std::vector<time_span> calls, double interval_ns) {
  std::sort(calls.begin(), calls.end(),
            [](const time_span& a, const time_span& b) { return a.start_ns < b.start_ns; });
  std::size_t in_turn = 0;
  std::size_t together = 0;
  for (std::size_t first = 0, i = 0; first < calls.size(); first = i) {
    std::vector<std::int64_t> ends;
    for (; i < calls.size() &&
           static_cast<double>(calls[i].start_ns - calls[first].start_ns) < 0.3 * interval_ns;
         ++i) {
      ends.push_back(calls[i].end_ns);
    }
    std::sort(ends.begin(), ends.end());
    for (std::size_t n = 1; n < ends.size(); ++n) {
      const auto gap_ns = static_cast<double>(ends[n] - ends[n - 1]);
      if (gap_ns > 0.6 * interval_ns && gap_ns < 1.5 * interval_ns) ++in_turn;
      if (gap_ns < 0.3 * interval_ns) ++together;
    }
  }
  return in_turn > 0 && together * 4 <= in_turn;
}

/// By how much a call begins and ends late.
struct lateness {
  double begin_ns = 0;
  double end_ns = 0;
};

/// Returns how much later calls end that begin later, relative to how much later they begin: about
/// 1 if each call takes its own time; about 0 if something else decides when they end. Compares
/// medians, because a pause of the machine delays some of the calls by much. Returns nullopt if no
/// call begins later than others.
std::optional<double> later_ends(std::vector<lateness> calls) {
  std::sort(calls.begin(), calls.end(),
            [](const lateness& a, const lateness& b) { return a.begin_ns < b.begin_ns; });
  const auto third = static_cast<std::ptrdiff_t>(calls.size() / 3);
  const auto later_by = [&](double lateness::*of) {
    const auto usual = [of](auto from, auto to) {
      std::vector<double> values;
      for (; from != to; ++from) values.push_back((*from).*of);
      return quantile(std::move(values), 0.5);
    };
    return usual(calls.end() - third, calls.end()) - usual(calls.begin(), calls.begin() + third);
  };
  const double begin_ns = later_by(&lateness::begin_ns);
  if (begin_ns <= 0) return std::nullopt;
  return later_by(&lateness::end_ns) / begin_ns;
}

/// Returns later_ends() of calls that are nearly always open when another one ends, compared with
/// the ends of the calls before and after them. Returns nullopt if the calls do not show it.
/// @param by_end  the calls, sorted by their ends.
std::optional<double> later_ends_in_turn(const std::vector<time_span>& by_end) {
  constexpr std::size_t fewest = 60;
  std::vector<lateness> late;
  for (std::size_t i = 1; i + 1 < by_end.size(); ++i) {
    const std::int64_t before_ns = by_end[i - 1].end_ns;
    if (by_end[i].start_ns >= before_ns) continue;
    const double usual_ns = 0.5 * static_cast<double>(by_end[i + 1].end_ns - before_ns);
    late.push_back({static_cast<double>(by_end[i].start_ns - before_ns) - usual_ns,
                    static_cast<double>(by_end[i].end_ns - before_ns) - usual_ns});
  }
  if (late.size() < fewest || 5 * late.size() < 4 * by_end.size()) return std::nullopt;
  return later_ends(std::move(late));
}

/// Returns the calls of an operation; those of "" are the work on whole batches.
std::vector<time_span> calls_of(const run_data& run, std::string_view name) {
  std::vector<time_span> calls;
  if (name.empty()) {
    for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
      if (s.stage == preprocess_stage) calls.push_back({s.start_ns, s.end_ns()});
    }
    return calls;
  }
  const std::optional<std::uint32_t> wanted = name_in(run, name);
  for (std::size_t file = 0; wanted && file < run.files->files.size(); ++file) {
    run.for_each_operation(file, [&](const operation& op) {
      if (op.name == *wanted) calls.push_back({op.start_ns, op.end_ns()});
    });
  }
  return calls;
}

/// Returns the time from start_ns to end_ns without waits for a CPU, if these are known.
double without_queue(const off_cpu_time* off, std::int64_t start_ns, std::int64_t end_ns) {
  const auto all_ns = static_cast<double>(end_ns - start_ns);
  if (off == nullptr) return all_ns;
  return all_ns - static_cast<double>(off->split(start_ns, end_ns).run_queue_ns.value_or(0));
}

/// Stands for the time of a batch outside of all operations.
constexpr std::uint32_t outside_operations = UINT32_MAX;

/// Returns for each of the operations, by name, its time in each batch, in the order of batches.
std::map<std::uint32_t, std::vector<double>> times_by_batch(
    const run_data& run, const std::vector<std::uint32_t>& names) {
  // A long run is sampled evenly: a change shows in a part of its batches, too.
  constexpr std::size_t most = 4000;
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  // The first span of the same batch, or the span of an item itself.
  std::vector<span_number> first(spans.size());
  std::size_t elements = 0;
  for (span_number n = 0; n < spans.size(); ++n) {
    first[n] = spans[n].batch ? run.batches.at(*spans[n].batch).first_span : n;
    if (first[n] == n) ++elements;
  }
  const std::size_t apart = elements / most + 1;
  std::vector<bool> wanted(spans.size());
  std::size_t element = 0;
  for (span_number n = 0; n < spans.size(); ++n) {
    wanted[n] = first[n] == n ? element++ % apart == 0 : wanted[first[n]];
  }
  std::map<std::uint32_t, std::vector<double>> all;
  std::map<std::uint32_t, double> queued;
  for (const std::uint32_t name : names) all[name].assign(spans.size(), 0);
  std::mutex mutex;
  for_each_span(run, wanted, [&](span_number n, const std::vector<span_segment>& segments) {
    const off_cpu_time* const off = run.side.off_cpu_of(spans[n].file);
    for (const span_segment& s : segments) {
      const std::uint32_t name = s.name.value_or(outside_operations);
      const auto at = all.find(name);
      if (at == all.end()) continue;
      const double ns = without_queue(off, s.start_ns, s.end_ns);
      const std::lock_guard<std::mutex> guard(mutex);
      at->second[first[n]] += ns;
      queued[name] += static_cast<double>(s.end_ns - s.start_ns) - ns;
    }
  });
  for (auto& [name, times] : all) {
    times.erase(std::remove(times.begin(), times.end(), 0.0), times.end());
    // What is left of times that are mostly waits for a CPU says little.
    if (queued[name] > std::accumulate(times.begin(), times.end(), 0.0)) times.clear();
  }
  return all;
}

std::vector<time_change> changes_of(const run_data& run, const critical_path& path) {
  constexpr double much = 0.1;
  std::vector<time_change> found;
  std::vector<std::uint32_t> names;
  for (const path_share& share : path.shares) {
    if (static_cast<double>(share.ns) < much * static_cast<double>(path.run_ns)) break;
    if (share.kind == path_kind::unrecorded) names.push_back(outside_operations);
    if (!is_work(share)) continue;
    const std::optional<std::uint32_t> name = name_in(run, share.name);
    if (name) names.push_back(*name);
  }
  const std::map<std::uint32_t, std::vector<double>> times = times_by_batch(run, names);
  for (const path_share& share : path.shares) {
    if (static_cast<double>(share.ns) < much * static_cast<double>(path.run_ns)) break;
    std::optional<time_change> change;
    if (is_work(share)) {
      const std::optional<std::uint32_t> name = name_in(run, share.name);
      if (name) change = find_change(times.at(*name));
    } else if (share.kind == path_kind::unrecorded) {
      const std::vector<double>& outside = times.at(outside_operations);
      // Most of it may be between batches.
      const double sum_ns = std::accumulate(outside.begin(), outside.end(), 0.0);
      if (sum_ns >= much * static_cast<double>(path.run_ns)) change = find_change(outside);
      // When all workers begin at once, their first batches take longer.
      const bool is_start =
          change && change->is == time_change::shape::step && change->after_ns < change->before_ns;
      if (is_start) change.reset();
    } else if (share.kind == path_kind::step) {
      std::vector<double> steps;
      for (const batch& b : run.batches.all()) {
        const std::optional<time_span> step = run.batches.step(b.consumed);
        const batch_record* const of = run.batches.record(b.consumed);
        if (!step || of == nullptr) continue;
        steps.push_back(
            without_queue(run.side.off_cpu_of(of->file, true), step->start_ns, step->end_ns));
      }
      change = find_change(steps);
    }
    if (!change) continue;
    const bool lasts = change->is != time_change::shape::now_again;
    change->by_calls = is_work(share) && lasts && run.operations <= most_searched_operations &&
                       has_equal_calls(calls_of(run, share.name), *change);
    change->of = is_work(share) ? share.name : std::string();
    change->is_outside = share.kind == path_kind::unrecorded;
    found.push_back(*change);
  }
  return found;
}

void add_states(const path_share& share, double run_ns, path_states& to) {
  to.all += static_cast<double>(share.ns) / run_ns;
  if (!share.cpu) return;
  to.cpu += static_cast<double>(share.cpu->cpu_ns) / run_ns;
  to.queue += static_cast<double>(share.cpu->run_queue_ns.value_or(0)) / run_ns;
  to.blocked += static_cast<double>(share.cpu->blocked_ns.value_or(0)) / run_ns;
}

template <class Has>
path_states sum_states(const critical_path& path, Has&& has) {
  path_states sum;
  if (path.run_ns <= 0) return sum;
  for (const path_share& share : path.shares) {
    if (has(share)) add_states(share, static_cast<double>(path.run_ns), sum);
  }
  return sum;
}

/// Returns whether many calls wait while others of the same thread follow each other, for times
/// that differ. Calls of which every n-th takes long, on a few threads, look alike, but the long
/// ones take equally long.
bool wait_in_succession(const std::vector<time_span>& calls, const std::vector<double>& durations) {
  constexpr double fewest_at_once = 3.5;
  constexpr double differ = 1.25;
  const double all_ns = std::accumulate(durations.begin(), durations.end(), 0.0);
  const auto run_ns = static_cast<double>(calls.back().end_ns - calls.front().end_ns);
  if (all_ns < fewest_at_once * run_ns) return false;
  const double median = quantile(durations, 0.5);
  std::vector<double> longer;
  for (const double ns : durations) {
    if (ns >= 2 * median) longer.push_back(ns);
  }
  if (longer.size() < 10) return false;
  const double middle = quantile(longer, 0.5);
  return quantile(longer, 0.9) >= differ * middle && middle >= differ * quantile(longer, 0.1);
}

/// Returns whether calls that take much longer than most end one interval after the call before, as
/// if something served them then. Long calls that wait for nobody end at any moment.
/// @param by_end  the calls, sorted by their ends.
bool long_calls_end_in_turn(const std::vector<time_span>& by_end, double median_ns) {
  constexpr std::size_t fewest = 10;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < by_end.size(); ++i) {
    gaps.push_back(static_cast<double>(by_end[i].end_ns - by_end[i - 1].end_ns));
  }
  if (gaps.size() < fewest) return false;
  const double usual_ns = quantile(gaps, 0.5);
  std::size_t longer = 0;
  std::size_t in_turn = 0;
  for (std::size_t i = 1; i < by_end.size(); ++i) {
    if (static_cast<double>(by_end[i].duration_ns()) < 2 * median_ns) continue;
    ++longer;
    if (std::abs(gaps[i - 1] - usual_ns) < 0.2 * usual_ns) ++in_turn;
  }
  return longer >= fewest && 5 * in_turn >= 4 * longer;
}

}  // namespace

path_states states_of(const critical_path& path) {
  return sum_states(path, [](const path_share&) { return true; });
}

path_states states_of(const critical_path& path, path_kind kind) {
  return sum_states(path, [kind](const path_share& share) { return share.kind == kind; });
}

path_states states_of(const critical_path& path, std::string_view name) {
  return sum_states(
      path, [name](const path_share& share) { return is_work(share) && share.name == name; });
}

double blocked_share(const cpu_split& of) {
  const auto blocked_ns = static_cast<double>(of.blocked_ns.value_or(0));
  const double all_ns = static_cast<double>(of.cpu_ns) + blocked_ns;
  return all_ns > 0 ? blocked_ns / all_ns : 0;
}

double work_on_batches(const critical_path& path) {
  constexpr double hardly_marked = 0.3;
  const double marked =
      states_of(path, path_kind::operation).all + states_of(path, path_kind::stage).all;
  if (path.run_ns <= 0 || marked >= hardly_marked) return marked;
  double between_ns = 0;  // between two batches of a thread
  for (const path_segment& s : path.segments) {
    if (s.kind == path_kind::unrecorded) between_ns += static_cast<double>(s.end_ns - s.start_ns);
  }
  const double within =
      states_of(path, path_kind::unrecorded).all - between_ns / static_cast<double>(path.run_ns);
  return marked + std::max(0.0, within);
}

const path_share* run_facts::largest_work() const {
  const auto at = std::find_if(path.shares.begin(), path.shares.end(), is_work);
  return at == path.shares.end() ? nullptr : &*at;
}

const blocked_on* lock_of(const run_blocked_on& joined, std::string_view name) {
  constexpr std::uint64_t fewest = 5;
  const blocked_list* const list = joined.of('S' + std::string(name));
  if (list == nullptr || list->by.empty()) return nullptr;
  const auto lock = std::find_if(list->by.begin(), list->by.end(), [](const blocked_on& one) {
    return one.reason == wait_reason::lock;
  });
  return lock != list->by.end() && lock->share >= 0.5 && lock->samples >= fewest ? &*lock : nullptr;
}

std::optional<time_change> change_of(const run_data& run, std::string_view name) {
  const std::optional<std::uint32_t> known = name_in(run, name);
  return known ? find_change(times_by_batch(run, {*known}).at(*known)) : std::nullopt;
}

run_facts facts_of(const run_data& run, const diagnosis& d, const critical_path& path) {
  run_facts f{run, d, path};
  f.waits = d.waits;
  f.changes = changes_of(run, path);
  f.run_ns = d.run_ns;
  f.cpus = d.cpus.value_or(0);
  if (d.cpu_ns && d.run_ns > 0) {
    f.used_cpus = *d.cpu_ns / d.run_ns;
    // The consumer's waits are marked as well, although they are no work.
    const std::optional<cpu_split> waits = cpu_of(run, quantity::wait, 0);
    const bool is_measured = waits && waits->run_queue_ns.value_or(0) > 0;
    const double waits_ns = is_measured ? static_cast<double>(waits->cpu_ns) : 0;
    f.unmarked_share = std::max(0.0, d.unrecorded_cpu - waits_ns / std::max(1.0, *d.cpu_ns));
    f.unmarked_cpus = f.unmarked_share * f.used_cpus;
  }
  f.others_cpus = d.others_cpus;
  add_outside_work(run, f);
  constexpr double worth_naming = 0.1;
  if (f.unmarked_share >= worth_naming) f.unmarked_in = busiest_unmarked(run, f);
  f.started = started_threads_of(run, f);
  f.for_each_batch = find_batch_threads(run);
  f.idle = find_idle_workers(run);
  if (f.waits.share() >= waits_much) f.buffer = find_item_buffer(run);
  if (f.waits.share() >= waits_much && !d.makes_itself) {
    f.in_late_waits = largest_in_late_waits(run);
    if (f.in_late_waits && f.in_late_waits->self_ns < 0.5 * f.waits.hand_over_ns) {
      f.in_late_waits.reset();
    }
  }
  if (f.waits.idle_ns() >= 0.05 * f.waits.all_ns) f.asleep = asleep_between_batches(f);
  return f;
}

bool could_do_more(const run_facts& f, const std::optional<double>& per_s, double many_more) {
  return per_s && f.d.achieved && *per_s > many_more * *f.d.achieved;
}

bool could_all_do_more(const run_facts& f) {
  constexpr double clearly_more = 1.3;
  // Capacities of threads that work on the same batch are those of more threads than there are.
  return !forked_batches(f) && could_do_more(f, f.d.preprocessing_capacity, clearly_more) &&
         could_do_more(f, f.d.consumer_capacity, clearly_more);
}

std::size_t most_at_once(const run_data& run, std::string_view name) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const time_span& call : calls_of(run, name)) {
    spans.emplace_back(call.start_ns, call.end_ns);
  }
  return max_at_once(spans);
}

double mean_open(const run_data& run, std::string_view name) {
  intervals calls = calls_of(run, name);
  double all_ns = 0;
  for (const time_span& call : calls) all_ns += static_cast<double>(call.duration_ns());
  double any_ns = 0;
  for (const time_span& of : joined(std::move(calls))) {
    any_ns += static_cast<double>(of.duration_ns());
  }
  return any_ns > 0 ? all_ns / any_ns : 0;
}

std::optional<double> steady_ends_per_s(const run_data& run, std::string_view operation) {
  constexpr std::size_t fewest = 30;
  std::vector<time_span> calls = calls_of(run, operation);
  std::sort(calls.begin(), calls.end(),
            [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
  std::vector<std::int64_t> first_start_ns(calls.size());  // of a call and those that end after it
  std::size_t together = 0;  // number of calls that began before the one before ended
  std::vector<double> durations;
  for (std::size_t i = calls.size(); i-- > 0;) {
    first_start_ns[i] = calls[i].start_ns;
    if (i + 1 < calls.size())
      first_start_ns[i] = std::min(first_start_ns[i], first_start_ns[i + 1]);
    if (i > 0 && calls[i].start_ns < calls[i - 1].end_ns) ++together;
    durations.push_back(static_cast<double>(calls[i].duration_ns()));
  }
  // One thread may be served several times in succession, while the calls of others wait.
  const bool in_succession = 2 * together < calls.size();
  const bool long_in_turn =
      calls.size() >= fewest && long_calls_end_in_turn(calls, quantile(durations, 0.5));
  if (in_succession && !long_in_turn && !wait_in_succession(calls, durations)) return std::nullopt;
  std::vector<double> between;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const std::int64_t start_ns = in_succession ? first_start_ns[i] : calls[i].start_ns;
    if (start_ns >= calls[i - 1].end_ns) continue;
    between.push_back(static_cast<double>(calls[i].end_ns - calls[i - 1].end_ns));
  }
  if (between.size() < fewest || 2 * between.size() < calls.size()) return std::nullopt;
  const double usual_ns = quantile(between, 0.5);
  if (usual_ns <= 0) return std::nullopt;  // they end together
  // Calls that are no longer than an interval wait for no other one: something else lets threads
  // that call in turn come at this rate.
  const bool is_short = quantile(durations, 0.5) < 1.3 * usual_ns;
  if (!in_succession && is_short && !long_in_turn) return std::nullopt;
  // What serves calls more than twice as fast as they come limits nothing.
  const auto all_ns = static_cast<double>(calls.back().end_ns - calls.front().end_ns);
  if (all_ns > 2 * usual_ns * static_cast<double>(calls.size())) return std::nullopt;
  const auto within = [&](double share, double least, double most) {
    return quantile(between, share) >= least * usual_ns &&
           quantile(between, 1 - share) <= most * usual_ns;
  };
  const std::optional<double> later = later_ends_in_turn(calls);
  const bool steady = within(0.1, 0.5, 1.5);
  // On a busy machine, what serves the calls is often late, but never early.
  const bool often_late = later && *later < 0.3 && within(0.2, 0.75, 1.6);
  if (!steady && !often_late) return std::nullopt;
  // Independent threads that happen to work in turn.
  if (later && *later > 0.7) return std::nullopt;
  const bool some_short = quantile(durations, 0.05) <= 1.3 * usual_ns;
  const bool is_served = (later && *later < 0.5) || some_short;
  if (!is_served && !end_in_turn(std::move(calls), usual_ns)) return std::nullopt;
  const double sum_ns = std::accumulate(between.begin(), between.end(), 0.0);
  return 1e9 * static_cast<double>(between.size()) / sum_ns;
}

std::optional<call_bursts> bursts_of(const run_data& run, std::string_view operation) {
  constexpr std::size_t fewest = 5;
  std::vector<time_span> calls = calls_of(run, operation);
  if (calls.size() < 4 * fewest) return std::nullopt;
  std::sort(calls.begin(), calls.end(),
            [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
  std::int64_t longest_ns = 0;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    longest_ns = std::max(longest_ns, calls[i].end_ns - calls[i - 1].end_ns);
  }
  std::vector<double> sizes;
  std::vector<double> apart;
  std::vector<lateness> waited;  // of the calls that waited for a burst, since the burst before
  std::size_t overtaken = 0;
  std::size_t begin = 0;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const std::int64_t gap_ns = calls[i].end_ns - calls[i - 1].end_ns;
    if (2 * gap_ns < longest_ns) continue;
    // A call must have waited meanwhile; otherwise nothing was to be done.
    if (5 * (calls[i].start_ns - calls[i - 1].end_ns) > gap_ns) return std::nullopt;
    // Nothing overtakes a call that waits for a limit; a call that has more to do is overtaken.
    const bool is_overtaken =
        std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(begin),
                    calls.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const time_span& c) { return c.start_ns > calls[i].start_ns; });
    overtaken += is_overtaken ? 1 : 0;
    if (begin > 0) {
      sizes.push_back(static_cast<double>(i - begin));
      apart.push_back(static_cast<double>(calls[i].end_ns - calls[begin].end_ns));
      for (std::size_t c = i; c < calls.size() && calls[c].end_ns - calls[i].end_ns < gap_ns; ++c) {
        if (5 * (calls[c].start_ns - calls[i - 1].end_ns) > gap_ns) continue;
        waited.push_back({static_cast<double>(calls[c].start_ns - calls[begin].end_ns),
                          static_cast<double>(calls[c].end_ns - calls[begin].end_ns)});
      }
    }
    begin = i;
  }
  if (sizes.size() < fewest || 5 * overtaken > sizes.size()) return std::nullopt;
  // Threads in step that make long and short calls in turn end them in bursts, too.
  const std::optional<double> later =
      waited.size() >= fewest ? later_ends(std::move(waited)) : std::nullopt;
  if (later && *later > 0.6) return std::nullopt;
  const double size = quantile(sizes, 0.5);
  const double apart_ns = quantile(apart, 0.5);
  const auto same = std::count(sizes.begin(), sizes.end(), size);
  const bool regular =
      quantile(apart, 0.1) > 0.8 * apart_ns && quantile(apart, 0.9) < 1.2 * apart_ns;
  // Threads that work in step end as many calls together as there are threads.
  const bool more = size > static_cast<double>(most_at_once(run, operation));
  if (!more || !regular || 10 * same < 8 * static_cast<std::ptrdiff_t>(sizes.size())) {
    return std::nullopt;
  }
  return call_bursts{size, apart_ns};
}

}  // namespace lotus::tool
