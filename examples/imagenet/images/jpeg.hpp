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

/// Returns the contents of a file. Throws image_error.
std::vector<std::uint8_t> read_file(const std::string& path);

/// Decodes a JPEG; converts grayscale and CMYK images to RGB. Throws image_error, also if the file
/// is incomplete.
image decode_jpeg(const std::vector<std::uint8_t>& bytes);

/// Encodes an image as a JPEG with 4:2:0 subsampling of the colors. Throws image_error.
/// @param quality  1 to 100.
std::vector<std::uint8_t> encode_jpeg(const image& picture, int quality);

}  // namespace imagenet

#endif  // IMAGENET_JPEG_HPP
