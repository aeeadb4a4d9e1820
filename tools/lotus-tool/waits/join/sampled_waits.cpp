#include "waits/join/sampled_waits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/shown_name.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {

sampled_waits::sampled_waits(
    const run_data& run, operations_of of, const name_table& names,
    const std::function<void(std::size_t file, const on_operation&)>& each_operation,
    diagnostic_log& diagnostics)
    : names_(names), processes_(read_waits(*run.files, diagnostics)) {
  if (processes_.empty()) return;
  const thread_logs threads(run);
  std::unordered_map<std::size_t, std::vector<moment>> moments;  // by the log's index
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    // Caches the logs of each thread.
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> logs;
    const auto logs_of = [&](std::uint64_t tid) -> const std::vector<std::size_t>& {
      const auto [known, fresh] = logs.try_emplace(tid);
      if (fresh) known->second = threads.of(tid, processes_[p].ending);
      return known->second;
    };
    for (const wait_sample& sample : processes_[p].samples) {
      const std::size_t number = waits_.size();
      sampled_wait& wait = waits_.emplace_back();
      wait.sample = &sample;
      wait.process = p;
      wait.logs = logs_of(sample.tid);
      if (of == operations_of::all_threads) {
        for (const std::size_t file : wait.logs) {
          moments[file].push_back({sample.time_ns, number, false});
        }
      }
      if (sample.holder == 0) continue;
      for (const std::size_t file : logs_of(sample.holder)) {
        wait.holder_has_log = true;
        moments[file].push_back({sample.time_ns, number, true});
      }
    }
  }
  for (auto& [file, in_log] : moments) {
    std::stable_sort(in_log.begin(), in_log.end(),
                     [](const moment& a, const moment& b) { return a.time_ns < b.time_ns; });
  }
  for (record_number n = 0; n < run.batches.records().size(); ++n) {
    const batch_record& r = run.batches.records()[n];
    const auto at = moments.find(r.file.value());
    if (at == moments.end() || r.is_marker()) continue;
    if (r.kind == record_kind::consumed) {
      const std::optional<time_span> step = run.batches.step(n);
      if (step) visit(at->second, step->start_ns, step->end_ns, sampled_wait::of_step);
    }
    if (r.kind != record_kind::wait && r.kind != record_kind::preprocessed) continue;
    visit(at->second, r.start_ns, r.end_ns(),
          r.kind == record_kind::wait ? sampled_wait::of_wait : sampled_wait::of_preprocessing);
  }
  for (const auto& [file, in_log] : moments) {
    each_operation(file, [&, &in_log = in_log](const operation& op) {
      visit(in_log, op.start_ns, op.end_ns(), op.name);
    });
  }
}

void sampled_waits::visit(const std::vector<moment>& moments, std::int64_t start_ns,
                          std::int64_t end_ns, std::uint32_t name) {
  auto at = std::lower_bound(moments.begin(), moments.end(), start_ns,
                             [](const moment& m, std::int64_t ns) { return m.time_ns < ns; });
  for (; at != moments.end() && at->time_ns < end_ns; ++at) {
    sampled_wait& wait = waits_[at->wait];
    if (!at->of_holder) {
      wait.open.insert(name);
      wait.in.add(start_ns, name);
    } else {
      wait.holder.add(start_ns, name);
    }
  }
}

std::string sampled_waits::name_of(const innermost_span& span) const {
  if (!span.known) return {};
  if (span.name == sampled_wait::of_wait) return "waiting for a batch";
  if (span.name == sampled_wait::of_preprocessing) return "preprocessing";
  if (span.name == sampled_wait::of_step) return step_word;
  return shown_name(names_.name(span.name));
}

log_waits log_waits::read(const run_data& run, diagnostic_log& diagnostics) {
  log_waits found;
  name_table names;
  const auto each_operation = [&](std::size_t file, const on_operation& visit) {
    read_log(run.files->files[file], nullptr, [&](const log_line& line) {
      if (line.kind != record_kind::op) return;
      visit({line.start_ns, line.duration_ns, names.id(line.name)});
    });
  };
  const sampled_waits waits(run, sampled_waits::operations_of::holders, names, each_operation,
                            diagnostics);
  std::map<std::tuple<wait_reason, wait_object, std::string>, std::uint32_t> known;
  found.of_log_.resize(run.files->files.size());
  for (const sampled_wait& wait : waits.all()) {
    wait_object what = what_of(*wait.sample);
    std::string held_by =
        wait.sample->reason == wait_reason::lock ? waits.name_of(wait.holder) : std::string();
    const auto [entry, fresh] = known.try_emplace({wait.sample->reason, what, held_by},
                                                  static_cast<std::uint32_t>(known.size()));
    if (fresh) {
      blocked_on& one = found.entries_.emplace_back();
      one.reason = wait.sample->reason;
      one.what = std::move(what);
      one.held_by = std::move(held_by);
    }
    for (const std::size_t file : wait.logs) {
      found.of_log_[file].push_back({wait.sample->time_ns, entry->second});
    }
  }
  for (std::vector<moment>& of : found.of_log_) {
    std::stable_sort(of.begin(), of.end(),
                     [](const moment& a, const moment& b) { return a.time_ns < b.time_ns; });
  }
  return found;
}

std::vector<log_waits::moment>::const_iterator log_waits::first(std::size_t file,
                                                                std::int64_t ns) const {
  const std::vector<moment>& of = of_log_[file];
  return std::lower_bound(of.begin(), of.end(), ns,
                          [](const moment& m, std::int64_t wanted) { return m.time_ns < wanted; });
}

bool log_waits::has(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
  if (file >= of_log_.size() || of_log_[file].empty()) return false;
  const auto at = first(file, start_ns);
  return at != of_log_[file].end() && at->time_ns < end_ns;
}

std::vector<scaled_waits> scale_waits(const run_data& run, const run_blocked_on& joined) {
  std::vector<scaled_waits> all;
  if (joined.empty()) return all;
  const auto blocked_ns_of = [](const std::optional<cpu_split>& cpu) {
    return cpu ? cpu->blocked_ns : std::nullopt;
  };
  std::map<std::string_view, const op_samples*> operations;
  for (const op_samples& op : run.ops) {
    if (joined.of(op.name) != nullptr) operations.emplace(op.name, &op);
  }
  for (const auto& [name, list] : joined.ops) {
    const auto op = operations.find(name);
    const std::optional<std::int64_t> blocked_ns =
        op == operations.end() ? std::nullopt : blocked_ns_of(op->second->details().cpu);
    all.push_back({waiting_part::operation, shown_name(name), list.of(blocked_ns)});
  }
  const auto add = [&](waiting_part part, quantity of, const blocked_list& list) {
    if (list.empty()) return;
    all.push_back({part, "", list.of(blocked_ns_of(cpu_of(run, of, 0)))});
  };
  add(waiting_part::wait, quantity::wait, joined.waits);
  add(waiting_part::preprocess, quantity::preprocess, joined.preprocessing);
  return all;
}

}  // namespace lotus::tool
