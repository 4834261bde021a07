//! Drawings as PNG, with a bundled font.
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels for each unit of a drawing.
const ZOOM: f32 = 2.0;

/// Draws an SVG document as a PNG.
pub(super) fn encode(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options { font_family: "DejaVu Sans".into(), ..usvg::Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let (width, height) = (tree.size().width() * ZOOM, tree.size().height() * ZOOM);
    let mut pixels = tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| format!("a picture of {width} x {height} pixels is too large"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| e.to_string())
}
