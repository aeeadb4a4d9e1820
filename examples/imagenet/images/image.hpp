// Defines the types of the data in the pipeline: image, sample and tensor.
#ifndef IMAGENET_IMAGE_HPP
#define IMAGENET_IMAGE_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "imagenet/random_source.hpp"

namespace imagenet {

constexpr int channels = 3;

/// An RGB image, 8 bits per channel, interleaved, row after row without padding.
struct image {
  image() = default;
  image(int width_px, int height_px)
      : width{width_px},
        height{height_px},
        pixels(static_cast<std::size_t>(width_px) * static_cast<std::size_t>(height_px) *
               channels) {}

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * channels; }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::size_t>(y) * row_bytes();
  }

  std::uint8_t* pixel(int x, int y) { return row(y) + static_cast<std::size_t>(x) * channels; }

  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// An image, and the source of the random numbers for its augmentation. Each sample has its own
/// source, so that the result does not depend on the worker that processes the sample.
struct sample {
  image picture;
  random_source random;
};

/// An image as floats, one plane per channel.
struct tensor {
  int width = 0;
  int height = 0;
  std::vector<float> values;
};

}  // namespace imagenet

#endif  // IMAGENET_IMAGE_HPP
