#include "imagenet/images/jpeg.hpp"

#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "imagenet/images/image.hpp"
// libjpeg's headers come last, because they use FILE and size_t without declaring them.
#include <jerror.h>
#include <jpeglib.h>

namespace imagenet {
namespace {

// Larger images are rejected: even a tiny damaged file may claim to have 65,500 x 65,500 pixels.
constexpr std::uint64_t max_pixels = 1U << 28U;

/// Converts libjpeg's errors to exceptions. libjpeg reports an error by calling a function that
/// must not return. libjpeg's default function ends the program; the function of this class jumps
/// back to guarded(), which throws.
class error_manager {
 public:
  error_manager() {
    jpeg_std_error(&base_);
    base_.error_exit = [](j_common_ptr codec) { of(codec).fail(codec); };
    base_.emit_message = [](j_common_ptr codec, int level) {
      const bool ends_early = codec->err->msg_code == JWRN_JPEG_EOF;
      if (level < 0 && ends_early) of(codec).fail(codec);
    };
  }

  jpeg_error_mgr* base() { return &base_; }

  /// Calls `calls`, which calls libjpeg. Throws image_error if libjpeg reports an error. `calls`
  /// must not have local objects with destructors, because the jump skips them.
  template <class F>
  void guarded(F calls) {
    if (setjmp(jump_) != 0) throw image_error{&message_[0]};  // NOLINT(cert-err52-cpp)
    calls();
  }

 private:
  static error_manager& of(j_common_ptr codec) {
    return *static_cast<error_manager*>(codec->client_data);
  }

  [[noreturn]] void fail(j_common_ptr codec) {
    base_.format_message(codec, &message_[0]);
    longjmp(jump_, 1);  // NOLINT(cert-err52-cpp)
  }

  jpeg_error_mgr base_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

/// Owns a jpeg_decompress_struct or jpeg_compress_struct, and destroys it.
template <class Codec>
struct codec_owner {
  explicit codec_owner(error_manager& errors) {
    codec.err = errors.base();
    codec.client_data = &errors;
  }
  codec_owner(const codec_owner&) = delete;
  codec_owner& operator=(const codec_owner&) = delete;
  ~codec_owner() { jpeg_destroy(reinterpret_cast<j_common_ptr>(&codec)); }

  Codec codec{};
};

/// Converts a row of CMYK pixels to RGB. The values are stored inverted, as Adobe's and most other
/// programs do.
void cmyk_row_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, int width) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(cmyk[c] * cmyk[3] / 255);
  }
}

}  // namespace

std::vector<std::uint8_t> read_file(const std::string& path) {
  const auto close = [](std::FILE* f) { static_cast<void>(std::fclose(f)); };
  const std::unique_ptr<std::FILE, decltype(close)> file{std::fopen(path.c_str(), "rb"), close};
  if (file == nullptr) throw image_error{std::strerror(errno)};
  std::vector<std::uint8_t> bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + (std::size_t{256} << 10U));
    size += std::fread(bytes.data() + size, 1, bytes.size() - size, file.get());
  } while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0);
  if (std::ferror(file.get()) != 0) throw image_error{std::strerror(errno)};
  bytes.resize(size);
  return bytes;
}

image decode_jpeg(const std::vector<std::uint8_t>& bytes) {
  error_manager errors;
  codec_owner<jpeg_decompress_struct> owner{errors};
  jpeg_decompress_struct& codec = owner.codec;
  errors.guarded([&] {
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&codec, TRUE);
  });
  if (std::uint64_t{codec.image_width} * codec.image_height > max_pixels) {
    throw image_error{"more than 268 million pixels"};
  }
  const bool inks = codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK;
  codec.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  image picture{static_cast<int>(codec.image_width), static_cast<int>(codec.image_height)};
  std::vector<std::uint8_t> ink_row(inks ? picture.row_bytes() / channels * 4 : 0);
  errors.guarded([&] {
    jpeg_start_decompress(&codec);
    while (codec.output_scanline < codec.output_height) {
      std::uint8_t* row = picture.row(static_cast<int>(codec.output_scanline));
      std::uint8_t* target = inks ? ink_row.data() : row;
      jpeg_read_scanlines(&codec, &target, 1);
      if (inks) cmyk_row_to_rgb(target, row, picture.width);
    }
    jpeg_finish_decompress(&codec);
  });
  return picture;
}

std::vector<std::uint8_t> encode_jpeg(const image& picture, int quality) {
  // A JPEG with 4:2:0 subsampling is never larger than the buffer `bytes`, whose size is computed
  // as in TurboJPEG's tjBufSize. So libjpeg never has to allocate a larger buffer.
  const auto padded = [](int length) { return static_cast<std::size_t>(length + 15) / 16 * 16; };
  std::vector<std::uint8_t> bytes(padded(picture.width) * padded(picture.height) * 3 + 2048);
  std::uint8_t* begin = bytes.data();
  auto size = static_cast<unsigned long>(bytes.size());
  error_manager errors;
  codec_owner<jpeg_compress_struct> owner{errors};
  jpeg_compress_struct& codec = owner.codec;
  errors.guarded([&] {
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &begin, &size);
    codec.image_width = static_cast<JDIMENSION>(picture.width);
    codec.image_height = static_cast<JDIMENSION>(picture.height);
    codec.input_components = channels;
    codec.in_color_space = JCS_RGB;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, quality, TRUE);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
      // libjpeg only reads the row, although its interface requires a pointer to non-const data.
      auto* row = const_cast<JSAMPROW>(picture.row(static_cast<int>(codec.next_scanline)));
      jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
  });
  bytes.resize(size);
  return bytes;
}

}  // namespace imagenet
