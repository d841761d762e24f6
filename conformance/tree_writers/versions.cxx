#include "versions.hxx"

void Headless::Streamer(TBuffer &buffer) {
   TObject::Streamer(buffer);
   if (buffer.IsReading())
      buffer >> x;
   else
      buffer << x;
}

void Custom::Streamer(TBuffer &buffer) {
   short before = 0;
   TObject::Streamer(buffer);
   if (buffer.IsReading())
      buffer >> before >> x;
   else
      buffer << before << x;
}
