// JPEG bytes to images and back, with libjpeg-turbo.
#ifndef IMAGENET_JPEG_HPP
#define IMAGENET_JPEG_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// A file or its contents could not be made an image. what() says why, without the file's name.
class image_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The whole of a file.
/// Errors: image_error.
std::vector<std::uint8_t> read_file(const std::string& path);

/// Greyscale and CMYK come out as RGB. A file that ends early is an error, not half an image.
/// Errors: image_error.
image decode_jpeg(const std::vector<std::uint8_t>& bytes);

/// @param quality  1 to 100; colours are subsampled 4:2:0.
/// Errors: image_error.
std::vector<std::uint8_t> encode_jpeg(const image& picture, int quality);

}  // namespace imagenet

#endif  // IMAGENET_JPEG_HPP
