#include "model/pipeline/side_reading.hpp"

#include <algorithm>
#include <map>

#include "log/log_reader.hpp"
#include "log/side_line.hpp"
#include "model/pipeline/side_figures.hpp"

namespace lotus::tool {
namespace {

/// Returns the worker log of the thread whose logs have the number `number`, because it contains
/// the thread's operations. If the thread has no worker log, returns another log of the thread.
optional_file log_of(const run_files& run, std::uint64_t number) {
  optional_file found;
  for (std::uint32_t f = 0; f < run.files.size(); ++f) {
    if (run.files[f].number != number) continue;
    if (!found || run.files[f].role == file_role::worker) found = file_id(f);
  }
  return found;
}

class side_reader {
 public:
  side_reader(const run_files& run, const run_processes& processes, const time_window& read,
              diagnostic_log& diagnostics)
      : run_(run), processes_(processes), read_(read), diagnostics_(diagnostics) {}

  read_side read() && {
    for (const log_file& file : run_.side_files) read_own(file);
    for (const log_file& file : run_.elsewhere) {
      read_lines<side_line>(file, nullptr, [&](const side_line& line) {
        if (line.kind == event_kind::off_cpu) add_off_cpu(file, line);
        if (line.kind == event_kind::aggregated) add_aggregated(file, line);
      });
    }
    place_off_cpu();
    const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
    const auto by_time = [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; };
    side_data& data = found_.data;
    std::stable_sort(data.stages.begin(), data.stages.end(), by_start);
    std::stable_sort(data.segments.begin(), data.segments.end(), by_start);
    std::stable_sort(data.counters.begin(), data.counters.end(), by_time);
    std::stable_sort(data.inclusions.begin(), data.inclusions.end(), by_time);
    std::stable_sort(data.ranges.begin(), data.ranges.end(), by_start);
    std::stable_sort(data.arguments.begin(), data.arguments.end(), by_start);
    return std::move(found_);
  }

 private:
  void read_own(const log_file& file) {
    const optional_file log = log_of(run_, file.number);
    const consumer_id consumer(log ? run_.files[log->value()].consumer : 0);
    const process_info* const process = processes_.process_of(file.number);
    const std::uint64_t pid = process == nullptr ? 0 : process->pid;
    side_data& data = found_.data;
    // Numbers of batches and items that are too large for the line of a stage's span. The log has
    // such a number in a line of its own; the key is the name and start of the span to which it
    // belongs.
    std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> numbers;
    read_lines<side_line>(file, &diagnostics_, [&](const side_line& line) {
      if (line.kind == event_kind::off_cpu) return add_off_cpu(file, line);
      if (line.kind == event_kind::aggregated) return add_aggregated(file, line);
      if (!read_.has(line.time_ns, line.end_ns())) {
        const time_span span{line.time_ns, line.end_ns()};
        const bool is_cut = crosses(span, read_.whole_from_ns) || crosses(span, read_.whole_to_ns);
        if (line.kind == event_kind::stage && log && is_cut) {
          found_.left_out.emplace_back(*log, span);
        }
        return;
      }
      found_.first_ns = std::min(found_.first_ns, line.time_ns);
      found_.last_ns = std::max(found_.last_ns, line.end_ns());
      switch (line.kind) {
        case event_kind::stage_number:
          numbers[{found_.names.id(line.name), line.time_ns}] = line.number();
          break;
        case event_kind::stage: {
          const std::uint32_t name = found_.names.id(line.name);
          std::int64_t number = line.number();
          if (number < 0) {
            const auto whole = numbers.find({name, line.time_ns});
            if (whole == numbers.end()) break;  // without a number, the record is an operation
            number = whole->second;
            numbers.erase(whole);
          }
          data.stages.push_back({line.time_ns, line.duration_ns(), number, name, log, consumer});
          break;
        }
        case event_kind::async_segment:
          data.segments.push_back({line.time_ns, line.duration_ns(), line.number(), pid,
                                   found_.names.id(line.name), log});
          break;
        case event_kind::counter:
          data.counters.push_back(
              {line.time_ns, line.value(), pid, found_.names.id(line.name), log});
          break;
        case event_kind::batch_takes:
          data.inclusions.push_back({line.time_ns, line.batch(), line.item(), consumer});
          break;
        case event_kind::arguments:
          data.arguments.push_back({line.time_ns, found_.names.id(line.name), log});
          break;
        case event_kind::range:
          data.ranges.push_back(
              {line.time_ns, line.duration_ns(), line.number(), found_.names.id(line.name), log});
          break;
        case event_kind::allocated:
        case event_kind::freed:
        case event_kind::retained:
        case event_kind::heap_peak:
          data.heap.operations[found_.names.id(line.name)].add(line);
          break;
        case event_kind::heap:
          data.heap.processes[pid].take_heap(found_.names.id(line.name), line.bytes(),
                                             line.count());
          // Also store the heap use as a counter, so that outputs show it over time like the
          // counters that the program records itself.
          data.counters.push_back({line.time_ns, static_cast<std::int64_t>(line.bytes()), pid,
                                   found_.names.id(heap_counter), log});
          break;
        case event_kind::held:
          data.heap.processes[pid].add_held(line.time_ns, found_.names.id(line.name), line.bytes(),
                                            line.count());
          break;
        case event_kind::heap_total:
          data.heap.processes[pid].take_total(line.time_ns, line.bytes(), line.count());
          break;
        // These kinds were handled above.
        case event_kind::off_cpu:
        case event_kind::aggregated:
        // These kinds never occur in side logs.
        case event_kind::none:
        case event_kind::operation:
        case event_kind::batch_preprocessed:
        case event_kind::batch_wait:
        case event_kind::batch_arrived:
        case event_kind::batch_consumed:
        case event_kind::batch_queued:
        case event_kind::loader:
          break;
      }
    });
  }

  void add_off_cpu(const log_file& file, const side_line& line) {
    const std::int64_t off_ns = line.off_cpu_ns();
    if (off_ns == 0) return;
    off_cpu_[file.number].push_back({line.time_ns - off_ns, line.time_ns, line.run_queue_ns()});
  }

  void add_aggregated(const log_file& file, const side_line& line) {
    const std::int64_t calls_ns = line.duration_ns();
    if (calls_ns == 0) return;
    aggregated_[file.number].push_back({line.time_ns, line.time_ns + calls_ns, -1});
  }

  using intervals_by_number = std::map<std::uint64_t, std::vector<off_cpu_interval>>;

  /// Assigns the intervals off the CPU to the logs. If one thread has a main log and a worker log,
  /// both get the same intervals.
  void place_off_cpu() {
    const auto of = [](const intervals_by_number& lines, std::uint64_t number) {
      const auto at = lines.find(number);
      return at == lines.end() ? std::vector<off_cpu_interval>() : at->second;
    };
    for (const log_file& file : run_.files) {
      found_.data.off_cpu.emplace_back(of(off_cpu_, file.number), processes_.cpu_of(file.number));
      found_.data.aggregated.emplace_back(of(aggregated_, file.number), cpu_measure::switches);
    }
  }

  const run_files& run_;
  const run_processes& processes_;
  const time_window& read_;
  diagnostic_log& diagnostics_;
  read_side found_;
  intervals_by_number off_cpu_;
  intervals_by_number aggregated_;
};

}  // namespace

read_side read_side_logs(const run_files& run, const run_processes& processes,
                         const time_window& read, diagnostic_log& diagnostics) {
  return side_reader(run, processes, read, diagnostics).read();
}

}  // namespace lotus::tool
