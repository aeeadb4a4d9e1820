// Cuts a box out of an image and resizes it, antialiased.
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

/// Bilinear. Where it makes things smaller, the filter grows by the same factor, so that every
/// pixel of the box counts: Pillow's BILINEAR, torchvision's antialias=True.
/// @param part  not empty and within `picture`.
image crop_and_resize(const image& picture, const box& part, int width, int height);

}  // namespace imagenet

#endif  // IMAGENET_RESIZE_HPP
