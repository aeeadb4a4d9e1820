// Which images the pipeline reads: the user's, or a made set.
#ifndef IMAGENET_IMAGE_SOURCE_HPP
#define IMAGENET_IMAGE_SOURCE_HPP

#include <string>
#include <vector>

#include "imagenet/images/image_folder.hpp"
#include "imagenet/options.hpp"

namespace imagenet {

/// Owns the temporary directory when there is one, and removes it.
class image_source {
 public:
  /// Says on stdout what it makes.
  /// Errors: std::runtime_error, one line for the user.
  explicit image_source(const pipeline_options& chosen);
  image_source(const image_source&) = delete;
  image_source& operator=(const image_source&) = delete;
  ~image_source();

  const std::vector<labelled_file>& files() const { return files_; }

 private:
  void remove_temporary_directory();

  std::string temporary_directory_;
  std::vector<labelled_file> files_;
};

}  // namespace imagenet

#endif  // IMAGENET_IMAGE_SOURCE_HPP
