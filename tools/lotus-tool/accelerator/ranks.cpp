#include "accelerator/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>

#include "accelerator/accelerator_text.hpp"
#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/statistics/distribution.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// If a difference between ranks, or a wait for data, takes at most this share of the time, it is
/// not reported.
constexpr double named_share = 0.05;

template <class Iterator>
void list_traces(const Iterator& entries, std::vector<std::string>& paths) {
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (has_name_of_trace(name) && is_found_file(entry)) paths.push_back(entry.path().string());
  }
}

bool is_same_rank(const accelerator_analysis& a, const accelerator_analysis& b) {
  if (a.rank && b.rank) return a.rank == b.rank;
  return !a.processes.empty() && a.processes == b.processes;
}

/// Returns the short name of a rank. It is used only if no other rank has the same name.
rank_name own_name(const accelerator_analysis& of) {
  if (of.rank) return {"rank ", std::to_string(*of.rank)};
  if (of.processes.size() == 1) return {"process ", std::to_string(*of.processes.begin())};
  return {"", fs::path(of.path).filename().string()};
}

std::vector<rank_name> names_of(const std::vector<accelerator_analysis>& ranks) {
  std::vector<rank_name> names;
  names.reserve(ranks.size());
  for (const accelerator_analysis& rank : ranks) names.push_back(own_name(rank));
  const std::vector<rank_name> first = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::count(first.begin(), first.end(), names[i]) > 1) names[i] = {"", ranks[i].path};
  }
  return names;
}

/// Whether a rank takes longer than others beyond chance. Times of steps that follow one another
/// are alike, so whole parts of the trace are compared instead of steps.
bool is_beyond_chance(const std::vector<accelerator_analysis>& ranks, std::size_t slowest) {
  const auto own_share = [](const accelerator_analysis& of, std::size_t part) {
    std::int64_t alone_ns = 0;
    for (const device_figures& d : of.devices) {
      alone_ns += d.only_communication_of_parts_ns[part];
    }
    return 1 - time_share(alone_ns, of.span_ns()) * static_cast<double>(span_parts);
  };
  double sum = 0, squares = 0, least = 1;
  for (std::size_t part = 0; part < span_parts; ++part) {
    std::vector<double> others;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i != slowest) others.push_back(own_share(ranks[i], part));
    }
    std::sort(others.begin(), others.end());
    const double more = own_share(ranks[slowest], part) - others[others.size() / 2];
    sum += more;
    squares += more * more;
    least = std::min(least, more);
  }
  constexpr auto n = static_cast<double>(span_parts);
  const double mean = sum / n;
  const double variance = std::max(0.0, (squares - sum * mean) / (n - 1));
  // Where times drift slowly, also neighboring parts are alike, so each of them must show it.
  constexpr double least_of_mean = 0.4;
  if (least < least_of_mean * mean) return false;
  // Any of the ranks could have been the slowest one by chance.
  const double chance = 0.05 / static_cast<double>(ranks.size());
  return mean > student_reach(n - 1, 2 * chance) * std::sqrt(variance / n);
}

/// Returns the index of the rank with the highest value.
template <class Value>
std::size_t highest(const std::vector<accelerator_analysis>& ranks, Value value) {
  return static_cast<std::size_t>(
      std::max_element(ranks.begin(), ranks.end(),
                       [&](const auto& a, const auto& b) { return value(a) < value(b); }) -
      ranks.begin());
}

/// Returns the waits for PyTorch's loader in a trace, with absolute times.
std::vector<time_span> waits_of(const device_trace& trace) {
  std::vector<time_span> waits;
  waits.reserve(trace.waits.size());
  for (const wait_range& wait : trace.waits) {
    waits.push_back({wait.start_ns + trace.base_ns, wait.end_ns + trace.base_ns});
  }
  std::sort(waits.begin(), waits.end(),
            [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
  return waits;
}

bool lacks_waits(const run_data& run) noexcept {
  return !run.batches.waits_known() && run.batches.consumers() == 1;
}

std::vector<std::string> traces_in(const std::string& dir, bool below) {
  std::vector<std::string> paths;
  std::error_code error;
  constexpr auto skip = fs::directory_options::skip_permission_denied;
  if (below) {
    list_traces(fs::recursive_directory_iterator(dir, skip, error), paths);
  } else {
    list_traces(fs::directory_iterator(dir, skip, error), paths);
  }
  std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}

namespace fs = std::filesystem;

using candidates = std::vector<const consumer_logs*>;

/// Keeps the candidates for which `is_better` returns true; if it returns true for none, keeps all.
template <class IsBetter>
void prefer(candidates& of, IsBetter is_better) {
  candidates better;
  for (const consumer_logs* const logs : of) {
    if (is_better(*logs)) better.push_back(logs);
  }
  if (!better.empty()) of = std::move(better);
}

}  // namespace

void rank_collector::analyze(device_trace&& trace) {
  std::shared_ptr<const run_data> run = run_(trace);
  if (run && !is_of_run(trace, *run)) {
    diagnostics_.warning(trace.path + ": the logs in " + run->files->dir +
                         " were recorded at another time and are not used");
    run.reset();
  }
  if (run && lacks_waits(*run) && !trace.waits.empty()) {
    const std::vector<time_span> waits = waits_of(trace);
    run_parts parts;
    parts.operations = true;
    parts.waits = &waits;
    diagnostic_log silent = diagnostic_log::silenced();
    run = std::make_shared<const run_data>(read_run(*run->files, parts, silent));
  }
  for (const std::string& note : fault_notes(trace.faults)) {
    damage_->note(trace.path + ": " + note);
  }
  found_.push_back(analyze_accelerator(std::move(trace), options_, run.get()));
}

void rank_collector::add(const std::string& path) {
  for_each_trace(path, options_.rounding,
                 [this](device_trace&& trace) { analyze(std::move(trace)); });
}

void rank_collector::add_found(const std::string& path) {
  try {
    for_each_trace(path, options_.rounding, [&](device_trace&& trace) {
      if (trace.merged) {
        diagnostics_.note(path + ": ignored: 'lotus-tool viz' has written it");
        return;
      }
      analyze(std::move(trace));
      const auto same = std::find_if(found_.begin(), found_.end() - 1, [&](const auto& before) {
        return is_same_rank(before, found_.back());
      });
      if (same == found_.end() - 1) return;
      diagnostics_.note(same->path + ": not used, because " + path +
                        " is of the same rank; give its name to read it");
      *same = std::move(found_.back());
      found_.pop_back();
    });
  } catch (const broken_trace& error) {
    damage_->note("ignored: " + std::string(error.what()));
  } catch (const input_error& error) {
    diagnostics_.note("ignored: " + std::string(error.what()));
  }
}

void rank_collector::add_folder(const std::string& dir, bool below) {
  for (const std::string& path : traces_in(dir, below)) add_found(path);
}

std::vector<accelerator_analysis> rank_collector::take() {
  std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
    return a.rank.value_or(UINT64_MAX) < b.rank.value_or(UINT64_MAX);
  });
  return std::move(found_);
}

std::vector<accelerator_analysis> find_accelerators(const run_data& run,
                                                    diagnostic_log& diagnostics) {
  if (run.files->is_part()) {
    if (!traces_in(run.files->info_dir, false).empty()) {
      diagnostics.note(run.files->dir +
                       ": the accelerator is left out: its trace is not of the same part");
    }
    return {};
  }
  diagnostic_log silent = diagnostic_log::silenced();
  std::vector<run_files> several;
  if (run.batches.consumers() > 1) several.push_back(*run.files);
  const rank_logs logs(several);
  rank_collector collector(
      {},
      [&](const device_trace& trace) -> std::shared_ptr<const run_data> {
        const std::vector<const run_files*> found = logs.of(trace);
        if (found.size() != 1) return {std::shared_ptr<const run_data>(), &run};
        run_parts parts;
        parts.operations = true;
        return std::make_shared<const run_data>(read_run(*found.front(), parts, silent));
      },
      silent);
  collector.report_damage_to(diagnostics);
  collector.add_folder(run.files->info_dir, false);
  std::vector<accelerator_analysis> found = collector.take();
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](const accelerator_analysis& a) { return a.logs.empty(); }),
              found.end());
  return found;
}

run_data read_run_and_waits(const run_files& run, run_parts parts, diagnostic_log& diagnostics) {
  run_data data = read_run(run, parts, diagnostics);
  if (!lacks_waits(data) || data.batches.all().empty()) return data;
  for (const std::string& path : traces_in(run.info_dir, false)) {
    std::vector<time_span> waits;
    try {
      for_each_trace(path, time_rounding::exact, [&](device_trace&& trace) {
        if (!trace.merged && is_of_run(trace, data) && waits.empty()) waits = waits_of(trace);
      });
    } catch (const input_error&) {
      continue;  // find_accelerators() reports what is wrong with it
    }
    if (waits.empty()) continue;
    parts.waits = &waits;
    diagnostic_log silent = diagnostic_log::silenced();
    run_data with_waits = read_run(run, parts, silent);
    if (lacks_waits(with_waits)) continue;
    diagnostics.note(path + ": the waits for batches are those of this trace; the logs have none");
    return with_waits;
  }
  return data;
}

bool are_busy(const std::vector<accelerator_analysis>& ranks, const run_data& run) noexcept {
  if (ranks.empty() || run.last_ns < run.first_ns) return false;  // no times are known
  const auto run_ns = static_cast<double>(run.last_ns - run.first_ns);
  const auto is_busy = [run_ns](const device_figures& d) {
    return static_cast<double>(d.working_ns()) >= 0.9 * run_ns;
  };
  return std::all_of(ranks.begin(), ranks.end(), [&](const accelerator_analysis& rank) {
    return rank.is == device_verdict::busy &&
           std::all_of(rank.devices.begin(), rank.devices.end(), is_busy);
  });
}

rank_comparison compare_ranks(const std::vector<accelerator_analysis>& ranks) {
  rank_comparison found;
  found.names = names_of(ranks);
  found.by_step = std::all_of(ranks.begin(), ranks.end(),
                              [](const accelerator_analysis& r) { return r.step_count > 0; });
  for (const accelerator_analysis& rank : ranks) {
    const auto parts = found.by_step ? static_cast<std::int64_t>(rank.step_count) : 1;
    found.own_ns.push_back(rank.own_ns() / parts);
  }
  const auto idle_share = [](const accelerator_analysis& r) {
    const judged_time& of = r.judged;
    return time_share(of.span_ns - of.busy_ns() + of.only_copies_ns, of.span_ns);
  };
  const auto wait_share = [](const accelerator_analysis& r) {
    return time_share(r.all_causes().of(idle_cause::batch_wait), r.span_ns());
  };
  found.decisive = highest(ranks, idle_share);
  const std::size_t waits = highest(ranks, wait_share);
  if (wait_share(ranks[waits]) > named_share) found.waits_for_data = waits;
  if (ranks.size() < 2) return found;
  const auto longest = std::max_element(found.own_ns.begin(), found.own_ns.end());
  std::vector<std::int64_t> others(found.own_ns.begin(), longest);
  others.insert(others.end(), longest + 1, found.own_ns.end());
  std::sort(others.begin(), others.end());
  found.others_ns = others[others.size() / 2];
  const auto slowest = static_cast<std::size_t>(longest - found.own_ns.begin());
  if (static_cast<double>(*longest) > (1 + named_share) * static_cast<double>(found.others_ns) &&
      is_beyond_chance(ranks, slowest)) {
    found.slowest = slowest;
    found.decisive = *found.slowest;
  }
  return found;
}

rank_logs::rank_logs(const std::vector<run_files>& runs) {
  for (const run_files& run : runs) {
    for (consumer_logs& logs : logs_of_consumers(run)) all_.push_back(std::move(logs));
  }
}

std::vector<const run_files*> rank_logs::of(const device_trace& trace) const {
  candidates possible;
  for (const consumer_logs& logs : all_) {
    const bool other_rank = logs.rank && trace.rank && *logs.rank != *trace.rank;
    if (!other_rank) possible.push_back(&logs);
  }
  const fs::path parent = fs::path(trace.path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  prefer(possible, [&](const consumer_logs& logs) {
    std::error_code error;
    return fs::equivalent(logs.files.info_dir, folder, error);
  });
  if (trace.rank)
    prefer(possible, [&](const consumer_logs& logs) { return logs.rank == trace.rank; });
  std::set<std::uint64_t> processes;
  for (const host_thread& thread : trace.threads) processes.insert(thread.process);
  prefer(possible, [&](const consumer_logs& logs) {
    return std::any_of(logs.files.files.begin(), logs.files.files.end(),
                       [&](const log_file& file) { return processes.count(file.number) != 0; });
  });
  std::vector<const run_files*> found;
  found.reserve(possible.size());
  for (const consumer_logs* const logs : possible) found.push_back(&logs->files);
  return found;
}

}  // namespace lotus::tool
