// Includes FFmpeg's C headers, and converts FFmpeg's errors to exceptions.
#ifndef EXAMPLES_VIDEO_FFMPEG_HPP
#define EXAMPLES_VIDEO_FFMPEG_HPP

#include <stdexcept>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

namespace video {

/// Returns `status`, the result of a call to FFmpeg, unless it is an error. Throws
/// std::runtime_error, whose text begins with `path`, if it is an error.
inline int check(int status, const std::string& path) {
  if (status >= 0) return status;
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(status, text, sizeof(text));
  throw std::runtime_error(path + ": " + text);
}

}  // namespace video

#endif  // EXAMPLES_VIDEO_FFMPEG_HPP
