//! Writes, for each library, a function of the name of each of its functions, which jumps to where a table says. At first each
//! entry of the table leads to code that has the library loaded and the table filled.
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/functions");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let out = PathBuf::from(variable("OUT_DIR"));
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    // The crate with OpenCL's declarations names a library to link with, which then has to be there.
    let stand_in = out.join("libOpenCL.so");
    fs::write(&stand_in, "INPUT()\n").unwrap_or_else(|error| panic!("{}: {error}", stand_in.display()));
    if variable("CARGO_CFG_TARGET_OS") == "linux" && ["x86_64", "aarch64"].contains(&&*arch) {
        println!("cargo:rustc-link-search=native={}", out.display());
    }
    for library in ["cuda", "opencl"] {
        let list = fs::read_to_string(format!("src/functions/{library}.txt"));
        let list = list.unwrap_or_else(|error| panic!("src/functions/{library}.txt: {error}"));
        let names: Vec<&str> = list.lines().collect();
        let code = if arch == "aarch64" { aarch64(library, &names) } else { x86_64(library, &names) };
        let names: String = names.iter().map(|name| format!("    c\"{name}\",\n")).collect();
        for (file, text) in [("s", code), ("names", format!("&[\n{names}]\n"))] {
            let path = out.join(format!("{library}.{file}"));
            fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// The table, whose entries lead to the code of each function's first call, and whether the library was found: 0 if not asked yet.
fn table(library: &str, names: &[&str]) -> String {
    let mut text = String::from(".section .data.rel,\"aw\"\n.balign 8\n");
    let _ = writeln!(text, "lacuna_{library}_table:");
    (0..names.len()).for_each(|i| _ = writeln!(text, ".quad lacuna_{library}_first_{i}"));
    let _ = writeln!(text, ".globl lacuna_{library}_state\n.hidden lacuna_{library}_state");
    let _ = writeln!(text, "lacuna_{library}_state: .quad 0\n.text");
    text
}

/// Where a function begins, which is no symbol of a shared library.
fn head(name: &str) -> String {
    format!(".globl {name}\n.hidden {name}\n.type {name},@function\n{name}:\n")
}

fn x86_64(library: &str, names: &[&str]) -> String {
    let mut text = table(library, names);
    for (i, name) in names.iter().enumerate() {
        let place = 8 * i;
        text += &head(name);
        let _ = writeln!(text, "jmp *(lacuna_{library}_table+{place})(%rip)");
        let _ = writeln!(text, "lacuna_{library}_first_{i}:\nmovl ${i}, %r11d\njmp lacuna_{library}_first");
    }
    let _ = writeln!(text, "lacuna_{library}_first:\npushq %rbp\nmovq %rsp, %rbp");
    let registers = ["rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax", "r11"];
    registers.iter().for_each(|register| _ = writeln!(text, "pushq %{register}"));
    text += "subq $128, %rsp\n";
    (0..8).for_each(|k| _ = writeln!(text, "movups %xmm{k}, {}(%rsp)", 16 * k));
    let _ =
        writeln!(text, "leaq lacuna_{library}_table(%rip), %rdi\nleaq lacuna_{library}_state(%rip), %rsi");
    text += "call {load}\n";
    (0..8).for_each(|k| _ = writeln!(text, "movups {}(%rsp), %xmm{k}", 16 * k));
    text += "addq $128, %rsp\n";
    registers.iter().rev().for_each(|register| _ = writeln!(text, "popq %{register}"));
    let _ = writeln!(text, "popq %rbp\nleaq lacuna_{library}_table(%rip), %r10\njmp *(%r10,%r11,8)");
    text += ".section .note.GNU-stack,\"\",@progbits\n.text\n";
    text
}

fn aarch64(library: &str, names: &[&str]) -> String {
    let mut text = table(library, names);
    let address =
        |register: &str, of: &str| format!("adrp {register}, {of}\nadd {register}, {register}, :lo12:{of}\n");
    let start = address("x16", &format!("lacuna_{library}_table"));
    for (i, name) in names.iter().enumerate() {
        text += &head(name).replace('@', "%");
        let _ = writeln!(text, "{start}ldr x17, [x16, #{}]\nbr x17", 8 * i);
        let _ = writeln!(text, "lacuna_{library}_first_{i}:\nmov w17, #{i}\nb lacuna_{library}_first");
    }
    let _ = writeln!(text, "lacuna_{library}_first:\nstp x29, x30, [sp, #-224]!\nmov x29, sp");
    let pairs = [("x0", "x1"), ("x2", "x3"), ("x4", "x5"), ("x6", "x7"), ("x8", "x17")];
    let wide = [("q0", "q1"), ("q2", "q3"), ("q4", "q5"), ("q6", "q7")];
    let moves = |how: &str| {
        let mut text = String::new();
        let narrow = pairs.iter().enumerate().map(|(k, pair)| (pair, 16 + 16 * k));
        let wide = wide.iter().enumerate().map(|(k, pair)| (pair, 96 + 32 * k));
        for ((first, second), place) in narrow.chain(wide) {
            let _ = writeln!(text, "{how} {first}, {second}, [sp, #{place}]");
        }
        text
    };
    text += &moves("stp");
    text += &address("x0", &format!("lacuna_{library}_table"));
    text += &address("x1", &format!("lacuna_{library}_state"));
    text += "bl {load}\n";
    text += &moves("ldp");
    let _ = writeln!(text, "ldp x29, x30, [sp], #224\n{start}ldr x17, [x16, x17, lsl #3]\nbr x17");
    text += ".section .note.GNU-stack,\"\",%progbits\n.text\n";
    text
}
