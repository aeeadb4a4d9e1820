#include "map/join.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "map/child_process.hpp"
#include "map/event_names.hpp"
#include "map/located_samples.hpp"
#include "map/samples.hpp"
#include "names.hpp"
#include "nesting_order.hpp"
#include "run_model.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

void count(const located_sample& s, const located_samples& all, std::string_view counted_event,
           joined_op& to) {
  const std::string& event = all.events[s.event];
  to.counters[event] += s.value;
  if (event != counted_event) return;
  const joined_samples one{1, s.value};
  to.total += one;
  const auto& [key, inlined] = all.functions[s.function];
  joined_function& function = to.functions[key];
  function.total += one;
  if (!inlined.empty()) function.inlined[inlined] += one;
}

/// Goes through one thread's operations and samples in order of time.
/// @param ops  by start; of two that begin together the longer first.
template <class OnSample>
void sweep(const std::vector<operation>& ops, const std::vector<const located_sample*>& samples,
           OnSample&& on_sample) {
  std::vector<const operation*> open;
  std::size_t next = 0;
  const auto ended = [](const operation& op, std::int64_t now_ns) {
    return op.start_ns + op.duration_ns <= now_ns;
  };
  for (const located_sample* s : samples) {
    while (next < ops.size() && ops[next].start_ns <= s->time_ns) {
      while (!open.empty() && ended(*open.back(), ops[next].start_ns)) open.pop_back();
      open.push_back(&ops[next++]);
    }
    while (!open.empty() && ended(*open.back(), s->time_ns)) open.pop_back();
    on_sample(*s, open.empty() ? nullptr : open.back());
  }
}

}  // namespace

located_samples samples_beside(const std::string& dir, diagnostics& said) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (is_samples_name(entry.path().filename().string())) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  located_samples found;
  for (const std::string& file : files) add_samples(file, found, said);
  return found;
}

joined_samples& joined_samples::operator+=(const joined_samples& more) noexcept {
  samples += more.samples;
  value += more.value;
  return *this;
}

double joined_samples::share_of(const joined_samples& whole) const noexcept {
  return whole.value == 0 ? 0 : static_cast<double>(value) / static_cast<double>(whole.value);
}

joined_samples joined_run::total() const noexcept {
  joined_samples sum = outside.total;
  for (const auto& [name, op] : ops) sum += op.total;
  return sum;
}

void join(const run_files& run, const located_samples& samples, joined_run& to, diagnostics& said) {
  if (to.event.empty() && !samples.events.empty()) {
    to.event = samples.events[most_like_time(samples.events)];
  }
  name_table names;
  std::unordered_map<std::uint64_t, std::vector<operation>> by_thread;
  scan_run(run, said, [&](std::size_t file, const log_line& line) {
    by_thread[run.files[file].number].push_back(
        {line.start_ns, line.duration_ns, names.id(line.name)});
  });
  std::unordered_map<std::uint64_t, std::vector<const located_sample*>> samples_by_thread;
  for (const located_sample& s : samples.samples) samples_by_thread[s.tid].push_back(&s);
  for (auto& [tid, own] : samples_by_thread) {
    std::stable_sort(own.begin(), own.end(),
                     [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
    std::vector<operation>& ops = by_thread[tid];
    std::stable_sort(ops.begin(), ops.end(), [](const operation& a, const operation& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    sweep(ops, own, [&](const located_sample& s, const operation* op) {
      count(s, samples, to.event,
            op == nullptr ? to.outside : to.ops[names.name(op->name).substr(1)]);
    });
  }
}

namespace {

joined_run join_all(const map_join_options& options, diagnostics& said) {
  joined_run result;
  std::vector<run_files> runs = find_runs(options.dir, options.prefix, said);
  if (!options.samples.empty()) {
    // Thread ids tell which run of several a sample is of; without a choice it would count twice.
    if (runs.size() > 1) {
      throw usage_error(options.dir + ": holds several runs; give the folder of one");
    }
  }
  bool any = false;
  for (const run_files& run : runs) {
    located_samples samples;
    if (options.samples.empty()) samples = samples_beside(run.dir, said);
    for (const std::string& file : options.samples) add_samples(file, samples, said);
    if (samples.samples.empty()) continue;
    any = true;
    join(run, samples, result, said);
  }
  if (!any) {
    throw input_error(options.dir +
                      ": no samples beside the logs; make them with 'lotus-tool map record', or "
                      "give perf's with --samples");
  }
  return result;
}

}  // namespace

int run_map_join(const map_join_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  try {
    print_joined(join_all(options, said), options.print, out);
  } catch (const interrupted& stop) {
    end_by_signal(stop.signal);
  }
  return exit_fine;
}

}  // namespace lotus::tool
