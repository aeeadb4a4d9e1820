// Provides the transforms of the Lotus paper's image-classification pipeline. Each transform is a
// type, and lotus records it under the name of the type.
#ifndef IMAGENET_TRANSFORMS_HPP
#define IMAGENET_TRANSFORMS_HPP

#include <array>
#include <lotus/lotus.hpp>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// Crops a random part of the image, with 8 to 100 % of its area and a ratio of width to height
/// from 3/4 to 4/3, and resizes this part to a square.
struct RandomResizedCrop {
  int size_px;
  sample operator()(sample in) const;
};

/// Mirrors the image horizontally with the given probability.
struct RandomHorizontalFlip {
  double probability = 0.5;
  void operator()(sample& inout) const;
};

/// Converts bytes from 0 to 255, interleaved, to floats from 0 to 1 with one plane per channel.
struct ToTensor {
  tensor operator()(const sample& in) const;
};

/// Computes (value - mean) / std for each channel.
struct Normalize {
  std::array<float, channels> mean;
  std::array<float, channels> std;
  void operator()(tensor& inout) const;
};

constexpr int crop_px = 224;

/// Returns a callable that crops and flips a sample at random, converts it to a tensor, and
/// normalizes the tensor with ImageNet's mean and standard deviation.
inline auto training_transform() {
  return lotus::compose(RandomResizedCrop{crop_px}, RandomHorizontalFlip{}, ToTensor{},
                        Normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}});
}

}  // namespace imagenet

#endif  // IMAGENET_TRANSFORMS_HPP
