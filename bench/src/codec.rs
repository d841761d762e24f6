//! The codecs alone, on the pages of a file: what no reader and no writer can beat.
//!
//! PAGES is a text file with a line for each page: where the codec's bytes begin in FILE, how many they are, and how
//! many they become. Pages that are stored as they are have the same number twice and are copied.

use std::fs;
use std::hint::black_box;

use liblzma::stream::{Action, Check, Filters, LzmaOptions, Status, Stream};
use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};

use crate::Result;
use crate::timing::{self, Report};

/// Largest memory of an lzma decoder, in bytes.
const LZMA_BYTES: u64 = 68 << 20;
/// From this level on ROOT uses LZ4's high-compression mode (`core/lz4/src/ZipLZ4.cxx`).
const LZ4_HIGH_LEVEL: i32 = 4;

type Codec = Box<dyn FnMut(&[u8], &mut [u8]) -> Result<usize>>;

struct Page<'a> {
    stored: &'a [u8],
    size: usize,
}

fn pages<'a>(contents: &'a [u8], list: &str) -> Result<Vec<Page<'a>>> {
    let page = |line: &str| {
        let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
        let &[begin, bytes, size] = numbers.as_slice() else { return Err("three numbers are wanted in a line".into()) };
        let stored = contents.get(begin..begin + bytes).ok_or("a page lies past the end of the file")?;
        Ok(Page { stored, size })
    };
    list.lines().map(page).collect()
}

fn decompressor(codec: &str) -> Result<Codec> {
    Ok(match codec {
        "none" => Box::new(|_, _| Err("a compressed page where none is expected".into())),
        "zstd" => {
            let mut context = zstd::bulk::Decompressor::new()?;
            Box::new(move |page, out| Ok(context.decompress_to_buffer(page, out)?))
        }
        "lz4" => Box::new(|page, out| Ok(decompress_to_buffer(page, Some(i32::try_from(out.len())?), out)?)),
        "zlib" => {
            let mut context = libdeflater::Decompressor::new();
            Box::new(move |page, out| Ok(context.zlib_decompress(page, out)?))
        }
        "lzma" => Box::new(|page, out| {
            let mut stream = Stream::new_stream_decoder(LZMA_BYTES, 0)?;
            stream.process(page, out, Action::Finish)?;
            Ok(usize::try_from(stream.total_out())?)
        }),
        other => return Err(format!("no codec is called \"{other}\"").into()),
    })
}

/// With the settings that ROOT has at that level.
fn compressor(codec: &str, level: i32) -> Result<Codec> {
    Ok(match codec {
        "zstd" => {
            let mut context = zstd::bulk::Compressor::new(2 * level)?;
            Box::new(move |page, out| Ok(context.compress_to_buffer(page, out)?))
        }
        "lz4" => Box::new(move |page, out| {
            let high = CompressionMode::HIGHCOMPRESSION(level);
            let mode = if level >= LZ4_HIGH_LEVEL { high } else { CompressionMode::DEFAULT };
            Ok(compress_to_buffer(page, Some(mode), false, out)?)
        }),
        "zlib" => {
            let level = libdeflater::CompressionLvl::new(level).map_err(|_| "libdeflate has no such level")?;
            let mut context = libdeflater::Compressor::new(level);
            Box::new(move |page, out| Ok(context.zlib_compress(page, out)?))
        }
        "lzma" => {
            let level = u32::try_from(level)?;
            Box::new(move |page, out| {
                let mut options = LzmaOptions::new_preset(level)?;
                options.dict_size(u32::try_from(page.len() / 4)?.max(4096));
                let mut stream = Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32)?;
                let status = stream.process(page, out, Action::Finish)?;
                if status != Status::StreamEnd {
                    return Err("lzma: the page does not fit".into());
                }
                Ok(usize::try_from(stream.total_out())?)
            })
        }
        other => return Err(format!("no codec is called \"{other}\"").into()),
    })
}

fn unpack(codec: &mut Codec, page: &Page<'_>, out: &mut [u8]) -> Result<()> {
    let out = out.get_mut(..page.size).ok_or("a page is larger than the largest")?;
    if page.stored.len() == page.size {
        out.copy_from_slice(page.stored);
    } else if codec(page.stored, out)? != page.size {
        return Err("a page has another size than its list says".into());
    }
    Ok(())
}

/// Every page into the same buffer.
pub(crate) fn decompress(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, list, codec] = arguments else { return Err("decompress wants three arguments".into()) };
    let (contents, list) = (fs::read(file)?, fs::read_to_string(list)?);
    let (pages, mut codec) = (pages(&contents, &list)?, decompressor(codec)?);
    let mut buffer = vec![0; pages.iter().map(|page| page.size).max().unwrap_or(0)];
    let (report, ()) = timing::measure(repeat, || {
        for page in &pages {
            unpack(&mut codec, page, &mut buffer)?;
            black_box(&buffer);
        }
        Ok(())
    })?;
    Ok(report)
}

/// What is in every page again, into the same buffer.
pub(crate) fn compress(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, list, codec, level] = arguments else { return Err("compress wants four arguments".into()) };
    let (contents, list) = (fs::read(file)?, fs::read_to_string(list)?);
    let (mut decompressor, mut compressor) = (decompressor(codec)?, compressor(codec, level.parse()?)?);
    let mut plain = Vec::new();
    for page in pages(&contents, &list)? {
        let mut out = vec![0; page.size];
        unpack(&mut decompressor, &page, &mut out)?;
        plain.push(out);
    }
    let largest = plain.iter().map(Vec::len).max().unwrap_or(0);
    // Enough for every codec: all say themselves where it is not.
    let mut buffer = vec![0; compress_bound(largest)?.max(zstd::zstd_safe::compress_bound(largest)) + largest / 8];
    let (report, ()) = timing::measure(repeat, || {
        for page in &plain {
            black_box(compressor(page, &mut buffer)?);
        }
        Ok(())
    })?;
    Ok(report)
}
