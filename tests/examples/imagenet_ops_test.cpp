// Tests the image operations of examples/imagenet: resize, flip, tensors, JPEG.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "imagenet/images/drawing.hpp"
#include "imagenet/images/image.hpp"
#include "imagenet/images/jpeg.hpp"
#include "imagenet/images/resize.hpp"
#include "imagenet/random_source.hpp"
#include "imagenet/transforms.hpp"

using namespace imagenet;

namespace {

image filled(int width, int height, std::uint8_t value) {
  image picture{width, height};
  std::fill(picture.pixels.begin(), picture.pixels.end(), value);
  return picture;
}

bool all_equal(const image& picture, std::uint8_t value) {
  return std::all_of(picture.pixels.begin(), picture.pixels.end(),
                     [=](std::uint8_t v) { return v == value; });
}

}  // namespace

TEST_CASE("resizing an image of one color yields an image of that color", "[imagenet]") {
  for (const int size : {1, 7, 64, 224, 500}) {
    for (const std::uint8_t value : std::vector<std::uint8_t>{0, 1, 127, 254, 255}) {
      const image out = crop_and_resize(filled(100, 73, value), {3, 2, 64, 64}, size, size);
      CHECK(out.width == size);
      CHECK(all_equal(out, value));
    }
  }
}

TEST_CASE("shrinking a checkerboard yields gray", "[imagenet]") {
  image board{256, 256};
  for (int y = 0; y < board.height; ++y) {
    for (int x = 0; x < board.width; ++x) {
      std::fill_n(board.pixel(x, y), channels, static_cast<std::uint8_t>((x + y) % 2 * 255));
    }
  }
  const image out = crop_and_resize(board, {0, 0, 256, 256}, 32, 32);
  for (const std::uint8_t value : out.pixels) CHECK(std::abs(value - 128) <= 1);
}

TEST_CASE("resizing to the same size copies the box", "[imagenet]") {
  image picture = draw_picture(1, 0, 20e3);
  const image out = crop_and_resize(picture, {5, 9, 40, 30}, 40, 30);
  for (int y = 0; y < 30; ++y) {
    CHECK(std::equal(out.row(y), out.row(y) + out.row_bytes(), picture.pixel(5, y + 9)));
  }
}

TEST_CASE("doubling the size of two pixels interpolates as Pillow does", "[imagenet]") {
  image step{2, 1};
  std::fill_n(step.pixel(1, 0), channels, std::uint8_t{200});
  const image out = crop_and_resize(step, {0, 0, 2, 1}, 4, 1);
  const std::vector<std::uint8_t> expected{0, 0, 0, 50, 50, 50, 150, 150, 150, 200, 200, 200};
  CHECK(out.pixels == expected);
}

TEST_CASE("RandomResizedCrop yields the chosen size for images of any size", "[imagenet]") {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {1000, 1}, {1, 1000}, {3, 900}, {224, 224}}) {
    const sample out = RandomResizedCrop{224}({filled(width, height, 9), random_source{7}});
    CHECK(out.picture.width == 224);
    CHECK(out.picture.height == 224);
    CHECK(all_equal(out.picture, 9));
  }
}

TEST_CASE("flipping once mirrors an image, and flipping twice restores it", "[imagenet]") {
  for (const int width : {1, 2, 5, 64}) {
    sample flipped{image{width, 3}, random_source{1}};
    for (std::size_t i = 0; i < flipped.picture.pixels.size(); ++i) {
      flipped.picture.pixels[i] = static_cast<std::uint8_t>(i);
    }
    const image before = flipped.picture;
    const RandomHorizontalFlip flip{1.0};
    flip(flipped);
    CHECK(std::equal(before.row(1), before.row(1) + channels, flipped.picture.pixel(width - 1, 1)));
    flip(flipped);
    CHECK(flipped.picture.pixels == before.pixels);
    RandomHorizontalFlip{0.0}(flipped);
    CHECK(flipped.picture.pixels == before.pixels);
  }
}

TEST_CASE("ToTensor and Normalize yield exact values", "[imagenet]") {
  image picture{2, 1};
  picture.pixels = {0, 51, 255, 255, 102, 0};
  tensor out = ToTensor{}({picture, {}});
  CHECK(out.width == 2);
  CHECK(out.height == 1);
  CHECK(out.values == std::vector<float>{0.0F, 1.0F, 51 / 255.0F, 102 / 255.0F, 1.0F, 0.0F});
  Normalize{{0.5F, 0.25F, 0.0F}, {0.5F, 0.5F, 2.0F}}(out);
  CHECK(out.values == std::vector<float>{-1.0F, 1.0F, (51 / 255.0F - 0.25F) / 0.5F,
                                         (102 / 255.0F - 0.25F) / 0.5F, 0.5F, 0.0F});
}

TEST_CASE("encoding and decoding a JPEG changes no value by more than 8", "[imagenet]") {
  for (const int width : {1, 17, 300}) {
    image picture{width, 40};
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < channels; ++c) {
          picture.pixel(x, y)[c] = static_cast<std::uint8_t>(x / 2 + y + 20 * c);
        }
      }
    }
    const image back = decode_jpeg(encode_jpeg(picture, 95));
    REQUIRE(back.width == width);
    REQUIRE(back.height == 40);
    for (std::size_t i = 0; i < back.pixels.size(); ++i) {
      REQUIRE(std::abs(back.pixels[i] - picture.pixels[i]) <= 8);
    }
  }
}

TEST_CASE("decoding anything but a complete JPEG is an error", "[imagenet]") {
  CHECK_THROWS_AS(decode_jpeg({}), image_error);
  CHECK_THROWS_AS(decode_jpeg({0x89, 'P', 'N', 'G', 1, 2, 3}), image_error);
  CHECK_THROWS_AS(read_file("/nonexistent/x.jpg"), image_error);
  CHECK_THROWS_AS(read_file("/"), image_error);
  std::vector<std::uint8_t> bytes = encode_jpeg(draw_picture(1, 1, 30e3), 90);
  for (const std::size_t length : {std::size_t{3}, std::size_t{100}, bytes.size() / 2}) {
    CHECK_THROWS_AS(decode_jpeg({bytes.data(), bytes.data() + length}), image_error);
  }
  // Changes the size in the JPEG header to one for which no machine has enough memory.
  const std::vector<std::uint8_t> frame{0xFF, 0xC0};
  auto at = std::search(bytes.begin(), bytes.end(), frame.begin(), frame.end());
  REQUIRE(at != bytes.end());
  std::fill_n(at + 5, 4, std::uint8_t{0xFF});
  CHECK_THROWS_AS(decode_jpeg(bytes), image_error);
}
