#include "commands/accelerator_command.hpp"

#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "accelerator/accelerator_described.hpp"
#include "accelerator/accelerator_text.hpp"
#include "accelerator/ranks.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "describe/description.hpp"
#include "findings/diagnosis.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// The paths that the user gave, without duplicates. A path that does not exist is put into
/// `traces`, because reading a trace then reports that it is missing.
struct given_paths {
  std::vector<std::string> traces;
  std::vector<std::string> folders;
};

given_paths sorted_paths(const std::vector<std::string>& paths) {
  given_paths given;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!seen.insert(path).second) continue;  // the same path was given twice
    (fs::is_directory(path, error) ? given.folders : given.traces).push_back(path);
  }
  return given;
}

/// Finds the runs in the given folders.
/// @param needed  whether a folder without logs is an error; otherwise such a folder is ignored.
std::vector<run_files> runs_in(const std::vector<std::string>& folders,
                               const accelerator_options& options, bool needed,
                               diagnostic_log& diagnostics) {
  std::vector<run_files> runs;
  for (const std::string& dir : folders) {
    try {
      std::vector<run_files> found = find_runs(dir, options.prefix, diagnostics);
      std::move(found.begin(), found.end(), std::back_inserter(runs));
    } catch (const input_error&) {
      if (needed) throw;
    }
  }
  return runs;
}

/// Finds and reads the logs of the process that recorded an accelerator trace. Warns if there are
/// none, or if the logs of several runs could belong to the trace.
std::shared_ptr<const run_data> read_logs(const rank_logs& logs, const device_trace& trace,
                                          diagnostic_log& diagnostics) {
  const std::vector<const run_files*> found = logs.of(trace);
  if (found.size() == 1) {
    return std::make_shared<const run_data>(read_run(*found.front(), diagnosis_parts, diagnostics));
  }
  if (found.empty()) {
    diagnostics.warning(trace.path + ": no logs of its rank; what was late is unknown");
    return nullptr;
  }
  std::set<std::string> folders;
  for (const run_files* const of : found) folders.insert(of->dir);
  diagnostics.warning(trace.path +
                      ": belongs to one of several runs or loaders, and their logs "
                      "are not used; give the folder of one: " +
                      joined(folders, ", "));
  return nullptr;
}

/// Warns about each trace that does not overlap in time with the first one: it is probably from
/// another training, because the ranks of one training compute at the same time.
void check_times(const std::vector<accelerator_analysis>& ranks, diagnostic_log& diagnostics) {
  const accelerator_analysis& first = ranks.front();
  for (const accelerator_analysis& rank : ranks) {
    if (rank.first_ns <= first.last_ns && first.first_ns <= rank.last_ns) continue;
    diagnostics.warning(rank.path + ": recorded at another time than " + first.path +
                        "; give only traces of one training run");
  }
}

}  // namespace

int run_accelerator(const accelerator_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const given_paths given = sorted_paths(options.paths);
  const std::vector<run_files> runs =
      runs_in(given.folders, options, !given.traces.empty(), diagnostics);
  const rank_logs logs(runs);
  rank_collector collector(
      options.analysis,
      [&](const device_trace& trace) {
        return runs.empty() ? nullptr : read_logs(logs, trace, diagnostics);
      },
      diagnostics);
  for (const std::string& path : given.traces) collector.add(path);
  if (given.traces.empty()) {
    for (const std::string& dir : given.folders) collector.add_folder(dir, true);
  }
  std::vector<accelerator_analysis> found = collector.take();
  if (!found.empty()) check_times(found, diagnostics);
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (found.empty()) {
    throw input_error(
        given.folders.front() +
        ": no trace of an accelerator found (.json, .json.gz, .sqlite); record one with "
        "PyTorch's profiler (ProfilerActivity.CUDA) or nsys");
  }
  if (!options.rank.empty()) found = only_rank(std::move(found), options.rank);
  if (options.json) {
    print_json(shown(found, true), out);
  } else {
    std::string command;
    for (const std::string& path : options.paths) command += " " + printable_line(shell_word(path));
    print_accelerator(found, options.all, command, out);
  }
  return exit_fine;
}

}  // namespace lotus::tool
