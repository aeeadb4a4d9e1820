// Cuts a box out of an image and resizes it, with antialiasing.
#ifndef IMAGENET_RESIZE_HPP
#define IMAGENET_RESIZE_HPP

#include "imagenet/images/image.hpp"

namespace imagenet {

/// A part of an image, in pixels from its top left corner.
struct box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

/// Resizes `part` of a picture with bilinear interpolation. If the result is smaller than `part`,
/// the filter is widened so that each pixel contributes, as with Pillow's BILINEAR or torchvision's
/// antialias=True.
/// @param part  must not be empty, and must be inside `picture`.
image crop_and_resize(const image& picture, const box& part, int width, int height);

}  // namespace imagenet

#endif  // IMAGENET_RESIZE_HPP
