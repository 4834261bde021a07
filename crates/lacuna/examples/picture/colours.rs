//! Colours and colour maps.

/// Red, green and blue, from 0 to 1.
pub(crate) type Colour = [f64; 3];

/// A colour map: equidistant colours, and a colour for isolines.
#[derive(Clone, Copy)]
pub(crate) struct Map {
    stops: &'static [u32],
    pub(crate) line: Colour,
}

/// For general values: dark blue to yellow.
pub(crate) const VIRIDIS: Map = Map {
    stops: &[
        0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725,
    ],
    line: [1.0; 3],
};

/// For temperatures: black to light yellow.
pub(crate) const INFERNO: Map = Map {
    stops: &[
        0x000004, 0x1b0c42, 0x4b0c6b, 0x781c6d, 0xa52c60, 0xcf4446, 0xed6925, 0xfb9a06, 0xf7d03c, 0xfcffa4,
    ],
    line: [1.0; 3],
};

/// For values of both signs: blue, white at 0, red.
pub(crate) const BALANCE: Map = Map {
    stops: &[
        0x123c69, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf9f7f4, 0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b,
        0x6e0a1e,
    ],
    line: [0.2; 3],
};

/// For backgrounds.
pub(crate) const GREY: Map = Map { stops: &[0x2f3640, 0x8a8f98, 0xf4f1ea], line: [0.0; 3] };

/// Colours of curves that colour-blind readers can tell apart (Okabe and Ito).
pub(crate) const LINES: [Colour; 4] =
    [[0.0, 0.447, 0.698], [0.835, 0.369, 0.0], [0.0, 0.62, 0.451], [0.8, 0.475, 0.655]];

impl Map {
    /// The colour at `t`, from 0 to 1.
    pub(crate) fn at(self, t: f64) -> Colour {
        let last = self.stops.len() - 1;
        let t = t.clamp(0.0, 1.0) * last as f64;
        let low = (t as usize).min(last - 1);
        mix(parts(self.stops[low]), parts(self.stops[low + 1]), t - low as f64)
    }
}

/// Linear interpolation from `a` to `b`.
pub(crate) fn mix(a: Colour, b: Colour, t: f64) -> Colour {
    [0, 1, 2].map(|c| a[c] * (1.0 - t) + b[c] * t)
}

fn parts(rgb: u32) -> Colour {
    [16, 8, 0].map(|shift| f64::from(rgb >> shift & 255) / 255.0)
}
