//! Checks that the examples still draw the pictures in `docs/gallery`, which have few shades so that files
//! are small.
//! `LACUNA_GALLERY=write cargo test --release -p lacuna-sparse --test suite gallery` writes them.
#![cfg(all(feature = "cpu", feature = "direct", feature = "eigen"))]
// Each example includes the drawing module.
#![allow(clippy::duplicate_mod)]
use std::path::Path;

/// Largest mean difference of colour values, which range to 255. Rounding differences between platforms
/// change the shade of only a few pixels.
const TOLERANCE: f64 = 0.25;

/// Width, and red, green and blue of all pixels.
fn decode(bytes: &[u8]) -> (u32, Vec<u8>) {
    let mut reader = png::Decoder::new(bytes).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    (frame.width, pixels)
}

fn check(name: &str, drawn: &[u8]) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gallery").join(name).with_extension("png");
    if std::env::var("LACUNA_GALLERY").is_ok_and(|word| word == "write") {
        std::fs::write(&path, drawn).unwrap();
    }
    assert!(drawn.len() < 60_000, "{name}: {} bytes are too many for the gallery", drawn.len());
    let (drawn, kept) = (decode(drawn), decode(&std::fs::read(&path).unwrap()));
    assert_eq!((drawn.0, drawn.1.len()), (kept.0, kept.1.len()), "{name}: the size differs");
    let differences = drawn.1.iter().zip(&kept.1).map(|(a, b)| f64::from(a.abs_diff(*b)));
    let mean = differences.sum::<f64>() / kept.1.len() as f64;
    assert!(mean <= TOLERANCE, "{name}: differs by {mean}; `LACUNA_GALLERY=write` keeps the new picture");
}

macro_rules! pictures {
    ($($name:ident $shades:literal $file:literal)*) => {$(
        #[allow(dead_code)]
        #[path = $file]
        mod $name;

        #[test]
        fn $name() {
            check(stringify!($name), &$name::draw().unwrap().small_png($shades).unwrap());
        }
    )*};
}

pictures! {
    heat 51.0 "../../examples/heat.rs"
    drum 42.0 "../../examples/drum.rs"
    modes 25.0 "../../examples/modes.rs"
    spectral 85.0 "../../examples/spectral.rs"
    reservoir 42.0 "../../examples/reservoir.rs"
    waves 42.0 "../../examples/waves.rs"
    poisson_edit 255.0 "../../examples/poisson_edit.rs"
    smooth 51.0 "../../examples/smooth.rs"
    lscm 85.0 "../../examples/lscm.rs"
    black_scholes 85.0 "../../examples/black_scholes.rs"
}
