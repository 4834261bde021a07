//! A drawing: lines, rectangles and text as SVG.
use std::fmt::{Arguments, Write};

/// Colours that are distinct for people with any kind of colour vision (Okabe and Ito).
pub const BLUE: &str = "#0072b2";
pub const ORANGE: &str = "#d55e00";
/// Text and axes.
pub const INK: &str = "#222222";
/// Background lines.
pub const GRID: &str = "#dddddd";

/// The horizontal anchor of a text.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing of a given size, the origin in the upper left corner.
pub struct Figure {
    width: f64,
    height: f64,
    body: String,
}

impl Figure {
    pub fn new(width: f64, height: f64) -> Self {
        Figure { width, height, body: String::new() }
    }

    /// Adds an element.
    pub fn draw(&mut self, element: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], colour: &str, style: &str) {
        self.draw(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" {style}/>"#
        ));
    }

    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, size: f64, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.draw(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#
        ));
    }

    /// Vertical text, read from bottom to top, centred at a point.
    pub fn upright(&mut self, [x, y]: [f64; 2], size: f64, text: &str) {
        let text = escaped(text);
        self.draw(format_args!(
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" font-size="{size}" text-anchor="middle" fill="{INK}">{text}</text>"#
        ));
    }

    /// The drawing as an SVG document.
    pub fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Verdana, sans-serif">
<rect width="{width}" height="{height}" fill="white"/>
{}</svg>
"#,
            self.body
        )
    }

    /// The drawing as part of a page, scaled to the available width, with a description for those who cannot
    /// see it.
    pub fn inline(&self, label: &str) -> String {
        let Figure { width, height, body } = self;
        let label = escaped(label);
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n")
    }
}

/// Text with the characters escaped that XML would treat as markup or reject.
pub fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}'.to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The end of a name that is too long for its space.
pub fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.into();
    }
    let end: String = name.chars().skip(count + 1 - most).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::{escaped, shortened};

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escaped("a<b&\u{1}\""), "a&lt;b&amp;\u{fffd}&quot;");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shortened("abc.mtx", 7), "abc.mtx");
        assert_eq!(shortened("long/abc.mtx", 8), "…abc.mtx");
    }
}
