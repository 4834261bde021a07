//! Memory available to this process, so that requests that cannot fit are refused before any work.
use crate::{Error, Result};

/// Bytes that this process can still use: the minimum of the memory and free swap space that the system
/// reports, the remaining quota of its control groups, and the remaining address space limit. `None` if the
/// system does not report it.
pub fn available() -> Option<u64> {
    system::available()
}

/// Requests of fewer bytes are not checked.
const MUCH: u64 = 256 << 20;

/// Refuses requests of more bytes than are available. Small requests are not checked.
///
/// # Errors
/// [`Error::OutOfMemory`] for the operation.
pub fn check(operation: &str, bytes: u64) -> Result<()> {
    match if bytes < MUCH { None } else { available() } {
        Some(available) if bytes > available => Err(Error::OutOfMemory {
            operation: operation.into(),
            device: "the host".into(),
            requested: bytes,
            available: Some(available),
        }),
        _ => Ok(()),
    }
}

/// As [`check`], and asks the system for the memory, which it gets back at once: for what allocates so much in many steps that
/// cannot be refused.
///
/// # Errors
/// [`Error::OutOfMemory`] for the operation.
pub fn probe(operation: &str, bytes: u64) -> Result<()> {
    check(operation, bytes)?;
    let room = usize::try_from(bytes).map_err(|_| ()).and_then(|bytes| {
        let mut room = Vec::<u8>::new();
        room.try_reserve_exact(bytes).map_err(|_| ())
    });
    room.map_err(|()| Error::OutOfMemory {
        operation: operation.into(),
        device: "the host".into(),
        requested: bytes,
        available: None,
    })
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::read_to_string;
    use std::path::{Path, PathBuf};

    pub(super) fn available() -> Option<u64> {
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let of_groups = folders(&groups).into_iter().filter_map(|(folder, files)| of_group(&folder, files));
        of_groups.chain(of_machine()).chain(of_addresses()).min()
    }

    /// The number after a name at the start of a line, in the unit used there.
    pub(super) fn number(text: &str, name: &str) -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    }

    fn of_machine() -> Option<u64> {
        let about = read_to_string("/proc/meminfo").ok()?;
        let kilobytes = number(&about, "MemAvailable:")? + number(&about, "SwapFree:").unwrap_or(0);
        Some(kilobytes * 1024)
    }

    fn of_addresses() -> Option<u64> {
        let limit = number(&read_to_string("/proc/self/limits").ok()?, "Max address space")?;
        let used = number(&read_to_string("/proc/self/status").ok()?, "VmSize:")? * 1024;
        Some(limit.saturating_sub(used))
    }

    /// File names of the limit and the usage, and the names of the reclaimable parts of the usage.
    type Files = [&'static str; 4];
    const VERSION_1: Files =
        ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"];
    const VERSION_2: Files = ["memory.max", "memory.current", "inactive_file", "active_file"];

    /// The folders of the control groups of a process, and of their ancestors. Within a container, only the
    /// outermost one may be visible.
    pub(super) fn folders(groups: &str) -> Vec<(PathBuf, Files)> {
        let mut folders = Vec::new();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let (root, files) = match controllers {
                "" => ("/sys/fs/cgroup", VERSION_2),
                list if list.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", VERSION_1),
                _ => continue,
            };
            let own = Path::new(path.trim_start_matches('/'));
            folders.extend(own.ancestors().map(|group| (Path::new(root).join(group), files)));
        }
        folders
    }

    pub(super) fn of_group(folder: &Path, [limit, used, idle, active]: Files) -> Option<u64> {
        let number_in = |file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let (limit, used) = (number_in(limit)?, number_in(used)?);
        let about = read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = [idle, active].iter().filter_map(|name| number(&about, &format!("{name} "))).sum();
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn available() -> Option<u64> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn there_is_some_but_not_any_amount() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
        assert!(check("little", 1).is_ok());
        assert!(probe("little", 1 << 20).is_ok() && probe("much", 1 << 60).is_err());
        let refused = check("much", u64::MAX).expect_err("more than there is").to_string();
        assert!(
            refused.starts_with("much: out of memory on the host: 18446744073709551615 bytes"),
            "{refused}"
        );
    }

    #[test]
    fn groups_and_those_around_them_count() {
        let folders = system::folders("9:cpu,memory:/a/b\n5:devices:/\n0::/c\n");
        let paths: Vec<_> = folders.iter().map(|(path, _)| path.to_str().unwrap_or_default()).collect();
        let of_memory = ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory/"];
        assert_eq!(paths, [&of_memory[..], &["/sys/fs/cgroup/c", "/sys/fs/cgroup/"]].concat());
    }

    #[test]
    fn what_is_cached_can_be_had_back() {
        let folder = std::env::temp_dir().join(format!("lacuna-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = ["memory.max", "memory.current", "inactive_file", "active_file"];
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(system::of_group(&folder, files), None);
        write("memory.max", "1000\n");
        write("memory.stat", "anon 600\nactive_file 20\ninactive_file 80\nworkingset 7\n");
        assert_eq!(system::of_group(&folder, files), Some(400));
        assert_eq!(system::of_group(Path::new("/nowhere"), files), None);
        assert_eq!(system::number("MemFree: 3 kB\nMemAvailable:  12 kB\n", "MemAvailable:"), Some(12));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
