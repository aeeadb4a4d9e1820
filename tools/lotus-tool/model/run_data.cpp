#include "model/run_data.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/log_files.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/pipeline/side_reading.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// What one log holds of one operation.
struct log_op {
  std::vector<std::int64_t> durations_ns;
  std::int64_t self_ns = 0;
  cpu_split cpu{0, 0, 0};
  worker_share share;
};

/// One log, read by one thread.
struct log_data {
  explicit log_data(bool quiet) : diagnostics(text, quiet) {}

  batch_records records;
  name_table names;
  std::vector<log_op> ops;  // by number of the name
  packed_operations packed;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  std::ostringstream text;
  diagnostic_log diagnostics;
  std::exception_ptr failure;
};

/// @param off_cpu  of the log's thread.
void read_one(const log_file& file, std::size_t place, const run_parts& wanted,
              const off_cpu_time& off_cpu, log_data& to) {
  const bool totals = wanted.totals || wanted.durations;
  const bool named = totals || wanted.operations;
  // Not in `to`: another thread's may lie in the same cache line.
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  nesting_times nesting;
  read_log(file, &to.diagnostics, [&](const log_line& line) {
    first_ns = std::min(first_ns, line.start_ns);
    last_ns = std::max(last_ns, line.end_ns());
    if (line.kind != record_kind::op) {
      to.records.push_back({line.start_ns, line.duration_ns, line.batch,
                            static_cast<std::uint32_t>(place), 0, line.kind, file.consumer});
      return;
    }
    ++operations;
    if (!named) return;
    const std::uint32_t name = to.names.id(line.name);
    if (wanted.operations) to.packed.push({line.start_ns, line.duration_ns, name});
    if (!totals) return;
    if (name >= to.ops.size()) to.ops.resize(name + std::size_t{1});
    log_op& op = to.ops[name];
    if (wanted.durations) op.durations_ns.push_back(line.duration_ns);
    if (off_cpu.known()) op.cpu += off_cpu.split(line.start_ns, line.end_ns());
    op.self_ns += nesting.self_ns(line.start_ns, line.duration_ns);
    ++op.share.count;
    op.share.total_ns += line.duration_ns;
    op.share.max_ns = std::max(op.share.max_ns, line.duration_ns);
  });
  to.operations = operations;
  to.first_ns = first_ns;
  to.last_ns = last_ns;
}

/// Reads every log; where one cannot be read, its `failure` is set.
std::deque<log_data> read_logs(const run_files& run, const run_parts& wanted, const side_data& side,
                               bool quiet) {
  std::deque<log_data> logs;
  for (std::size_t f = 0; f < run.files.size(); ++f) logs.emplace_back(quiet);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t f = next++; f < logs.size(); f = next++) {
      try {
        read_one(run.files[f], f, wanted, side.off_cpu[f], logs[f]);
      } catch (...) {
        logs[f].failure = std::current_exception();
      }
    }
  };
  // More threads than these would wait for memory rather than count digits.
  const auto threads =
      std::min<std::size_t>({4, run.files.size(), std::thread::hardware_concurrency()});
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return logs;
}

/// Puts the logs' durations of one operation behind each other, and gives theirs back.
void gather(std::deque<log_data>& logs, const std::vector<std::vector<std::uint32_t>>& number_in,
            const side_data& side, std::uint32_t name, op_samples& op) {
  std::size_t count = 0;
  cpu_split cpu{0, 0, 0};
  bool cpu_known = false;
  bool cpu_missing = false;
  for (std::size_t f = 0; f < logs.size(); ++f) {
    const std::uint32_t n = name < number_in[f].size() ? number_in[f][name] : UINT32_MAX;
    if (n >= logs[f].ops.size()) continue;
    count += logs[f].ops[n].durations_ns.size();
    op.self_ns += logs[f].ops[n].self_ns;
    op.by_file.resize(f + 1);
    op.by_file[f] = logs[f].ops[n].share;
    if (logs[f].ops[n].share.count == 0) continue;
    cpu += logs[f].ops[n].cpu;
    (side.off_cpu[f].known() ? cpu_known : cpu_missing) = true;
  }
  if (cpu_known && !cpu_missing) op.cpu = cpu;
  for (std::size_t f = 0; f < logs.size(); ++f) {
    const std::uint32_t n = name < number_in[f].size() ? number_in[f][name] : UINT32_MAX;
    if (n >= logs[f].ops.size()) continue;
    std::vector<std::int64_t> part = std::move(logs[f].ops[n].durations_ns);
    if (part.size() == count) {
      op.durations_ns = std::move(part);
      return;
    }
    op.durations_ns.reserve(count);
    op.durations_ns.insert(op.durations_ns.end(), part.begin(), part.end());
  }
}

/// Its names become the run's, behind those of the logs.
void take_side(read_side side, run_data& data) {
  std::vector<std::uint32_t> number;
  for (std::uint32_t n = 0; n < side.names.size(); ++n) {
    number.push_back(data.names.id_of_decoded(side.names.name(n)));
  }
  data.side = std::move(side.data);
  for (stage_span& s : data.side.stages) s.name = number[s.name];
  for (async_piece& p : data.side.pieces) p.name = number[p.name];
  for (counter_value& c : data.side.counters) c.name = number[c.name];
}

}  // namespace

record_counts tell_dropped(const run_files& run, diagnostic_log& diagnostics) {
  const run_processes processes = run_processes::read(run.info_dir);
  if (const std::string left = processes.left(run.info_dir); !left.empty()) {
    diagnostics.warning(left);
  }
  const record_counts records = processes.records();
  if (records.dropped > 0) diagnostics.warning(run.info_dir + ": " + dropped_text(records));
  return records;
}

run_data read_run(const run_files& run, const run_parts& wanted, diagnostic_log& diagnostics) {
  const run_processes processes = run_processes::read(run.info_dir);
  read_side side = read_side_logs(run, processes, diagnostics);
  std::deque<log_data> logs = read_logs(run, wanted, side.data, diagnostics.quiet());
  run_data data;
  data.files = &run;
  data.cpus = processes.cpus();
  data.first_ns = side.first_ns;
  data.last_ns = side.last_ns;
  data.logs.resize(logs.size());
  batch_records records;
  std::vector<std::vector<std::uint32_t>> number_in(logs.size());  // the log's, by the run's
  for (std::size_t f = 0; f < logs.size(); ++f) {
    log_data& log = logs[f];
    diagnostics.absorb(log.text.str(), log.diagnostics);
    data.damaged_lines += log.diagnostics.malformed_lines();
    if (log.failure) std::rethrow_exception(log.failure);
    records.insert(records.end(), log.records.begin(), log.records.end());
    batch_records().swap(log.records);
    data.operations += log.operations;
    data.first_ns = std::min(data.first_ns, log.first_ns);
    data.last_ns = std::max(data.last_ns, log.last_ns);
    for (std::uint32_t n = 0; n < log.names.size(); ++n) {
      const std::uint32_t name = data.names.id_of_decoded(log.names.name(n));
      data.logs[f].names.push_back(name);
      if (name >= number_in[f].size()) number_in[f].resize(name + std::size_t{1}, UINT32_MAX);
      number_in[f][name] = n;
    }
    data.logs[f].packed = std::move(log.packed);
  }
  data.records = tell_dropped(run, diagnostics);
  const std::size_t logged = data.names.size();
  take_side(std::move(side), data);
  data.batches = run_batches(std::move(records), data.side.stages, data.side.takings);
  if (wanted.totals || wanted.durations) {
    for (std::uint32_t name = 0; name < logged; ++name) {
      op_samples& op = data.ops.emplace_back();
      op.name = data.names.name(name);
      gather(logs, number_in, data.side, name, op);
    }
  }
  return data;
}

}  // namespace lotus::tool
