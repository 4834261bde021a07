//! Groups result lines, and gives names to the cases.
use crate::GMRES_ONCE;
use crate::quantity::counted_units;
use crate::record::{Case, Device, Entry, Line, PRODUCTS, Peer, SystemKey, distinct};
use lacuna::backends;

/// The data of a page.
pub struct Results<'a> {
    pub devices: Vec<&'a Device>,
    /// One case for each method on a system; of several runs the median one.
    pub cases: Vec<&'a Case>,
    pub peers: Vec<&'a Peer>,
    /// Names of the legend: ours, then the peers.
    names: Vec<String>,
}

impl<'a> Results<'a> {
    /// The results of a suite, or of no suite.
    pub fn new(lines: &'a [Line], suite: Option<&str>) -> Self {
        let mut results =
            Results { devices: Vec::new(), cases: Vec::new(), peers: Vec::new(), names: Vec::new() };
        let (mut cases, mut peers) = (Vec::new(), Vec::new());
        for line in lines {
            match &line.entry {
                Entry::Device(device) => {
                    let known = |d: &&Device| (&d.backend, &d.device) == (&device.backend, &device.device);
                    if !results.devices.iter().any(known) {
                        results.devices.push(device);
                    }
                }
                Entry::Case(case) if case.suite.as_deref() == suite => cases.push(case),
                Entry::Peer(peer) => peers.push(peer),
                Entry::Case(_) | Entry::Note(_) => {}
            }
        }
        let time = |c: &Case| c.measured.as_ref().map_or(f64::INFINITY, |m| m.again.median);
        results.cases = middle(cases, |a, b| a.same_work(b) && place(a) == place(b), time);
        let peers = middle(peers, |a, b| key(a) == key(b), |p| p.again_us);
        let beside = |p: &&Peer| results.cases.iter().any(|c| results.is_beside(p, c));
        results.peers = peers.into_iter().filter(beside).collect();
        results.names = results.cases.iter().map(|c| results.label(c)).collect();
        let known = backends();
        let order =
            |name: &String| known.iter().position(|b| name.starts_with(b.name)).unwrap_or(known.len());
        results.names.sort_by_key(|name| (order(name), name.clone()));
        results.names.extend(results.peers.iter().map(|p| p.peer.clone()));
        results.names = distinct(results.names.drain(..));
        results
    }

    /// The backend, with its device or its threads if several appear.
    pub fn label(&self, case: &Case) -> String {
        let others = || self.cases.iter().filter(|c| c.backend == case.backend);
        match () {
            () if others().any(|c| c.device != case.device) => format!("{}: {}", case.backend, case.device),
            () if others().any(|c| c.units != case.units) => {
                format!("{}, {}", case.backend, counted_units(&case.backend, case.units))
            }
            () => case.backend.clone(),
        }
    }

    /// Its index in the legend, which selects its colour and its marker.
    pub fn style(&self, name: &str) -> usize {
        self.names.iter().position(|n| n == name).unwrap_or(0)
    }

    /// Every name with its style.
    pub fn names(&self) -> Vec<(usize, String)> {
        self.names.iter().cloned().enumerate().collect()
    }

    /// The systems in order of appearance.
    pub fn systems(&self) -> Vec<&'a SystemKey> {
        distinct(self.cases.iter().map(|c| &c.system))
    }

    /// The cases of a system.
    pub fn of(&self, system: &SystemKey) -> Vec<&'a Case> {
        self.cases.iter().copied().filter(|c| c.system == *system).collect()
    }

    /// The peers that did the same work as a case.
    pub fn peers_of(&self, case: &Case) -> impl Iterator<Item = &'a Peer> {
        self.peers.iter().copied().filter(|p| self.is_beside(p, case))
    }

    /// Whether a peer did the same work as a case. GMRES of peers orthogonalises once, like our gmres-once.
    fn is_beside(&self, peer: &Peer, case: &Case) -> bool {
        let theirs = if case.method == GMRES_ONCE { "gmres" } else { &case.method };
        let ours = (case.system.matrix.as_str(), case.system.number.as_str(), theirs, case.precond.as_str());
        let precond = peer.precond.as_deref().unwrap_or("none");
        let stops = match &peer.stop {
            Some(stop) => *stop == case.stop,
            None => ["30 iterations", PRODUCTS, "once"].contains(&case.stop.as_str()),
        };
        case.given.is_none()
            && stops
            && (peer.matrix.as_str(), peer.number.as_str(), peer.method.as_str(), precond) == ours
    }
}

/// The place where a case ran.
fn place(case: &Case) -> (&str, &str, usize) {
    (&case.backend, &case.device, case.units)
}

type Key<'a> = (&'a str, Option<usize>, &'a str, Option<&'a str>, Option<&'a str>, &'a str, &'a str);

fn key(peer: &Peer) -> Key<'_> {
    let (precond, stop) = (peer.precond.as_deref(), peer.stop.as_deref());
    (&peer.peer, peer.threads, &peer.method, precond, stop, &peer.matrix, &peer.number)
}

/// For each group of equal items, the one with the median time, among those that have a time.
fn middle<'a, T>(items: Vec<&'a T>, same: impl Fn(&T, &T) -> bool, time: impl Fn(&T) -> f64) -> Vec<&'a T> {
    let mut groups: Vec<Vec<&'a T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| same(group[0], item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    let chosen = groups.into_iter().map(|mut group| {
        if group.iter().any(|item| time(item).is_finite()) {
            group.retain(|item| time(item).is_finite());
        }
        group.sort_by(|a, b| time(a).total_cmp(&time(b)));
        group[(group.len() - 1) / 2]
    });
    chosen.collect()
}
