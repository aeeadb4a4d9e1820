// The transforms of the paper's image-classification pipeline, as callables. The log shows them
// under the names of their types.
#ifndef IMAGENET_TRANSFORMS_HPP
#define IMAGENET_TRANSFORMS_HPP

#include <array>
#include <lotus/lotus.hpp>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// Cuts out 8 to 100 % of the image's area at a ratio of width to height of 3/4 to 4/3, and resizes
/// that to a square.
struct RandomResizedCrop {
  int size_px;
  sample operator()(sample in) const;
};

/// Mirrors left and right with the given probability.
struct RandomHorizontalFlip {
  double probability = 0.5;
  void operator()(sample& inout) const;
};

/// 0 to 255, channels interleaved -> 0 to 1, one plane a channel.
struct ToTensor {
  tensor operator()(const sample& in) const;
};

/// (value - mean) / std, by channel.
struct Normalize {
  std::array<float, channels> mean;
  std::array<float, channels> std;
  void operator()(tensor& inout) const;
};

constexpr int crop_px = 224;

/// All of the above with the mean and std of ImageNet: takes a sample, returns a tensor.
inline auto training_transform() {
  return lotus::compose(RandomResizedCrop{crop_px}, RandomHorizontalFlip{}, ToTensor{},
                        Normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}});
}

}  // namespace imagenet

#endif  // IMAGENET_TRANSFORMS_HPP
