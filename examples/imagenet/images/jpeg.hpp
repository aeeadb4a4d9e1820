// Decodes and encodes JPEG with libjpeg-turbo.
#ifndef IMAGENET_JPEG_HPP
#define IMAGENET_JPEG_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "imagenet/images/image.hpp"

namespace imagenet {

/// Thrown if a file cannot be read or decoded. what() returns the reason without the file's name.
class image_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the contents of a file. Errors: image_error.
std::vector<std::uint8_t> read_file(const std::string& path);

/// Decodes a JPEG; converts grayscale and CMYK images to RGB. Errors: image_error, also if the file
/// ends early.
image decode_jpeg(const std::vector<std::uint8_t>& bytes);

/// @param quality  1 to 100. Colors are subsampled 4:2:0. Errors: image_error.
std::vector<std::uint8_t> encode_jpeg(const image& picture, int quality);

}  // namespace imagenet

#endif  // IMAGENET_JPEG_HPP
