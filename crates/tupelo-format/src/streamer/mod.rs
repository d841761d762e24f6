//! What ROOT's streamers write: the framing of objects, and the layouts of their classes (`TStreamerInfo`). Records of a
//! file, streamer fields and trees use it.

mod info;
mod streamed;

pub use info::{ClassInfo, Counter, Element, ElementKind, StreamerInfos, code};
pub use streamed::{Pointer, Streamed, Streaming, Version};
