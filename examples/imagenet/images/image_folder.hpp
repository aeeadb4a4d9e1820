// A folder of images, one subfolder a class, as torchvision's ImageFolder reads it.
#ifndef IMAGENET_IMAGE_FOLDER_HPP
#define IMAGENET_IMAGE_FOLDER_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace imagenet {

struct labelled_file {
  std::string path;
  std::int32_t label = 0;
};

/// All DIR/class/**.jpg (.jpeg, in capitals too), sorted by path; labels number the sorted classes.
/// Errors: std::runtime_error that names `directory` when there is none or nothing in it to use.
std::vector<labelled_file> list_images(const std::string& directory);

}  // namespace imagenet

#endif  // IMAGENET_IMAGE_FOLDER_HPP
