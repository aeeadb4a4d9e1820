// Provides the images that the pipeline reads: images of the user, or generated ones.
#ifndef IMAGENET_IMAGE_SOURCE_HPP
#define IMAGENET_IMAGE_SOURCE_HPP

#include <string>
#include <vector>

#include "imagenet/images/image_folder.hpp"
#include "imagenet/options.hpp"

namespace imagenet {

/// The images of a run. The destructor removes their directory if it is temporary.
class image_source {
 public:
  /// If the user chose no images, generates some and reports this on stdout. Throws
  /// std::runtime_error if the images cannot be read or generated.
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
