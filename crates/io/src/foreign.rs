//! Unsupported kinds of files, recognized by their first bytes.

/// The kind of a file, and advice on how to convert it; `None` if it may be of a supported form.
pub(super) fn named(head: &[u8]) -> Option<&'static str> {
    let text = head.trim_ascii_start().to_ascii_lowercase();
    if text.starts_with(b"<!doctype") || text.starts_with(b"<html") {
        return Some("an HTML page, as a server sends that does not have the file");
    }
    if head.len() == 512 && head.iter().all(|byte| *byte == 0) {
        return Some("all zeros, as an empty tar archive is");
    }
    BEGINNINGS.iter().find(|(beginning, _)| head.starts_with(beginning)).map(|(_, what)| *what)
}

const UTF_32: &str = "text in UTF-32; make it UTF-8 first, with iconv for example";
const UTF_16: &str = "text in UTF-16; make it UTF-8 first, with `iconv -f UTF-16 -t UTF-8` for example";

/// Longer prefixes come before their own prefixes.
const BEGINNINGS: [(&[u8], &str); 22] = [
    (b"\xFF\xFE\0\0", UTF_32),
    (b"\0\0\xFE\xFF", UTF_32),
    (b"%\0\0\0", UTF_32),
    (b"\0\0\0%", UTF_32),
    (b"\xFF\xFE", UTF_16),
    (b"\xFE\xFF", UTF_16),
    (b"%\0", UTF_16),
    (b"\0%", UTF_16),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive; unpack it first"),
    (b"Rar!\x1A\x07", "a RAR archive; unpack it first"),
    (b"\x28\xB5\x2F\xFD", "compressed by zstd; decompress it first, with `zstd -dc` for example"),
    (b"\x04\x22\x4D\x18", "compressed by lz4; decompress it first, with `lz4 -dc` for example"),
    (b"LZIP", "compressed by lzip; decompress it first, with `lzip -dc` for example"),
    (b"\x5D\0\0", "compressed by lzma; decompress it first, with `xz -dc` for example"),
    (b"\x1F\x9D", "compressed by compress; decompress it first, with `gzip -dc` for example"),
    (b"\x1F\xA0", "compressed by compress; decompress it first, with `gzip -dc` for example"),
    (b"!<arch>\n", "an archive of ar; unpack it first"),
    (b"MATLAB 7.3 MAT-file", "a MATLAB file of version 7.3, which is HDF5; write it with -v7"),
    (b"\x89HDF\r\n", "an HDF5 file, as MATLAB writes with -v7.3; write it with -v7"),
    (
        b"version https://git-lfs",
        "a pointer of Git LFS, not the file it stands for; `git lfs pull` fetches that",
    ),
    (b"%PDF-", "a PDF document"),
    (b"\x7FELF", "a program"),
];
