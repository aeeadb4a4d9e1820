// Assigns the process and thread numbers under which trace viewers show runs and logs.
#ifndef LOTUS_TOOL_MODEL_TRACKS_HPP
#define LOTUS_TOOL_MODEL_TRACKS_HPP

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// The numbers of a track, which is a row of a trace viewer on which spans are drawn as bars
/// (slices). The pair is unique in an output file, even if the file contains several runs.
struct track {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};

/// Assigns 32-bit numbers, each only once: the number that the caller wants if it is still free,
/// otherwise another one. Never assigns 0, because trace viewers treat 0 as the idle process.
class number_pool {
 public:
  std::uint32_t take(std::uint64_t wanted);
  /// Ensures that `number` is never assigned.
  void reserve(std::uint64_t number);

 private:
  std::set<std::uint32_t> taken_;
  std::uint32_t next_ = 1;
};

struct process_track {
  std::uint32_t pid = 0;
  std::string name;
};

/// The tracks of a run. The trace viewer shows a process for each recorded process (or one process
/// if the run does not describe its processes), and a thread for each log. Slices on one track must
/// nest, but a consumer's step may partly overlap with operations of the same thread. Therefore, if
/// a thread has one log as a consumer and one as a worker, only the consumer's log keeps the number
/// of the thread.
struct run_tracks {
  std::uint32_t pid = 0;  ///< pid of the first process, which shows the run's counters
  std::vector<process_track> processes;
  std::vector<track> of_file;  ///< for each log, by index in run_files::files: its track
  std::vector<std::string> file_name;
};

/// Returns the name of a run: its path below `dir`, or the name of `dir` itself.
std::string run_title(const std::string& run_dir, const std::string& dir);

/// Returns the name of the run and of the loader, if the loader has a name: "run, loader val".
std::string run_title(const run_files& run, const std::string& dir);

/// Returns the name of a log's thread, such as "worker 4711 (name)"; the part in parentheses is the
/// thread's own name, if known.
std::string log_title(const log_file& file, const process_info* process = nullptr);

/// Assigns tracks to all runs.
/// @param dir    the directory as given by the user; runs are named by their path below it.
/// @param taken  numbers that are used in another trace, with which this one is merged. They are
///   not assigned, because slices of both traces on one track would not nest.
std::vector<run_tracks> lay_tracks(const std::vector<run_files>& runs, const std::string& dir,
                                   const std::set<std::uint64_t>& taken);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TRACKS_HPP
