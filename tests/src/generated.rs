//! Tests of the kernels that a GPU backend generates for one program, as opposed to those that stand in for them while they
//! compile.
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Cases whose programs run by generated kernels where a backend waits for its compiler.
const GENERATED: [&str; 8] = [
    "programs::flow",
    "solves::agree",
    "solves::again",
    "solves::gmres_variants",
    "preconditioners::multigrid",
    "narrow::two_levels",
    "narrow::two_narrow_levels",
    "table::equal_bits",
];

/// Runs a case, and fails if it is one of those that are expected to be generated and generated kernels did not run most of its programs. `runs` says how
/// many programs of this thread were run by generated kernels, and how many otherwise.
///
/// # Panics
/// If they did not, or if the case fails.
pub fn by_generated_kernels(name: &str, case: &dyn Fn(), runs: fn() -> [u64; 2]) {
    let before = runs();
    case();
    if GENERATED.contains(&name) {
        let [generated, others] = [0, 1].map(|i| runs()[i] - before[i]);
        assert!(
            generated > others,
            "{name}: {generated} programs ran by generated kernels, {others} without"
        );
    }
}

/// Gives this process an empty folder for compiled kernels, unless `LACUNA_CACHE` names one already, so that what is tested
/// does not depend on what was compiled before. Call it before a device is opened.
pub fn own_cache() {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    const NAME: &str = "lacuna-tests-kernels-";
    FOLDER.get_or_init(|| {
        if let Some(given) = std::env::var_os("LACUNA_CACHE").filter(|given| !given.is_empty()) {
            return given.into();
        }
        // Folders of processes that have ended; a day is longer than any run of tests.
        let old = |path: &PathBuf| -> Option<bool> {
            let ours = path.file_name()?.to_str()?.starts_with(NAME);
            Some(ours && path.metadata().ok()?.modified().ok()?.elapsed().ok()? > Duration::from_secs(86_400))
        };
        let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| old(path) == Some(true)) {
            // Another process may remove it at the same time.
            let _ = std::fs::remove_dir_all(path);
        }
        let folder = std::env::temp_dir().join(format!("{NAME}{}", std::process::id()));
        // SAFETY: no driver is loaded yet, so that nothing reads the environment but Rust code, which takes turns.
        unsafe { std::env::set_var("LACUNA_CACHE", &folder) };
        folder
    });
}
