// Implements `lotus-tool threads`, which shows how the threads of a program without markers (Lotus
// macros) spend their time.
#ifndef LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP
#define LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP

#include <ostream>
#include <string>

#include "describe/described.hpp"
#include "threads/view/threads_view.hpp"

namespace lotus::tool {

struct threads_options {
  std::string dir;
  bool json = false;
  bool quiet = false;
};

const description<threads_view>& description_of(const threads_view*);

/// Prints how the threads spent their time, according to the samples that `lotus-tool run` took.
/// Returns the exit status. Throws input_error.
int run_threads(const threads_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_COMMANDS_THREADS_HPP
