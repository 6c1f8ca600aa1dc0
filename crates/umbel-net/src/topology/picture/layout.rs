//! Positions for the nodes of a picture: distances in the plane resemble distances in the network.
//!
//! The layout minimises *stress*: the squared differences between both distances, of which those of
//! near nodes count most. It starts from the two longest axes of the distances (multidimensional
//! scaling), so the result depends on nothing but the network.
//!
//! # References
//!
//! * E. R. Gansner, Y. Koren and S. North. *Graph drawing by stress majorization.* Graph Drawing
//!   2004. `GKN04`

use super::super::Graph;
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A position in the plane.
pub(super) type Point = [f64; 2];

/// The number of rounds that move every node to reduce the stress.
const STRESS_ROUNDS: usize = 200;

/// The number of rounds of power iteration for each axis.
const AXIS_ROUNDS: usize = 60;

/// The gap between parts that are not connected, in links.
const PART_GAP: f64 = 2.0;

/// Returns a position for each node. One unit is about the length of a link between nodes with few
/// links.
pub(super) fn layout(graph: &Graph) -> Vec<Point> {
    let parts = graph.parts();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    parts.iter().enumerate().for_each(|(node, part)| members.entry(*part).or_default().push(node));
    let mut drawings: Vec<(Vec<usize>, Vec<Point>)> = members
        .into_values()
        .map(|nodes| {
            let mut points = connected(graph, &nodes);
            turn(&mut points);
            (nodes, points)
        })
        .collect();
    // The largest part first, so that rows begin with it.
    drawings.sort_by_key(|(nodes, _)| std::cmp::Reverse(nodes.len()));
    let mut all = vec![[0.0; 2]; graph.len()];
    let area: f64 =
        drawings.iter().map(|(_, points)| size(points).iter().map(|x| x + PART_GAP).product::<f64>()).sum();
    let widest = drawings.iter().map(|(_, points)| size(points)[0]).fold(0.0, f64::max);
    let width = widest.max((1.6 * area).sqrt());
    let [mut x, mut y, mut row] = [0.0; 3];
    for (nodes, points) in drawings {
        let [wide, high] = size(&points);
        if x > 0.0 && x + wide > width {
            [x, y, row] = [0.0, y + row + PART_GAP, 0.0];
        }
        let low = corner(&points);
        for (node, point) in nodes.into_iter().zip(points) {
            all[node] = [point[0] - low[0] + x, point[1] - low[1] + y];
        }
        x += wide + PART_GAP;
        row = row.max(high);
    }
    all
}

/// Returns the lowest coordinates of points.
pub(super) fn corner(points: &[Point]) -> Point {
    [0, 1].map(|axis| points.iter().map(|point| point[axis]).fold(f64::INFINITY, f64::min))
}

/// Returns the width and height of points.
pub(super) fn size(points: &[Point]) -> Point {
    let low = corner(points);
    [0, 1].map(|axis| points.iter().map(|point| point[axis] - low[axis]).fold(0.0, f64::max))
}

/// Lays out nodes that are connected with each other.
fn connected(graph: &Graph, nodes: &[usize]) -> Vec<Point> {
    let distances = distances(graph, nodes);
    let mut points = scaled(&distances);
    for _ in 0..STRESS_ROUNDS {
        for i in 0..points.len() {
            let (mut sum, mut weights) = ([0.0; 2], 0.0);
            for (j, other) in points.iter().enumerate().filter(|(j, _)| *j != i) {
                let wanted = distances[i][j];
                let weight = 1.0 / (wanted * wanted);
                let apart = [points[i][0] - other[0], points[i][1] - other[1]];
                let distance = apart[0].hypot(apart[1]).max(1e-9);
                for axis in 0..2 {
                    sum[axis] += weight * (other[axis] + wanted * apart[axis] / distance);
                }
                weights += weight;
            }
            if weights > 0.0 {
                points[i] = sum.map(|sum| sum / weights);
            }
        }
    }
    points
}

/// Returns the distances between all nodes of a part.
///
/// A link is the longer the more neighbours its ends have that they do not share, because hubs need
/// room for their neighbours.
fn distances(graph: &Graph, nodes: &[usize]) -> Vec<Vec<f64>> {
    let index: BTreeMap<usize, usize> = nodes.iter().enumerate().map(|(i, node)| (*node, i)).collect();
    let neighbours: Vec<BTreeSet<usize>> = nodes
        .iter()
        .map(|node| graph.neighbours(*node).iter().filter_map(|link| index.get(&link.to).copied()).collect())
        .collect();
    let length = |a: usize, b: usize| {
        let apart = neighbours[a].symmetric_difference(&neighbours[b]).count();
        // The ends themselves are in it. Thousandths, so that distances can be ordered.
        (1000.0 * (apart.max(2) as f64 / 2.0).sqrt()) as u64
    };
    let links: Vec<Vec<(usize, u64)>> = neighbours
        .iter()
        .enumerate()
        .map(|(a, all)| all.iter().map(|b| (*b, length(a, *b))).collect())
        .collect();
    (0..nodes.len())
        .map(|start| {
            let mut from_start = vec![f64::INFINITY; nodes.len()];
            let mut waiting = BTreeSet::from([(0, start)]);
            while let Some((distance, node)) = waiting.pop_first() {
                if from_start[node].is_finite() {
                    continue;
                }
                from_start[node] = distance as f64 / 1000.0;
                let onward = links[node].iter().filter(|(to, _)| from_start[*to].is_infinite());
                waiting.extend(onward.map(|(to, length)| (distance + length, *to)));
            }
            from_start
        })
        .collect()
}

/// Returns the positions along the two longest axes of the distances: classical multidimensional
/// scaling.
fn scaled(distances: &[Vec<f64>]) -> Vec<Point> {
    let n = distances.len();
    let square = |i: usize, j: usize| distances[i][j] * distances[i][j];
    let means: Vec<f64> = (0..n).map(|i| (0..n).map(|j| square(i, j)).sum::<f64>() / n as f64).collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    // Products of positions around the centre, which follow from the distances.
    let product = |i: usize, j: usize| -0.5 * (square(i, j) - means[i] - means[j] + mean);
    let mut random = Random::new(1);
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for _ in 0..2 {
        let mut axis: Vec<f64> = (0..n).map(|_| random.share() - 0.5).collect();
        let mut length = 0.0;
        for _ in 0..AXIS_ROUNDS {
            let mut next: Vec<f64> = (0..n)
                .map(|i| axis.iter().enumerate().map(|(j, value)| product(i, j) * value).sum())
                .collect();
            for other in &axes {
                let norm: f64 = other.iter().map(|value| value * value).sum();
                let along: f64 = other.iter().zip(&next).map(|(a, b)| a * b).sum::<f64>() / norm.max(1e-12);
                next.iter_mut().zip(other).for_each(|(own, other)| *own -= along * other);
            }
            length = next.iter().map(|value| value * value).sum::<f64>().sqrt();
            if length < 1e-9 {
                break;
            }
            axis = next.into_iter().map(|value| value / length).collect();
        }
        let scale = length.max(0.0).sqrt();
        axes.push(axis.into_iter().map(|value| value * scale).collect());
    }
    // Nodes with the same distances to all others would stay in one place for ever.
    (0..n).map(|i| [0, 1].map(|axis| axes[axis][i] + 0.02 * (random.share() - 0.5))).collect()
}

/// Turns points so that their longest direction is horizontal.
fn turn(points: &mut [Point]) {
    let n = points.len().max(1) as f64;
    let centre = [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / n);
    let [mut xx, mut xy, mut yy] = [0.0; 3];
    for point in points.iter() {
        let [x, y] = [point[0] - centre[0], point[1] - centre[1]];
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
    let (sin, cos) = angle.sin_cos();
    for point in points {
        let [x, y] = [point[0] - centre[0], point[1] - centre[1]];
        *point = [cos * x + sin * y, cos * y - sin * x];
    }
}

/// Moves points apart until all are at least `gap` from each other, or this no longer helps.
pub(super) fn spread(points: &mut [Point], gap: f64) {
    for _ in 0..100 {
        let mut moved = false;
        for i in 0..points.len() {
            for j in 0..i {
                let apart = [points[i][0] - points[j][0], points[i][1] - points[j][1]];
                let distance = apart[0].hypot(apart[1]);
                if distance >= gap {
                    continue;
                }
                moved = true;
                // Points in the same place part along the horizontal.
                let direction = if distance > 1e-9 { apart.map(|x| x / distance) } else { [1.0, 0.0] };
                let step = (gap - distance) / 2.0 + 0.01;
                for axis in 0..2 {
                    points[i][axis] += step * direction[axis];
                    points[j][axis] -= step * direction[axis];
                }
            }
        }
        if !moved {
            break;
        }
    }
}
