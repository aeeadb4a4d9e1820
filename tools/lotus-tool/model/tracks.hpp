// Assigns the process and thread numbers with which a trace viewer shows runs and logs.
#ifndef LOTUS_TOOL_MODEL_TRACKS_HPP
#define LOTUS_TOOL_MODEL_TRACKS_HPP

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// Where a slice is drawn. Both numbers are unique in an output, also across runs.
struct track {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};

/// Assigns unique numbers that fit into 32 bits; the wanted number if possible. Never 0, which
/// viewers treat as the idle process.
class number_pool {
 public:
  std::uint32_t take(std::uint64_t wanted);
  /// Makes sure that `number` is never assigned.
  void reserve(std::uint64_t number);

 private:
  std::set<std::uint32_t> taken_;
  std::uint32_t next_ = 1;
};

/// A process in a trace.
struct process_track {
  std::uint32_t pid = 0;
  std::string name;
};

/// The tracks of a run: one process, or those that the run recorded, and one thread for each log.
/// The consumer's log keeps its number; a worker's log of the same thread gets another one, because
/// a step may overlap the operations that the thread does in between, and the slices of one track
/// must nest.
struct run_tracks {
  std::uint32_t pid = 0;  ///< of the first process, which shows the run's counters
  std::vector<process_track> processes;
  std::vector<track> of_file;  ///< by index in run_files::files
  std::vector<std::string> file_name;
};

/// The name of a run: its path below `dir`, or dir's own name.
std::string run_title(const std::string& run_dir, const std::string& dir);

/// The same, followed by the loader's name if it has one: "run, loader val".
std::string run_title(const run_files& run, const std::string& dir);

/// The name of a log's thread, "worker 4711", followed by the thread's own name if known.
std::string log_title(const log_file& file, const process_info* process = nullptr);

/// @param dir    as given by the user; runs are named by their path below it.
/// @param taken  numbers used by a trace that will be merged: slices of both on one track would not
///               nest.
std::vector<run_tracks> lay_tracks(const std::vector<run_files>& runs, const std::string& dir,
                                   const std::set<std::uint64_t>& taken);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TRACKS_HPP
