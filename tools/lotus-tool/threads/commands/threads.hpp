// Implements `lotus-tool threads`, which shows how the threads of a program without markers (Lotus
// macros) spend their time.
#ifndef LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP
#define LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP

#include <ostream>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "threads/analysis/run_phases.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct threads_options {
  std::string dir;
  bool json = false;
  bool quiet = false;
};

/// What the command prints.
struct threads_result {
  thread_samples samples;
  std::vector<thread_activity> groups;
  std::string headline;
  std::vector<suggested_marker> markers;
  std::vector<chain_hop> chain;
  std::vector<run_phase> phases;
};
const description<threads_result>& description_of(const threads_result*);

/// Prints how the threads spent their time, according to the samples that `lotus-tool run` took.
/// Returns the exit status. Throws input_error.
int run_threads(const threads_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP
