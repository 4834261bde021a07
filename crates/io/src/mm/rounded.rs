//! Numbers of a file that are not representable in the number type.
use lacuna_engine::NumberType;

/// Numbers with the same loss: how many, and the first of them.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) count: u64,
    pub(super) first: Option<Place>,
}

/// The position of a number, the number, and its rounded value.
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

/// Losses in a text or a part of it.
#[derive(Debug, Default)]
pub(super) struct Rounding {
    /// Nonzero numbers that became zero.
    pub(super) vanished: Lost,
    /// Integers that were rounded.
    pub(super) inexact: Lost,
}

impl Rounding {
    /// Sets the lines of the first number of each kind.
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

    /// Adds the losses of the next part, which starts after `lines` lines.
    pub(super) fn add(&mut self, next: Self, lines: u64) {
        self.vanished.add(next.vanished, lines);
        self.inexact.add(next.inexact, lines);
    }

    /// Reports the losses, one sentence for each kind.
    pub(super) fn report(&self, name: &str, kind: NumberType, notes: &(dyn Fn(&str) + Sync)) {
        let kind = kind.name();
        let note = |lost: &Lost, why: &dyn Fn(&Place) -> String, others: &str| {
            let Some(first) = &lost.first else { return };
            let more = match lost.count - 1 {
                0 => String::new(),
                1 => format!("; {others} of 1 more"),
                n => format!("; {others} of {n} more"),
            };
            let name = lacuna_engine::text::shown_name(name);
            notes(&format!("{name}:{}:{}: {}{more}", first.line + 1, first.column, why(first)));
        };
        let vanished = |p: &Place| format!("{} is too small for {kind} and became 0", p.text);
        note(&self.vanished, &vanished, "the same is true");
        let inexact = |p: &Place| format!("{} is not exact in {kind} and became {}", p.text, p.became);
        note(&self.inexact, &inexact, "the same is true");
    }
}
