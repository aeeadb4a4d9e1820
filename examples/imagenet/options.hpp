// The command line of imagenet_pipeline.
#ifndef IMAGENET_OPTIONS_HPP
#define IMAGENET_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "imagenet/workers.hpp"

namespace imagenet {

struct pipeline_options {
  std::string images;       ///< ImageFolder directory; empty: make a set
  std::string make_images;  ///< where made sets are kept; empty: in a temporary directory
  std::size_t count = 600;
  std::uint64_t seed = 1;
  std::size_t workers = 4;
  worker_kind kind = worker_kind::thread;
  std::size_t batch_size = 32;
  std::uint64_t epochs = 1;
  double step_ms = 20;
  std::string log_file = "run/lotustrace_log";  ///< "none": do not record
};

/// Prints what there is to print: help, or one line on stderr that says what is wrong.
/// @return nothing when the program should end now, with `exit_status`.
std::optional<pipeline_options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace imagenet

#endif  // IMAGENET_OPTIONS_HPP
