//! What ROOT's streamers write: the framing of objects, and the layouts of their classes (`TStreamerInfo`). Records of a
//! file, streamer fields and trees use it.

mod edit;
mod info;
mod marks;
mod streamed;

pub use edit::Edits;
pub use info::{ClassInfo, Counter, Element, ElementKind, StreamerInfos, class_checksum, code};
pub use marks::{MarkCounts, Marks, WHOLE_OBJECT, mentions_class};
pub use streamed::{IS_REFERENCED, Pointer, Streamed, Streaming, Version};
