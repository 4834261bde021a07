//! Results on disk, such as compiled kernels, named by a hash of everything they depend on.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file in the cache.
#[derive(Clone, Debug)]
pub struct Cached(Option<PathBuf>);

impl Cached {
    /// The file for a key. Its name begins with `what` it holds or the backend's name; it is in `$LACUNA_CACHE`, or in `lacuna`
    /// in the user's cache folder. `LACUNA_CACHE=off` disables the cache.
    pub fn new(what: &str, key: &[&str]) -> Cached {
        Cached(path(what, key))
    }
    /// The stored bytes, if any.
    pub fn read(&self) -> Option<Vec<u8>> {
        self.0.as_ref().and_then(|path| std::fs::read(path).ok())
    }
    /// Stores bytes atomically: a reader never sees a partial file. Failing to write is not an error.
    pub fn keep(&self, bytes: &[u8]) {
        let Some(path) = &self.0 else { return };
        // Several threads may compile the same text.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{count}.part", std::process::id()));
        let folder = path.parent().map(std::fs::create_dir_all);
        if matches!(folder, Some(Ok(())))
            && std::fs::write(&part, bytes).is_ok()
            && std::fs::rename(&part, path).is_err()
        {
            let _ = std::fs::remove_file(Path::new(&part));
        }
    }
}

fn path(what: &str, key: &[&str]) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = match set("LACUNA_CACHE") {
        Some(off) if off.as_os_str() == "off" => return None,
        Some(folder) => folder,
        None => set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?.join("lacuna"),
    };
    let hash = |start: u64| {
        let bytes = key.iter().flat_map(|part| part.bytes().chain([0]));
        bytes.fold(start, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) // FNV-1a
    };
    let name = format!("{what}-{:016x}{:016x}.bin", hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
    Some(folder.join(name))
}
