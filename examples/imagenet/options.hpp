// Parses the command line of imagenet_pipeline.
#ifndef IMAGENET_OPTIONS_HPP
#define IMAGENET_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "imagenet/workers.hpp"

namespace imagenet {

struct pipeline_options {
  std::string images;       ///< folder of images with a subfolder per class; empty: generate images
  std::string make_images;  ///< directory for the generated images; empty: use a temporary one
  std::size_t count = 600;
  std::uint64_t seed = 1;
  std::size_t workers = 4;
  worker_kind kind = worker_kind::thread;
  std::size_t batch_size = 32;
  std::uint64_t epochs = 1;
  double step_ms = 20;
  /// Prefix of the log files' names; "none": do not record.
  std::string log_file = "run/lotustrace_log";
};

/// Parses the command line. Prints the help, or one line on stderr that describes an error.
/// @return  nullopt if the program should end with `exit_status`.
std::optional<pipeline_options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace imagenet

#endif  // IMAGENET_OPTIONS_HPP
