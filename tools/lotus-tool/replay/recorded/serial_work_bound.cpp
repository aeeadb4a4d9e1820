#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "log/shown_name.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"
#include "replay/recorded/length_bound.hpp"

namespace lotus::tool {
namespace {

/// Calls of one operation, or of all operations of one thread.
struct calls_in_turn {
  intervals spans;  ///< of all threads, disjoint in each of them
  std::map<std::uint32_t, double> self_ns;
  std::map<std::uint32_t, double> all_ns;
};

double sum_of(const intervals& spans) {
  double sum_ns = 0;
  for (const time_span& s : spans) sum_ns += static_cast<double>(s.duration_ns());
  return sum_ns;
}

/// Returns the numbers of the threads that build or receive batches.
std::set<std::uint64_t> threads_of_batches(const run_data& run) {
  std::set<std::uint64_t> found;
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) found.insert(run.log(*s.file).number);
  }
  for (const batch_record& r : run.batches.records()) found.insert(run.log(r.file).number);
  return found;
}

/// Returns the time from the begin of the run until the last batch is begun.
time_span time_of_batches(const run_data& run) {
  time_span all{run.batches.start_ns(), run.batches.start_ns()};
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.batch) all.end_ns = std::max(all.end_ns, s.start_ns);
  }
  all.end_ns = std::min(all.end_ns, all.start_ns + run.batches.length_ns());
  return all;
}

}  // namespace

double length_bound::least_length(const std::map<std::string, double>& faster, double gain) const {
  double least = share;
  for (const auto& [operation, factor] : faster) {
    const auto self = self_shares.find(operation);
    if (self != self_shares.end()) least -= self->second * (1 - 1 / factor);
  }
  return std::max(0.0, least) + around_share / std::max(1.0, gain);
}

std::vector<length_bound> bounds_of_serial_work(const run_data& run) {
  const std::set<std::uint64_t> others = threads_of_batches(run);
  const time_span within = time_of_batches(run);
  std::map<std::uint32_t, calls_in_turn> by_name;
  std::vector<calls_in_turn> by_thread;
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    if (!run.has_operations(file) || others.count(run.files->files[file].number) != 0) continue;
    calls_in_turn& own = by_thread.emplace_back();
    std::map<std::uint32_t, intervals> spans;
    nesting_times nesting;
    run.for_each_operation(file, [&](const operation& op) {
      const std::int64_t self_ns = nesting.self_ns(op.start_ns, op.duration_ns);
      const time_span span{std::max(op.start_ns, within.start_ns), op.end_ns()};
      if (span.end_ns <= span.start_ns || span.start_ns >= within.end_ns) return;
      spans[op.name].push_back(span);
      own.spans.push_back(span);
      own.self_ns[op.name] += static_cast<double>(self_ns);
      own.all_ns[op.name] += static_cast<double>(op.duration_ns);
    });
    own.spans = joined(std::move(own.spans));
    for (auto& [name, of] : spans) {
      calls_in_turn& all = by_name[name];
      const intervals once = joined(std::move(of));
      all.spans.insert(all.spans.end(), once.begin(), once.end());
      all.all_ns[name] += own.all_ns[name];
      for (const auto& [inside, ns] : own.self_ns) all.self_ns[inside] += ns;
    }
  }
  std::vector<length_bound> found;
  const auto run_ns = static_cast<double>(run.batches.length_ns());
  const auto add = [&](const calls_in_turn& calls) {
    constexpr double hardly = 0.02;
    constexpr std::size_t fewest = 3;
    const double sum_ns = sum_of(calls.spans);
    const intervals once = joined(calls.spans);
    const double ns = sum_of(once);
    if (once.size() < fewest || ns < length_bound::worth_naming * run_ns ||
        sum_ns > (1 + hardly) * ns) {
      return;
    }
    const auto most =
        std::max_element(calls.all_ns.begin(), calls.all_ns.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    length_bound& of = found.emplace_back();
    of.name = shown_name(run.names.name(most->first));
    of.share = ns / run_ns;
    const auto from_first_ns = static_cast<double>(once.back().end_ns - once.front().start_ns);
    of.around_share = std::max(0.0, 1 - from_first_ns / run_ns);
    for (const auto& [name, self_ns] : calls.self_ns) {
      of.self_shares[shown_name(run.names.name(name))] = self_ns / run_ns;
    }
  };
  for (const auto& [name, calls] : by_name) add(calls);
  for (const calls_in_turn& calls : by_thread) add(calls);
  return found;
}

}  // namespace lotus::tool
