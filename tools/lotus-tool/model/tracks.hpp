// Which process and thread numbers a picture uses for which run and log.
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

/// Hands out numbers that fit 32 bits and are never the same twice; the wanted one when it can.
/// 0 is not handed out: viewers take it for the idle process.
class number_pool {
 public:
  std::uint32_t take(std::uint64_t wanted);
  /// Never hands out `number`.
  void reserve(std::uint64_t number);

 private:
  std::set<std::uint32_t> taken_;
  std::uint32_t next_ = 1;
};

/// A process of a picture.
struct process_track {
  std::uint32_t pid = 0;
  std::string name;
};

/// The tracks of a run: one process, or those that the run tells of itself, and one thread for
/// every log. The consumer's log keeps its number; a worker's log of the same thread gets another
/// one, because a step may overlap the operations that the thread does in between, and slices of
/// one track must nest.
struct run_tracks {
  std::uint32_t pid = 0;  ///< of the first process, which has the run's counters
  std::vector<process_track> processes;
  std::vector<track> of_file;  ///< by place in run_files::files
  std::vector<std::string> file_name;
};

/// The name of a run: its place below `dir`, or dir's own name.
std::string run_title(const std::string& run_dir, const std::string& dir);

/// The same, and its loader's name where it has one: "run, loader val".
std::string run_title(const run_files& run, const std::string& dir);

/// The name of a log's thread, "worker 4711", and the thread's own where it is known.
std::string log_title(const log_file& file, const process_info* process = nullptr);

/// @param dir    what the user gave; runs are named by their place below it.
/// @param taken  numbers that a trace to be merged uses: on the same track its slices and ours
///               would not nest.
std::vector<run_tracks> lay_tracks(const std::vector<run_files>& runs, const std::string& dir,
                                   const std::set<std::uint64_t>& taken);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TRACKS_HPP
