// Pictures that compress about as photographs do.
#ifndef IMAGENET_DRAWING_HPP
#define IMAGENET_DRAWING_HPP

#include <cstddef>
#include <cstdint>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// Draws picture `index` of a set: gradients, shapes and grain, of so many pixels as a photograph
/// of ImageNet with about `file_bytes` has.
image draw_picture(std::uint64_t seed, std::size_t index, double file_bytes);

}  // namespace imagenet

#endif  // IMAGENET_DRAWING_HPP
