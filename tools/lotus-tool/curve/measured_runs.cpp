#include "curve/measured_runs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <system_error>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "findings/checks/check.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "replay/plan.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// Returns the part of a command line that names the program: its first word, and for an
/// interpreter such as python also the next one.
std::string program_of(const std::string& command) {
  const std::size_t first = command.find(' ');
  const std::string name = fs::path(command.substr(0, first)).filename().string();
  if (name.rfind("python", 0) != 0 || first == std::string::npos) return command.substr(0, first);
  return command.substr(0, command.find(' ', first + 1));
}

std::set<std::string> programs_of(const run_processes& processes) {
  std::set<std::string> programs;
  for (const auto& [file, process] : processes.by_file()) {
    if (!process.command.empty()) programs.insert(program_of(process.command));
  }
  return programs;
}

std::uint64_t bytes_of(const run_files& files) {
  std::uint64_t sum = 0;
  for (const log_file& file : files.files) sum += file.bytes;
  return sum;
}

/// Returns the subfolders of a folder, the newest first.
std::vector<fs::path> folders_in(const fs::path& parent) {
  constexpr std::size_t most = 200;
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) continue;
    found.emplace_back(entry->last_write_time(ignored), entry->path());
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  if (found.size() > most) found.resize(most);
  std::vector<fs::path> folders;
  folders.reserve(found.size());
  for (auto& [time, path] : found) folders.push_back(std::move(path));
  return folders;
}

/// Returns a path without a slash at its end.
fs::path as_folder(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

bool measured_run::has_same_settings(const curve_axis& but, const measured_run& other) const {
  using kind = curve_axis::kind;
  if (but.is != kind::cpus && cpus != other.cpus) return false;
  if (but.is == kind::workers) return true;
  if (but.is != kind::threads && workers != other.workers) return false;
  std::map<std::string, std::size_t> theirs = other.threads;
  if (but.is == kind::threads) {
    const auto found = threads.find(but.name);
    if (found != threads.end()) theirs[but.name] = found->second;
  }
  return threads == theirs;
}

bool measured_run::does_same_work(const curve_axis& but, const measured_run& other) const {
  // The same code needs more CPU time on crowded CPUs, but not this many times as much.
  constexpr double most = 1.3;
  constexpr double matters = 0.1;
  double all_ns = 0;
  for (const auto& [name, ns] : other.cpu_ns) all_ns += ns;
  return std::all_of(other.cpu_ns.begin(), other.cpu_ns.end(), [&](const auto& theirs) {
    const auto& [name, ns] = theirs;
    if (ns <= matters * all_ns || (but.is == curve_axis::kind::speed && name == but.name))
      return true;
    const auto mine = cpu_ns.find(name);
    return mine != cpu_ns.end() && mine->second < most * ns && ns < most * mine->second;
  });
}

std::optional<double> measured_run::at(const curve_axis& axis, const measured_run& recorded) const {
  if (!has_same_settings(axis, recorded) || !does_same_work(axis, recorded)) return std::nullopt;
  switch (axis.is) {
    case curve_axis::kind::workers:
      return static_cast<double>(workers);
    case curve_axis::kind::prefetch:
      return static_cast<double>(prefetch);
    case curve_axis::kind::cpus:
      return cpus;
    case curve_axis::kind::threads: {
      const auto found = threads.find(axis.name);
      if (found == threads.end()) return std::nullopt;
      return static_cast<double>(found->second);
    }
    case curve_axis::kind::speed:
      break;
  }
  const auto mine = batch_ns.find(axis.name);
  const auto before = recorded.batch_ns.find(axis.name);
  if (mine == batch_ns.end() || before == recorded.batch_ns.end() || mine->second <= 0) {
    return std::nullopt;
  }
  const double faster = before->second / mine->second;
  // No two runs take exactly the same time.
  constexpr double nearly_one = 0.03;
  return std::abs(faster - 1) < nearly_one ? 1 : faster;
}

measured_run measured_from(const run_data& run, const recorded_pipeline& pipeline) {
  measured_run m;
  m.dir = run.files->info_dir.empty() ? run.files->dir : run.files->info_dir;
  const run_processes processes = run_processes::read(run.files->info_dir, run.files->earlier_info);
  for (const auto& [file, process] : processes.by_file()) {
    if (m.command.empty()) m.command = process.command;
  }
  m.per_s = pipeline.achieved_per_s;
  m.workers = pipeline.makes_itself ? 0 : pipeline.workers();
  m.prefetch = pipeline.prefetch();
  m.cpus = pipeline.cpus;
  for (const recorded_stage& stage : pipeline.stages) m.threads[stage.name] = stage.threads;
  for (const planned_unit& u : pipeline.units) {
    for (std::uint32_t s = u.first_stage; s < u.end_stage; ++s) {
      const measured_work& work = pipeline.works[u.first_work + (s - u.first_stage)];
      m.batch_ns[pipeline.stages[s].name] += work.cpu_ns + work.blocked_ns;
    }
  }
  for (const recorded_part& part : pipeline.parts) {
    const std::string name = shown_name(run.names.name(part.name));
    m.cpu_ns[name] += part.cpu_ns;
    if (m.threads.count(name) == 0) m.batch_ns[name] += part.cpu_ns + part.blocked_ns;
  }
  const double batches =
      std::max(1.0, static_cast<double>(pipeline.units.size()) / pipeline.items_per_batch);
  for (auto* const times : {&m.batch_ns, &m.cpu_ns}) {
    for (auto& [name, ns] : *times) ns /= batches;
  }
  return m;
}

std::vector<measured_run> measured_runs::others_than(const run_files& files) {
  constexpr std::size_t most = 12;
  constexpr std::uint64_t always_read = 16U << 20U;
  std::vector<measured_run> runs;
  if (files.info_dir.empty()) return runs;
  const std::set<std::string> programs =
      programs_of(run_processes::read(files.info_dir, files.earlier_info));
  if (programs.empty()) return runs;
  std::error_code failed;
  const fs::path own = as_folder(files.info_dir);
  const fs::path here = fs::canonical(own, failed);
  if (failed) return runs;
  // By the whole path: the path that is shown, as the user wrote it.
  std::vector<std::pair<fs::path, std::string>> folders;
  for (const std::string& name : named_) {
    const fs::path folder = fs::canonical(as_folder(name), failed);
    if (!failed) folders.emplace_back(folder, name);
  }
  for (const fs::path& folder : folders_in(here.parent_path())) {
    folders.emplace_back(folder, (own.parent_path() / folder.filename()).string());
  }
  std::uint64_t bytes_left = always_read + 3 * bytes_of(files);
  std::set<fs::path> seen{here};
  for (const auto& [folder, shown] : folders) {
    if (runs.size() == most) break;
    if (!seen.insert(folder).second) continue;
    const std::set<std::string> theirs = programs_of(run_processes::read(folder.string()));
    const bool same = std::any_of(theirs.begin(), theirs.end(), [&programs](const std::string& p) {
      return programs.count(p) > 0;
    });
    if (!same) continue;
    const std::pair<std::string, std::string> key{folder.string(), files.loader};
    auto found = found_.find(key);
    if (found == found_.end()) {
      found = found_.emplace(key, read(folder.string(), files.loader, bytes_left)).first;
    }
    if (!found->second) continue;
    runs.push_back(*found->second);
    runs.back().dir = shown;
    runs.back().named = std::find(named_.begin(), named_.end(), shown) != named_.end();
  }
  return runs;
}

std::optional<measured_run> measured_runs::read(const std::string& dir, const std::string& loader,
                                                std::uint64_t& bytes_left) {
  diagnostic_log silent = diagnostic_log::silenced();
  try {
    for (const run_files& files : find_runs(dir, prefix_, silent)) {
      if (files.loader != loader || files.info_dir != dir) continue;
      const std::uint64_t bytes = bytes_of(files);
      if (bytes > bytes_left) return std::nullopt;
      bytes_left -= bytes;
      const run_data run = read_run(files, checked_parts, silent);
      const recording recorded = record_pipeline(run);
      if (recorded.pipeline) return measured_from(run, *recorded.pipeline);
    }
  } catch (const input_error&) {
    // A folder that cannot be read shows nothing.
  }
  return std::nullopt;
}

}  // namespace lotus::tool
