//! Compiles `kernels-cuda/*.cu` into fatbins that the crate embeds: Turing, Ampere, Hopper, and PTX for later
//! architectures.
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::{env, fs, thread};

/// Machine code for these architectures, and PTX of the last one.
const ARCHITECTURES: [&str; 3] = ["75", "80", "90"];

fn main() {
    let kernels = PathBuf::from(env::var_os("DEP_LACUNA_KERNELS_CUDA_FOLDER").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed={}", kernels.display());
    for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "LACUNA_CUDA_ARCHITECTURES"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    if env::var_os("DOCS_RS").is_some() {
        // docs.rs builds without nvcc and without kernels.
        fs::write(out.join("fatbins.rs"), "&[]")
            .unwrap_or_else(|e| fail(&format!("writing fatbins.rs: {e}")));
        return;
    }
    let nvcc = find_nvcc();
    // The constants of the encoding, for the kernels.
    fs::write(out.join("layout.h"), lacuna_engine::encode::c_header())
        .unwrap_or_else(|e| fail(&format!("writing layout.h: {e}")));
    // The kernels that are OpenCL C, with what they begin with.
    for (name, text) in lacuna_kernels_opencl::LEVELS {
        fs::write(out.join(name), text).unwrap_or_else(|e| fail(&format!("writing {name}: {e}")));
    }
    let mut sources: Vec<PathBuf> = fs::read_dir(&kernels)
        .unwrap_or_else(|e| fail(&format!("reading {}: {e}", kernels.display())))
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .inspect(|path| println!("cargo:rerun-if-changed={}", path.display()))
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .collect();
    sources.sort();
    let wanted = env::var("LACUNA_CUDA_ARCHITECTURES").unwrap_or_else(|_| ARCHITECTURES.join(","));
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
    // A fifth of the size; compilers before 12.4 have no choice of compressions.
    let help = Command::new(&nvcc).arg("--help").output();
    let smaller = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--compress-mode"));
    thread::scope(|scope| {
        let runs: Vec<_> = sources
            .iter()
            .map(|source| scope.spawn(|| compile(&nvcc, source, &out, &wanted, smaller)))
            .collect();
        for run in runs {
            if let Err(message) = run.join().unwrap_or_else(|_| Err("the thread that ran nvcc died".into())) {
                fail(&message);
            }
        }
    });
    let list: String = sources
        .iter()
        .map(|s| s.file_stem().unwrap_or_default().to_string_lossy().into_owned())
        .map(|stem| {
            format!("    ({stem:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{stem}.fatbin\"))),\n")
        })
        .collect();
    let list = format!("&[\n{list}]\n");
    fs::write(out.join("fatbins.rs"), list).unwrap_or_else(|e| fail(&format!("writing fatbins.rs: {e}")));
}

fn compile(
    nvcc: &Path,
    source: &Path,
    out: &Path,
    architectures: &[&str],
    smaller: bool,
) -> Result<(), String> {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut command = Command::new(nvcc);
    if smaller {
        command.arg("--compress-mode=size");
    }
    // No contraction: every fused multiply-add is explicit. Division and roots are correctly rounded and
    // subnormals kept, as by nvcc's defaults.
    command.args(["-O3", "-std=c++17", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"]);
    command.args(["-Xptxas", "-v", "-Werror", "all-warnings", "--fatbin"]);
    command.arg("-I").arg(out);
    for a in architectures {
        command.arg(format!("-gencode=arch=compute_{a},code=sm_{a}"));
    }
    if let Some(last) = architectures.last() {
        command.arg(format!("-gencode=arch=compute_{last},code=compute_{last}"));
    }
    command.arg(source).arg("-o").arg(out.join(format!("{stem}.fatbin")));
    let run = command.output().map_err(|e| format!("running {}: {e}", nvcc.display()))?;
    let report = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(format!("nvcc on {}:\n{report}", source.display()));
    }
    // Registers and spills of each kernel, for inspection.
    fs::write(out.join(format!("{stem}.resources")), report.as_bytes())
        .map_err(|e| format!("writing the resources of {stem}: {e}"))
}

/// `NVCC`, then `bin/nvcc` under `CUDA_HOME`, `CUDA_PATH` and the usual folders, then the search path.
fn find_nvcc() -> PathBuf {
    if let Some(nvcc) = env::var_os("NVCC").filter(|v| !v.is_empty()) {
        let nvcc = PathBuf::from(nvcc);
        if works(&nvcc) {
            return nvcc;
        }
        fail(&format!("NVCC names {}, which does not run", nvcc.display()));
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(PathBuf::from);
    let usual = ["/usr/local/cuda", "/opt/cuda"].iter().map(PathBuf::from);
    let candidates = homes.chain(usual).map(|home| home.join("bin/nvcc")).chain([PathBuf::from("nvcc")]);
    candidates.into_iter().find(|nvcc| works(nvcc)).unwrap_or_else(|| {
        fail(
            "nvcc was not found. lacuna-cuda compiles its kernels with the CUDA toolkit, 12.0 or newer. Install it \
             (https://developer.nvidia.com/cuda-downloads) and set CUDA_HOME to its folder or NVCC to the compiler; \
             or, without administrator's rights, run `eval \"$(kernels-cuda/toolkit.sh)\"`, which fetches nvcc as \
             Python wheels. A GPU is not needed to build.",
        )
    })
}

fn works(nvcc: &Path) -> bool {
    Command::new(nvcc).arg("--version").output().is_ok_and(|run| run.status.success())
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    println!("cargo:warning={}", message.replace('\n', " | "));
    exit(1)
}
