//! Whether the cores of this machine are taken by others.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long an answer of the system's is taken for true.
const FRESH: Duration = Duration::from_millis(2);

/// Whether other programs take so much of the cores that `threads` threads which wait for each other would mostly wait: by what is
/// running now, which the system reports on Linux. Elsewhere nothing is known, and the answer is no. The calling thread is taken to
/// be one of the `threads`, and the others not to run yet.
pub fn crowded(threads: usize) -> bool {
    /// The start of the clock.
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    /// When it was last asked, in microseconds from then, and what the answer was in the lowest 16 bits.
    static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
    let now = START.get_or_init(Instant::now).elapsed().as_micros() as u64;
    let last = LAST.load(Ordering::Relaxed);
    let is_fresh = last != u64::MAX && now.saturating_sub(last >> 16) < FRESH.as_micros() as u64;
    let running = if is_fresh {
        (last & 0xffff) as usize
    } else {
        let running = system::running().unwrap_or(1).min(0xffff);
        LAST.store(now << 16 | running as u64, Ordering::Relaxed);
        running
    };
    // One of those that run is this thread. A few more among many cores are not worth waiting for.
    let free = system::cores().saturating_sub(running.saturating_sub(1));
    4 * free < 3 * threads.min(system::cores())
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    /// Cores of the machine, also those that this process may not use.
    pub(super) fn cores() -> usize {
        static CORES: OnceLock<usize> = OnceLock::new();
        // SAFETY: asks for a number.
        *CORES.get_or_init(|| unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize)
    }

    /// Threads of all programs that run or could run.
    pub(super) fn running() -> Option<usize> {
        static FILE: OnceLock<Option<File>> = OnceLock::new();
        let file = FILE.get_or_init(|| File::open("/proc/loadavg").ok()).as_ref()?;
        let mut text = [0; 64];
        let count = file.read_at(&mut text, 0).ok()?;
        // As in `0.20 0.18 0.12 1/80 11206`.
        let text = std::str::from_utf8(&text[..count]).ok()?;
        text.split(' ').nth(3)?.split('/').next()?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn cores() -> usize {
        usize::MAX / 8
    }
    pub(super) fn running() -> Option<usize> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_system_reports_at_least_this_thread() {
        assert!(super::system::running().unwrap() >= 1);
        assert!(super::system::cores() >= 1);
        // No machine is too crowded for nobody.
        assert!(!super::crowded(0));
    }
}
