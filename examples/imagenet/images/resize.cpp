#include "imagenet/images/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "imagenet/images/image.hpp"

namespace imagenet {
namespace {

/// The input pixels that contribute to one output pixel: pixel first + i with the weight
/// weights[i].
struct taps {
  int first = 0;
  const float* weights = nullptr;
  int count = 0;
};

/// For each output pixel along one axis, the input pixels that contribute to it (its taps). They
/// are the same for each row or column.
class axis {
 public:
  axis(int in, int out)
      : scale_{static_cast<double>(in) / out},
        radius_{std::max(scale_, 1.0)},
        max_taps_{static_cast<int>(std::ceil(radius_)) * 2 + 1},
        taps_(static_cast<std::size_t>(out)),
        weights_(taps_.size() * static_cast<std::size_t>(max_taps_)) {
    float* weights = weights_.data();
    for (std::size_t i = 0; i < taps_.size(); ++i, weights += max_taps_) {
      taps_[i] = make_taps((static_cast<double>(i) + 0.5) * scale_, in, weights);
    }
  }

  axis(const axis&) = delete;  // not copyable, because `taps` contains pointers to the weights
  axis& operator=(const axis&) = delete;

  const taps& operator[](int i) const { return taps_[static_cast<std::size_t>(i)]; }

 private:
  /// Returns the input pixels that contribute to an output pixel at `center`, with the weights of a
  /// triangle filter. The filter ends at the edge of the image, and the weights add up to 1.
  taps make_taps(double center, int in, float* weights) const {
    const int first = std::max(0, static_cast<int>(std::lround(center - radius_)));
    const int end = std::min(in, static_cast<int>(std::lround(center + radius_)));
    double sum = 0;
    for (int i = first; i < end; ++i) sum += triangle(i, center);
    for (int i = first; i < end; ++i) {
      weights[i - first] = static_cast<float>(triangle(i, center) / sum);
    }
    return {first, weights, end - first};
  }

  double triangle(int position, double center) const {
    return std::max(0.0, 1.0 - std::abs(position + 0.5 - center) / radius_);
  }

  double scale_;
  double radius_;
  int max_taps_;
  std::vector<taps> taps_;
  std::vector<float> weights_;
};

/// Computes one row of the output with the width of the input. The vertical direction is resized
/// first, because this can be vectorized and leaves fewer rows for the horizontal direction.
void resize_vertically(const image& picture, const box& part, const taps& rows,
                       std::vector<float>& out) {
  std::fill(out.begin(), out.end(), 0.0F);
  const std::size_t left = static_cast<std::size_t>(part.left) * channels;
  for (int i = 0; i < rows.count; ++i) {
    const std::uint8_t* in = picture.row(part.top + rows.first + i) + left;
    const float weight = rows.weights[i];
    for (std::size_t x = 0; x < out.size(); ++x) out[x] += weight * static_cast<float>(in[x]);
  }
}

void resize_horizontally(const std::vector<float>& in, const axis& columns, int width,
                         std::uint8_t* out) {
  for (int x = 0; x < width; ++x, out += channels) {
    const taps& column = columns[x];
    const float* pixel = in.data() + static_cast<std::size_t>(column.first) * channels;
    float sum[channels] = {0.5F, 0.5F, 0.5F};  // adding 0.5 makes the conversion to integers round
    for (int i = 0; i < column.count; ++i, pixel += channels) {
      for (int c = 0; c < channels; ++c) sum[c] += column.weights[i] * pixel[c];
    }
    for (int c = 0; c < channels; ++c) out[c] = static_cast<std::uint8_t>(sum[c]);
  }
}

}  // namespace

image crop_and_resize(const image& picture, const box& part, int width, int height) {
  const axis columns{part.width, width};
  const axis rows{part.height, height};
  std::vector<float> row(static_cast<std::size_t>(part.width) * channels);
  image out{width, height};
  for (int y = 0; y < height; ++y) {
    resize_vertically(picture, part, rows[y], row);
    resize_horizontally(row, columns, width, out.row(y));
  }
  return out;
}

}  // namespace imagenet
