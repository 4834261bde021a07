//! A weighted graph, and its contraction by pairs.
use crate::order::graph::mirrored;

const NONE: u32 = u32::MAX;

/// An undirected graph. Vertices and edges of a contracted one have the weights of those that they stand for.
pub(super) struct Level {
    ptr: Vec<u32>,
    to: Vec<u32>,
    edge: Vec<u32>,
    pub(super) weight: Vec<u32>,
}

impl Level {
    /// The graph of `A + Aᵀ` of a pattern, without what is no row, and the diagonal.
    pub(super) fn mirrored(n: usize, ptr: &[u32], columns: &[u32]) -> Self {
        let (ptr, to) = mirrored(n, ptr, columns);
        Level { edge: vec![1; to.len()], weight: vec![1; n], ptr, to }
    }

    fn with_room(vertices: usize, edges: usize) -> Self {
        let mut ptr = Vec::with_capacity(vertices + 1);
        ptr.push(0);
        Level { ptr, to: Vec::with_capacity(edges), edge: Vec::new(), weight: Vec::with_capacity(vertices) }
    }

    pub(super) fn len(&self) -> usize {
        self.weight.len()
    }

    /// How many edges there are, in both directions.
    pub(super) fn size(&self) -> usize {
        self.to.len()
    }

    /// The neighbours of a vertex, and the weights of the edges to them.
    #[inline]
    pub(super) fn of(&self, i: u32) -> (&[u32], &[u32]) {
        let range = self.ptr[i as usize] as usize..self.ptr[i as usize + 1] as usize;
        (&self.to[range.clone()], &self.edge[range])
    }

    #[inline]
    pub(super) fn neighbours(&self, i: u32) -> &[u32] {
        &self.to[self.ptr[i as usize] as usize..self.ptr[i as usize + 1] as usize]
    }

    /// The graph of some vertices.
    pub(super) fn restricted(&self, vertices: &[u32]) -> Self {
        let mut place = vec![NONE; self.len()];
        vertices.iter().enumerate().for_each(|(k, &i)| place[i as usize] = k as u32);
        let edges = vertices.iter().map(|&i| self.neighbours(i).len()).sum();
        let mut made = Level::with_room(vertices.len(), edges);
        made.edge.reserve(edges);
        for &i in vertices {
            let (to, edge) = self.of(i);
            for (&j, &weight) in to.iter().zip(edge).filter(|(j, _)| place[**j as usize] != NONE) {
                made.to.push(place[j as usize]);
                made.edge.push(weight);
            }
            made.ptr.push(made.to.len() as u32);
            made.weight.push(self.weight[i as usize]);
        }
        made
    }

    /// The graph in which pairs of vertices are one, and the vertex that each became. Each vertex, those of few edges first, is paired
    /// with the neighbour of the heaviest edge that is still alone, unless they exceed `most` together.
    pub(super) fn contracted(&self, most: u32) -> (Self, Vec<u32>) {
        let n = self.len();
        let mut mate = vec![NONE; n];
        let mut alone = NONE;
        for i in self.by_degree() {
            if mate[i as usize] != NONE {
                continue;
            }
            let (to, edge) = self.of(i);
            let fits = |j: u32| {
                mate[j as usize] == NONE && self.weight[i as usize] + self.weight[j as usize] <= most
            };
            let mut best = (0, NONE);
            for (&j, &weight) in to.iter().zip(edge) {
                if weight > best.0 && fits(j) {
                    best = (weight, j);
                }
            }
            // Vertices without edges are paired among themselves.
            if to.is_empty() {
                match alone != NONE && fits(alone) {
                    true => best.1 = std::mem::replace(&mut alone, NONE),
                    false => alone = i,
                }
            }
            mate[i as usize] = i;
            if best.1 != NONE {
                mate[i as usize] = best.1;
                mate[best.1 as usize] = i;
            }
        }
        self.paired(&mate)
    }

    /// Vertices by their number of edges, in an order without pattern among equals.
    fn by_degree(&self) -> Vec<u32> {
        const MOST: usize = 64;
        let n = self.len();
        let degree = |i: u32| self.neighbours(i).len().min(MOST);
        let mut start = [0usize; MOST + 2];
        (0..n as u32).for_each(|i| start[degree(i) + 1] += 1);
        (0..=MOST).for_each(|k| start[k + 1] += start[k]);
        let mut order = vec![0; n];
        // A step that has no divisor in common with n meets each vertex once.
        let mut step = (n as f64 * 0.618) as usize | 1;
        while divisor(step, n) > 1 {
            step += 2;
        }
        let mut at = 0;
        for _ in 0..n {
            let place = &mut start[degree(at as u32)];
            order[*place] = at as u32;
            *place += 1;
            at = (at + step) % n;
        }
        order
    }

    fn paired(&self, mate: &[u32]) -> (Self, Vec<u32>) {
        let n = self.len();
        let mut became = vec![NONE; n];
        let mut members = Vec::with_capacity(n);
        let mut ptr = vec![0];
        for i in 0..n {
            if became[i] == NONE {
                let count = ptr.len() as u32 - 1;
                for v in [i as u32].into_iter().chain((mate[i] as usize != i).then_some(mate[i])) {
                    became[v as usize] = count;
                    members.push(v);
                }
                ptr.push(members.len());
            }
        }
        (self.joined(&became, &ptr, &members), became)
    }

    /// The graph in which groups of vertices are one each: the group of each vertex, and the members of each group.
    fn joined(&self, became: &[u32], ptr: &[usize], members: &[u32]) -> Self {
        let count = ptr.len() - 1;
        let mut made = Level::with_room(count, self.size());
        made.edge.reserve(self.size());
        // Where the edge to a vertex is, if it is one of the present one.
        let mut at = vec![NONE; count];
        for (own, w) in ptr.windows(2).enumerate() {
            let first = made.to.len();
            let mut weight = 0;
            for &v in &members[w[0]..w[1]] {
                weight += self.weight[v as usize];
                let (to, edge) = self.of(v);
                for (&j, &by) in to.iter().zip(edge) {
                    let j = became[j as usize];
                    if j as usize == own {
                        continue;
                    }
                    let known = at[j as usize] as usize;
                    if known >= first && known < made.to.len() {
                        made.edge[known] += by;
                    } else {
                        at[j as usize] = made.to.len() as u32;
                        made.to.push(j);
                        made.edge.push(by);
                    }
                }
            }
            made.ptr.push(made.to.len() as u32);
            made.weight.push(weight);
        }
        made
    }

    /// Groups of vertices that are coupled with each other and with the same others, such as the unknowns of a node of a mesh; the
    /// graph of these groups, and where each begins in a list of all vertices.
    pub(super) fn compressed(&self) -> (Self, Vec<usize>, Vec<u32>) {
        let n = self.len();
        let spread = |i: u32| (u64::from(i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let sum = |i: u32| self.neighbours(i).iter().fold(spread(i), |sum, &j| sum.wrapping_add(spread(j)));
        let mut sums: Vec<(u64, u32)> = (0..n as u32).map(|i| (sum(i), i)).collect();
        sums.sort_unstable();
        let mut group = vec![NONE; n];
        let mut met = vec![NONE; n];
        // Each vertex is compared with the first of its sum: sums agree by chance once in 2^64.
        for same in sums.chunk_by(|a, b| a.0 == b.0) {
            let first = same[0].1;
            group[first as usize] = first;
            if same.len() > 1 {
                self.neighbours(first).iter().chain([&first]).for_each(|&j| met[j as usize] = first);
            }
            for &(_, i) in &same[1..] {
                let all = self.neighbours(i);
                let is_equal = all.len() == self.neighbours(first).len()
                    && all.iter().chain([&i]).all(|&j| met[j as usize] == first);
                group[i as usize] = if is_equal { first } else { i };
            }
        }
        let mut became = vec![NONE; n];
        let (mut count, mut size) = (0, Vec::new());
        for i in 0..n {
            let first = group[i] as usize;
            if became[first] == NONE {
                became[first] = count;
                count += 1;
                size.push(0);
            }
            became[i] = became[first];
            size[became[i] as usize] += 1;
        }
        let mut ptr = vec![0usize; size.len() + 1];
        (0..size.len()).for_each(|k| ptr[k + 1] = ptr[k] + size[k]);
        let mut members = vec![0; n];
        let mut next = ptr.clone();
        for (i, &to) in became.iter().enumerate() {
            members[next[to as usize]] = i as u32;
            next[to as usize] += 1;
        }
        (self.joined(&became, &ptr, &members), ptr, members)
    }
}

/// The greatest common divisor.
fn divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
