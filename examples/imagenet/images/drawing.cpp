#include "imagenet/images/drawing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "imagenet/images/image.hpp"
#include "imagenet/random_source.hpp"

namespace imagenet {
namespace {

using color = std::array<float, channels>;

color random_color(random_source& random) {
  color c;
  for (float& value : c) value = static_cast<float>(random.uniform(20, 235));
  return c;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

/// Fills the picture with a gradient between random colors in the four corners.
void draw_background(image& picture, random_source& random) {
  const std::array<color, 4> corners{random_color(random), random_color(random),
                                     random_color(random), random_color(random)};
  for (int y = 0; y < picture.height; ++y) {
    const float down = static_cast<float>(y) / static_cast<float>(picture.height);
    std::uint8_t* pixel = picture.row(y);
    for (int x = 0; x < picture.width; ++x) {
      const float along = static_cast<float>(x) / static_cast<float>(picture.width);
      for (std::size_t c = 0; c < channels; ++c) {
        const float top = corners[0][c] + (corners[1][c] - corners[0][c]) * along;
        const float bottom = corners[2][c] + (corners[3][c] - corners[2][c]) * along;
        *pixel++ = to_byte(top + (bottom - top) * down);
      }
    }
  }
}

/// Draws an ellipse of one color, shaded from top to bottom.
void draw_ellipse(image& picture, random_source& random) {
  const double shorter = std::min(picture.width, picture.height);
  const double radius_x = shorter * random.uniform(0.03, 0.35);
  const double radius_y = shorter * random.uniform(0.03, 0.35);
  const double center_x = picture.width * random.uniform();
  const double center_y = picture.height * random.uniform();
  const color fill = random_color(random);
  const int top = std::max(0, static_cast<int>(center_y - radius_y));
  const int bottom = std::min(picture.height, static_cast<int>(center_y + radius_y));
  for (int y = top; y < bottom; ++y) {
    const double down = (y - center_y) / radius_y;
    const double half = radius_x * std::sqrt(std::max(0.0, 1 - down * down));
    const int left = std::max(0, static_cast<int>(center_x - half));
    const int right = std::min(picture.width, static_cast<int>(center_x + half));
    const float light = 1.0F - 0.3F * static_cast<float>(down);
    std::uint8_t* pixel = picture.pixel(left, y);
    for (int x = left; x < right; ++x) {
      for (const float value : fill) *pixel++ = to_byte(value * light);
    }
  }
}

/// Adds noise like that of a camera's sensor. More noise results in a larger file.
void add_grain(image& picture, float amplitude, random_source& random) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < picture.pixels.size(); i += channels) {
    if (i % (std::size_t{8} * channels) == 0) bits = random.next();
    const float grain = (static_cast<float>(bits & 0xFFU) / 127.5F - 1.0F) * amplitude;
    bits >>= 8U;
    for (std::size_t c = i; c < i + channels; ++c) {
      picture.pixels[c] = to_byte(static_cast<float>(picture.pixels[c]) + grain);
    }
  }
}

}  // namespace

image draw_picture(std::uint64_t seed, std::size_t index, double file_bytes) {
  random_source random{seed, 0, index};
  // In ImageNet, larger files have more pixels and also more bytes per pixel.
  const double pixels = 187e3 * std::pow(file_bytes / 70e3, 0.75) * random.uniform(0.8, 1.25);
  constexpr std::array<double, 5> ratios{4.0 / 3, 4.0 / 3, 3.0 / 4, 3.0 / 2, 1.0};
  const double ratio = ratios[random.below(ratios.size())];
  image picture{std::max(32, static_cast<int>(std::sqrt(pixels * ratio))),
                std::max(32, static_cast<int>(std::sqrt(pixels / ratio)))};
  draw_background(picture, random);
  for (int shapes = 0; shapes < 20; ++shapes) draw_ellipse(picture, random);
  const double bytes_per_pixel = file_bytes / pixels;
  add_grain(picture, static_cast<float>(155 * std::pow(bytes_per_pixel, 1.6)), random);
  return picture;
}

}  // namespace imagenet
