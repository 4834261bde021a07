//! Numbers of a file that the number type does not hold.
use lacuna_engine::Kind;

/// Numbers with the same fate: how many, and the first of them.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) count: u64,
    pub(super) first: Option<Place>,
}

/// Where a number stands, what it is, and what became of it.
#[derive(Debug)]
pub(super) struct Place {
    /// The byte in the block.
    pub(super) at: usize,
    /// The line in the block, counted from 0, and the column, from 1.
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) text: String,
    pub(super) became: f64,
}

impl Lost {
    #[cold]
    pub(super) fn push(&mut self, at: usize, text: impl Fn() -> String, became: f64) {
        self.count += 1;
        self.first.get_or_insert_with(|| Place { at, line: 0, column: 0, text: text(), became });
    }

    fn add(&mut self, other: Lost, lines: u64) {
        self.count += other.count;
        if self.first.is_none() {
            self.first = other.first.map(|place| Place { line: place.line + lines, ..place });
        }
    }
}

/// All of a text or a part of it.
#[derive(Debug, Default)]
pub(super) struct Rounding {
    /// Numbers other than zero that became zero.
    pub(super) vanished: Lost,
    /// Whole numbers that became others.
    pub(super) inexact: Lost,
}

impl Rounding {
    /// Counts the lines up to the first of each.
    pub(super) fn placed(mut self, block: &[u8]) -> Self {
        for place in
            [&mut self.vanished, &mut self.inexact].into_iter().filter_map(|lost| lost.first.as_mut())
        {
            let before = &block[..place.at];
            place.line = before.iter().filter(|&&b| b == b'\n').count() as u64;
            let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
            place.column = (place.at - start + 1) as u64;
        }
        self
    }

    /// Adds those of the next part, before which there are so many lines.
    pub(super) fn add(&mut self, next: Self, lines: u64) {
        self.vanished.add(next.vanished, lines);
        self.inexact.add(next.inexact, lines);
    }

    /// Says what there is to say, a sentence for each kind.
    pub(super) fn tell(&self, name: &str, kind: Kind, notes: &(dyn Fn(&str) + Sync)) {
        let kind = kind.name();
        let tell = |lost: &Lost, why: &dyn Fn(&Place) -> String, others: &str| {
            let Some(first) = &lost.first else { return };
            let more = match lost.count - 1 {
                0 => String::new(),
                1 => format!("; {others} of 1 more"),
                n => format!("; {others} of {n} more"),
            };
            let name = lacuna_engine::text::escaped(name);
            notes(&format!("{name}:{}:{}: {}{more}", first.line + 1, first.column, why(first)));
        };
        let vanished = |p: &Place| format!("{} is too small for {kind} and became 0", p.text);
        tell(&self.vanished, &vanished, "the same is true");
        let inexact = |p: &Place| format!("{} is not exact in {kind} and became {}", p.text, p.became);
        tell(&self.inexact, &inexact, "the like is true");
    }
}
