// Provides the images that the pipeline reads: those of the user, or generated ones.
#ifndef IMAGENET_IMAGE_SOURCE_HPP
#define IMAGENET_IMAGE_SOURCE_HPP

#include <string>
#include <vector>

#include "imagenet/images/image_folder.hpp"
#include "imagenet/options.hpp"

namespace imagenet {

/// The directory of the images. The destructor removes the directory if it is temporary.
class image_source {
 public:
  /// Generates images if the user chose none, and reports it on stdout. Errors: std::runtime_error.
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
