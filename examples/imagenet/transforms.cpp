#include "imagenet/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "imagenet/images/image.hpp"
#include "imagenet/images/resize.hpp"
#include "imagenet/random_source.hpp"

namespace imagenet {
namespace {

constexpr double min_area = 0.08;
constexpr double min_ratio = 3.0 / 4.0;
constexpr double greatest_ratio = 4.0 / 3.0;

/// Returns the largest box in the middle of the picture whose ratio of width to height is
/// permitted.
box middle(const image& picture) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  box part{0, 0, picture.width, picture.height};
  if (ratio < min_ratio) {
    part.height = std::min(picture.height, static_cast<int>(std::lround(part.width / min_ratio)));
  } else if (ratio > greatest_ratio) {
    part.width =
        std::min(picture.width, static_cast<int>(std::lround(part.height * greatest_ratio)));
  }
  part.left = (picture.width - part.width) / 2;
  part.top = (picture.height - part.height) / 2;
  return part;
}

/// Returns a random part of the picture with a permitted ratio of width to height. If ten attempts
/// give no part that fits into the picture, returns the middle of the picture, as torchvision does.
box random_box(const image& picture, random_source& random) {
  const double area = static_cast<double>(picture.width) * picture.height;
  for (int tries = 0; tries < 10; ++tries) {
    const double target_area = area * random.uniform(min_area, 1.0);
    const double ratio = std::exp(random.uniform(std::log(min_ratio), std::log(greatest_ratio)));
    const auto width = static_cast<int>(std::lround(std::sqrt(target_area * ratio)));
    const auto height = static_cast<int>(std::lround(std::sqrt(target_area / ratio)));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    const auto up_to = [&](int most) {
      return static_cast<int>(random.below(static_cast<std::uint64_t>(most) + 1));
    };
    const int left = up_to(picture.width - width);
    const int top = up_to(picture.height - height);
    return {left, top, width, height};
  }
  return middle(picture);
}

}  // namespace

sample RandomResizedCrop::operator()(sample in) const {
  const box part = random_box(in.picture, in.random);
  in.picture = crop_and_resize(in.picture, part, size_px, size_px);
  return in;
}

void RandomHorizontalFlip::operator()(sample& inout) const {
  if (inout.random.uniform() >= probability) return;
  image& picture = inout.picture;
  for (int y = 0; y < picture.height; ++y) {
    std::uint8_t* left = picture.row(y);
    std::uint8_t* right = left + picture.row_bytes() - channels;
    for (; left < right; left += channels, right -= channels) {
      std::swap_ranges(left, left + channels, right);
    }
  }
}

tensor ToTensor::operator()(const sample& in) const {
  const image& picture = in.picture;
  const std::size_t plane = picture.pixels.size() / channels;
  tensor out{picture.width, picture.height, std::vector<float>(picture.pixels.size())};
  for (std::size_t c = 0; c < channels; ++c) {
    const std::uint8_t* pixel = picture.pixels.data() + c;
    float* to = out.values.data() + c * plane;
    for (std::size_t i = 0; i < plane; ++i) {
      to[i] = static_cast<float>(pixel[i * channels]) / 255.0F;
    }
  }
  return out;
}

void Normalize::operator()(tensor& inout) const {
  const std::size_t plane = inout.values.size() / channels;
  float* value = inout.values.data();
  for (std::size_t c = 0; c < channels; ++c) {
    for (float* end = value + plane; value != end; ++value) *value = (*value - mean[c]) / std[c];
  }
}

}  // namespace imagenet
