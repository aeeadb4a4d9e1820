// Crops a box from an image and resizes it, with antialiasing.
#ifndef IMAGENET_RESIZE_HPP
#define IMAGENET_RESIZE_HPP

#include "imagenet/images/image.hpp"

namespace imagenet {

/// A rectangle in an image, in pixels from the top left corner of the image.
struct box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

/// Resizes `part` of a picture with bilinear interpolation. If the result is smaller than `part`,
/// the filter becomes wider so that each pixel contributes, as with Pillow's BILINEAR or
/// torchvision's antialias=True.
/// @param part  must not be empty, and must be inside `picture`.
image crop_and_resize(const image& picture, const box& part, int width, int height);

}  // namespace imagenet

#endif  // IMAGENET_RESIZE_HPP
