// The command line that the torch examples share.
#ifndef EXAMPLES_TORCH_COMMON_OPTIONS_HPP
#define EXAMPLES_TORCH_COMMON_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace pipeline {

struct options {
  std::string name;       ///< of the program
  std::string in_short;   ///< what it does, for the help
  std::string samples;    ///< what it reads, for the help: "images"
  std::string data;       ///< directory that keeps what is made; empty: a temporary one
  std::size_t count = 0;  ///< samples
  std::int64_t size = 0;  ///< of a sample's edge as the model gets it, in pixels or voxels
  std::size_t batch_size = 0;
  std::size_t workers = 2;
  std::size_t epochs = 1;
  std::int64_t model_width = 8;  ///< channels of its first layer; 0: no training
  std::uint64_t seed = 1;
  std::string log_file = "run/lotustrace_log";  ///< "none": do not record
};

/// A whole main(): reads the command line, runs, and tells where the logs are and what to do next.
/// Errors: one line on stderr.
/// @param defaults  what holds for what the command line does not say.
/// @return the exit status: 2 for wrong use, 1 for any other failure.
int run_program(int argc, char** argv, options defaults,
                const std::function<void(const options&)>& run);

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_OPTIONS_HPP
