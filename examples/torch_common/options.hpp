// Parses the command line of the torch examples.
#ifndef EXAMPLES_TORCH_COMMON_OPTIONS_HPP
#define EXAMPLES_TORCH_COMMON_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace pipeline {

struct options {
  std::string name;       ///< name of the program
  std::string in_short;   ///< description of the program for its help
  std::string samples;    ///< what the program reads, such as "images", for its help
  std::string data;       ///< directory for generated data; empty: use a temporary one
  std::size_t count = 0;  ///< number of samples
  /// Length of the edges of a sample for the model, in pixels or voxels.
  std::int64_t size = 0;
  std::size_t batch_size = 0;
  std::size_t workers = 2;
  std::size_t epochs = 1;
  std::int64_t model_width = 8;  ///< number of channels of the model's first layer; 0: no training
  std::uint64_t seed = 1;
  std::string log_file = "run/lotustrace_log";  ///< prefix of the logs; "none": do not record
};

/// Implements main(): parses the command line, calls `run`, and prints where the logs are and how
/// to read them. Prints an error as one line on stderr.
/// @param defaults  the values of options that are not on the command line.
/// @return  the exit status: 2 for a usage error, 1 for any other failure, otherwise 0.
int run_program(int argc, char** argv, options defaults,
                const std::function<void(const options&)>& run);

}  // namespace pipeline

#endif  // EXAMPLES_TORCH_COMMON_OPTIONS_HPP
