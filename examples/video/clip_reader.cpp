#include <lotus/lotus.hpp>
#include <string>

#include "video/clip.hpp"
#include "video/ffmpeg.hpp"

namespace video {

void freed::operator()(AVCodecContext* p) const {
  avcodec_free_context(&p);
}
void freed::operator()(AVFrame* p) const {
  av_frame_free(&p);
}
void freed::operator()(AVPacket* p) const {
  av_packet_free(&p);
}
void freed::operator()(AVFormatContext* p) const {
  if (p->iformat != nullptr) {
    avformat_close_input(&p);
    return;
  }
  avio_closep(&p->pb);
  avformat_free_context(p);
}

clip_reader::clip_reader(const std::string& path, int threads)
    : path_{path}, packet_{av_packet_alloc()}, frame_{av_frame_alloc()} {
  LOTUS_SCOPE("Open");
  AVFormatContext* file = nullptr;
  check(avformat_open_input(&file, path.c_str(), nullptr, nullptr), path);
  file_.reset(file);
  check(avformat_find_stream_info(file, nullptr), path);
  const AVCodec* codec = nullptr;
  stream_ = check(av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0), path);
  decoder_.reset(avcodec_alloc_context3(codec));
  check(avcodec_parameters_to_context(decoder_.get(), file->streams[stream_]->codecpar), path);
  decoder_->thread_count = threads;
  decoder_->thread_type = FF_THREAD_FRAME;
  check(avcodec_open2(decoder_.get(), codec, nullptr), path);
}

const AVFrame* clip_reader::next() {
  while (true) {
    if (wants_packet_) read_packet();
    LOTUS_SCOPE("Decode");  // mostly waits, because FFmpeg decodes on its own threads
    if (wants_packet_) {
      check(avcodec_send_packet(decoder_.get(), packet_->data != nullptr ? packet_.get() : nullptr),
            path_);
    }
    const int status = avcodec_receive_frame(decoder_.get(), frame_.get());
    wants_packet_ = status == AVERROR(EAGAIN);
    if (status == AVERROR_EOF) return nullptr;
    if (!wants_packet_ && check(status, path_) == 0) return frame_.get();
  }
}

/// Reads the next packet into packet_. At the end of the file, packet_ becomes empty, which makes
/// the decoder return its last frames.
void clip_reader::read_packet() {
  LOTUS_SCOPE("Demux");
  int status = 0;
  do {
    av_packet_unref(packet_.get());
    status = av_read_frame(file_.get(), packet_.get());
  } while (status == 0 && packet_->stream_index != stream_);
  if (status != AVERROR_EOF) check(status, path_);
}

}  // namespace video
