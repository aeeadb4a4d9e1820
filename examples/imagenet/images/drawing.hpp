// Draws pictures that compress about as well as photographs.
#ifndef IMAGENET_DRAWING_HPP
#define IMAGENET_DRAWING_HPP

#include <cstddef>
#include <cstdint>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// Draws picture `index` of a set, with gradients, shapes and noise. The picture has as many pixels
/// as a typical photograph in ImageNet whose file has `file_bytes` bytes.
image draw_picture(std::uint64_t seed, std::size_t index, double file_bytes);

}  // namespace imagenet

#endif  // IMAGENET_DRAWING_HPP
