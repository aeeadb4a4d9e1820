// What the threads of a program without markers (Lotus macros) did, as all outputs show it.
#ifndef LOTUS_TOOL_THREADS_VIEW_THREADS_VIEW_HPP
#define LOTUS_TOOL_THREADS_VIEW_THREADS_VIEW_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/run_phases.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {

struct threads_view {
  explicit threads_view(thread_samples of) : samples(std::move(of)), stacks(samples) {}

  thread_samples samples;
  named_stacks stacks;
  std::vector<thread_activity> groups;
  std::vector<suggested_marker> markers;
  std::vector<chain_hop> chain;
  std::vector<run_phase> phases;
};

/// Reads the samples in a folder, and finds out what the threads did. Throws input_error.
threads_view read_threads(const std::string& dir, diagnostic_log& diagnostics);

/// `all` also has the functions and waits of each group, suggested markers, and the cost.
enum class threads_part : std::uint8_t { summary, all };

/// Prints the chain of waits first, then a table of the threads.
void print_threads(const threads_view& view, threads_part part, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_VIEW_THREADS_VIEW_HPP
