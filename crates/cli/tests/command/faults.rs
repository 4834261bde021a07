//! Writes that fail or are killed, disks that are full, memory that runs out.
use crate::{Bench, Ran};
use std::time::{Duration, Instant};

impl Bench {
    /// Runs the command in a shell that has done something first.
    fn under(&self, first: &str, args: &str) -> Ran {
        let mut command = std::process::Command::new("sh");
        let line = format!("{first}; exec {} {args}", crate::BINARY);
        command.arg("-c").arg(line).current_dir(self.path("")).env("LACUNA_CACHE", "off");
        Ran::from(command.stdin(std::process::Stdio::null()).output().unwrap())
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path("")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Commands that write a file called `out` with this end, of more than 8 blocks.
const WRITES: [(&str, &str); 6] = [
    ("generate gen:poisson2d:200x200 --output", ".mtx"),
    ("generate gen:poisson2d:200x200 --output", ".npz"),
    ("generate gen:poisson2d:200x200 --output", ".petsc"),
    ("generate gen:random:20000:9 --output", ".mtx.gz"),
    ("solve gen:poisson2d:60x60 --output", ".mtx"),
    ("solve gen:poisson2d:60x60 --output", ".npy"),
];

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    for (command, end) in WRITES {
        for there in [None, Some("as it was")] {
            let (bench, name) = (Bench::new(), format!("out{end}"));
            if let Some(text) = there {
                bench.file(&name, text);
            }
            let ran = bench.under("ulimit -f 8; trap '' XFSZ", &format!("{command} {name}"));
            assert_eq!(ran.code, 2, "{command} {name}: {}", ran.err);
            assert!(ran.err.contains(&name) && ran.err.contains("File too large"), "{}", ran.err);
            assert_eq!(std::fs::read_to_string(bench.path(&name)).ok().as_deref(), there);
            assert_eq!(bench.files().len(), usize::from(there.is_some()), "{command}: {:?}", bench.files());
        }
    }
}

#[test]
fn a_write_that_is_killed_leaves_what_was_there() {
    for (command, end) in WRITES {
        let (bench, name) = (Bench::new(), format!("out{end}"));
        bench.file(&name, "as it was");
        // The signal of the limit ends the process within a write.
        let ran = bench.under("ulimit -f 8", &format!("{command} {name}"));
        assert_eq!(ran.code, -1, "{command}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(bench.path(&name)).unwrap(), "as it was", "{command} {name}");
    }
    let bench = Bench::new();
    let mut child = bench.command("generate gen:poisson3d:90x90x90 --output out.mtx").spawn().unwrap();
    let begun = Instant::now();
    while !bench.files().iter().any(|name| name.ends_with(".part"))
        && begun.elapsed() < Duration::from_secs(20)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!bench.path("out.mtx").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let bench = Bench::new();
    for command in [
        "generate gen:poisson2d:200x200 --output /dev/full",
        "solve gen:poisson2d:20x20 --output /dev/full",
        "solve gen:poisson2d:20x20 -q --json /dev/full",
        "info gen:poisson2d:20x20 > /dev/full",
        "solve gen:poisson2d:20x20 > /dev/full",
    ] {
        let ran = bench.under(":", command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains("No space left on device"), "{command}: {}", ran.err);
    }
}

/// With less and less room for addresses a solve ends well, or says that memory is out.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_runs_out_is_reported() {
    let bench = Bench::new();
    let mut refusals = 0;
    for kilobytes in (60_000..260_000).step_by(20_000) {
        let solve = "solve gen:poisson3d:80x80x80 --threads 1 --max-iters 3 --precond none";
        let ran = bench.under(&format!("ulimit -v {kilobytes}"), solve);
        assert!(matches!(ran.code, 1 | 3), "{kilobytes}: {} {}", ran.code, ran.err);
        let out = ran.code == 3;
        assert!(!out || ran.err.contains("out of memory"), "{kilobytes}: {}", ran.err);
        refusals += usize::from(out);
    }
    assert!(refusals > 0, "no limit was low enough");
}
