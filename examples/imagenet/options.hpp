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
  std::string images;       ///< folder with a subfolder per class; empty: images are generated
  std::string make_images;  ///< directory for generated images; empty: a temporary one
  std::size_t count = 600;
  std::uint64_t seed = 1;
  std::size_t workers = 4;
  worker_kind kind = worker_kind::thread;
  std::size_t batch_size = 32;
  std::uint64_t epochs = 1;
  double step_ms = 20;
  /// Prefix of the logs' names; "none": do not record.
  std::string log_file = "run/lotustrace_log";
};

/// Parses the command line. Prints the help, or one line on stderr that describes the error.
/// @return  nullopt if the program should end now with `exit_status`.
std::optional<pipeline_options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace imagenet

#endif  // IMAGENET_OPTIONS_HPP
