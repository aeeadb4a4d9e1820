// Lists a folder of images with one subfolder per class, like torchvision's ImageFolder.
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

/// Returns all files directory/class/**.jpg and .jpeg (in any case), sorted by path. The label of a
/// file is the index of its class. Throws std::runtime_error, which names `directory`, if the
/// directory is missing or contains no images.
std::vector<labelled_file> list_images(const std::string& directory);

}  // namespace imagenet

#endif  // IMAGENET_IMAGE_FOLDER_HPP
