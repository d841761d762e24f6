//! The column types of the format (format specification, "Column Description").

use std::ops::RangeInclusive;

macro_rules! column_types {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $bits:expr;)*) => {
        /// The type of the elements of a column and their storage in a page: the code in a column description.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ColumnType {
            $($(#[$doc])* $name = $code,)*
        }

        impl ColumnType {
            /// All types, by code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The type with this code; none if it is unknown to this version.
            pub const fn from_code(code: u16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name in the format specification, which is also that of the variant.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The bits on storage that one element may have.
            pub const fn bits_range(self) -> RangeInclusive<u16> {
                match self {
                    $(Self::$name => $bits,)*
                }
            }
        }
    };
}

column_types! {
    /// Boolean, packed least significant bit first.
    Bit = 0x00, 1..=1;
    /// Uninterpreted byte.
    Byte = 0x01, 8..=8;
    /// Character of a string.
    Char = 0x02, 8..=8;
    /// Two's complement.
    Int8 = 0x03, 8..=8;
    /// Unsigned.
    UInt8 = 0x04, 8..=8;
    /// Two's complement, little-endian.
    Int16 = 0x05, 16..=16;
    /// Unsigned, little-endian.
    UInt16 = 0x06, 16..=16;
    /// Two's complement, little-endian.
    Int32 = 0x07, 32..=32;
    /// Unsigned, little-endian.
    UInt32 = 0x08, 32..=32;
    /// Two's complement, little-endian.
    Int64 = 0x09, 64..=64;
    /// Unsigned, little-endian.
    UInt64 = 0x0a, 64..=64;
    /// IEEE 754 half precision.
    Real16 = 0x0b, 16..=16;
    /// IEEE 754 single precision.
    Real32 = 0x0c, 32..=32;
    /// IEEE 754 double precision.
    Real64 = 0x0d, 64..=64;
    /// End of each collection, counted from the start of the cluster.
    Index32 = 0x0e, 32..=32;
    /// End of each collection, counted from the start of the cluster.
    Index64 = 0x0f, 64..=64;
    /// 64-bit index and 32-bit tag of a variant; tag 0 is a variant without a value.
    Switch = 0x10, 96..=96;
    /// Zigzag, then split.
    SplitInt16 = 0x11, 16..=16;
    /// Split.
    SplitUInt16 = 0x12, 16..=16;
    /// Zigzag, then split.
    SplitInt32 = 0x13, 32..=32;
    /// Split.
    SplitUInt32 = 0x14, 32..=32;
    /// Zigzag, then split.
    SplitInt64 = 0x15, 64..=64;
    /// Split.
    SplitUInt64 = 0x16, 64..=64;
    /// Split; the specification lists it, ROOT's C++ does not know it.
    SplitReal16 = 0x17, 16..=16;
    /// Split.
    SplitReal32 = 0x18, 32..=32;
    /// Split.
    SplitReal64 = 0x19, 64..=64;
    /// Differences, then split.
    SplitIndex32 = 0x1a, 32..=32;
    /// Differences, then split.
    SplitIndex64 = 0x1b, 64..=64;
    /// The most significant bits of a single-precision number, bit-packed.
    Real32Trunc = 0x1c, 10..=31;
    /// Steps of equal size between the ends of a value range, bit-packed.
    Real32Quant = 0x1d, 1..=32;
}

impl ColumnType {
    /// The code in a column description.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Whether elements are ends of collections.
    pub const fn is_index(self) -> bool {
        matches!(self.unsplit(), Self::Index32 | Self::Index64)
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_real(self) -> bool {
        matches!(self.unsplit(), Self::Real16 | Self::Real32 | Self::Real64 | Self::Real32Trunc | Self::Real32Quant)
    }

    /// The same elements without split encoding; the type itself if it has none.
    pub const fn unsplit(self) -> Self {
        match self {
            Self::SplitInt16 => Self::Int16,
            Self::SplitUInt16 => Self::UInt16,
            Self::SplitInt32 => Self::Int32,
            Self::SplitUInt32 => Self::UInt32,
            Self::SplitInt64 => Self::Int64,
            Self::SplitUInt64 => Self::UInt64,
            Self::SplitReal16 => Self::Real16,
            Self::SplitReal32 => Self::Real32,
            Self::SplitReal64 => Self::Real64,
            Self::SplitIndex32 => Self::Index32,
            Self::SplitIndex64 => Self::Index64,
            other => other,
        }
    }

    /// The same elements in split encoding; the type itself if there is none for it.
    pub const fn split(self) -> Self {
        match self {
            Self::Int16 => Self::SplitInt16,
            Self::UInt16 => Self::SplitUInt16,
            Self::Int32 => Self::SplitInt32,
            Self::UInt32 => Self::SplitUInt32,
            Self::Int64 => Self::SplitInt64,
            Self::UInt64 => Self::SplitUInt64,
            Self::Real16 => Self::SplitReal16,
            Self::Real32 => Self::SplitReal32,
            Self::Real64 => Self::SplitReal64,
            Self::Index32 => Self::SplitIndex32,
            Self::Index64 => Self::SplitIndex64,
            other => other,
        }
    }

    /// Bytes of one element in memory for the types that [`decode_fixed`](super::decode_fixed) takes; none for others.
    pub const fn width_bytes(self) -> Option<usize> {
        match self.unsplit() {
            Self::Byte | Self::Char | Self::Int8 | Self::UInt8 => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Real32 => Some(4),
            Self::Int64 | Self::UInt64 | Self::Real64 => Some(8),
            _ => None,
        }
    }
}
