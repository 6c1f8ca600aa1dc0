//! Pictures of networks as SVG: nodes, links as wide as they are used, and routes in colour.
//!
//! Names cover neither nodes nor each other. A name for which there is no room is left out, and the
//! node shows it when the pointer rests on it. Colours suit light and dark pages and colour-blind
//! readers, and each route has a dash pattern of its own.
//!
//! ```
//! use umbel_net::topology::Graph;
//! use umbel_net::topology::picture::{Picture, Stroke};
//!
//! let abilene = Graph::abilene();
//! let svg = Picture::new(&abilene, "From Seattle to New York")
//!     .route("the shortest path", &abilene.path(0, 10), Stroke::Main)
//!     .mark(10, "target")
//!     .to_svg()?;
//! assert!(svg.starts_with("<svg") && svg.contains("Kansas City"));
//! # Ok::<(), umbel_net::Error>(())
//! ```

mod labels;
mod layout;

use super::Graph;
use crate::{Error, Result};
use labels::Labels;
use layout::{Point, corner, layout, size, spread};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The largest number of nodes in a picture. The layout compares all pairs of nodes.
pub const MAX_PICTURE_NODES: usize = 1000;

/// The longest name that is drawn.
const MAX_NAME_CHARS: usize = 28;

const MARGIN: f64 = 28.0;
/// The height of a line of the title and of the legend.
const LINE: f64 = 22.0;
/// The width that the texts around a small network need.
const MIN_WIDTH: f64 = 560.0;
/// The distance of routes that share a link.
const LANE: f64 = 5.0;

/// How a route is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stroke {
    /// The route that the picture is about.
    Main,
    /// A route that continues or contrasts with it.
    Second,
    /// A route that is a mistake.
    Wrong,
}

impl Stroke {
    fn class(self) -> &'static str {
        match self {
            Stroke::Main => "main",
            Stroke::Second => "second",
            Stroke::Wrong => "wrong",
        }
    }
}

#[derive(Clone, Debug)]
struct Route {
    label: String,
    links: Vec<[usize; 2]>,
    stroke: Stroke,
}

/// A picture of a network.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    graph: &'a Graph,
    title: String,
    notes: Vec<String>,
    uses: BTreeMap<[usize; 2], u64>,
    routes: Vec<Route>,
    marks: BTreeMap<usize, String>,
    cuts: BTreeSet<[usize; 2]>,
}

/// Returns a link with the lower node first.
fn ordered([a, b]: [usize; 2]) -> [usize; 2] {
    [a.min(b), a.max(b)]
}

impl<'a> Picture<'a> {
    /// Returns a picture of a network with this title.
    pub fn new(graph: &'a Graph, title: impl Into<String>) -> Picture<'a> {
        Picture {
            graph,
            title: title.into(),
            notes: Vec::new(),
            uses: BTreeMap::new(),
            routes: Vec::new(),
            marks: BTreeMap::new(),
            cuts: BTreeSet::new(),
        }
    }

    /// Adds a line below the title.
    pub fn note(mut self, note: impl Into<String>) -> Picture<'a> {
        self.notes.push(note.into());
        self
    }

    /// Draws links the wider the more often they were used.
    pub fn uses(mut self, uses: impl Iterator<Item = ([usize; 2], u64)>) -> Picture<'a> {
        self.uses = uses.map(|(link, count)| (ordered(link), count)).collect();
        self
    }

    /// Draws a route over these nodes, with arrows, and explains it in the legend.
    pub fn route(self, label: impl Into<String>, nodes: &[usize], stroke: Stroke) -> Picture<'a> {
        self.links(label, nodes.windows(2).map(|pair| [pair[0], pair[1]]).collect(), stroke)
    }

    /// Draws several links like a route.
    pub fn links(mut self, label: impl Into<String>, links: Vec<[usize; 2]>, stroke: Stroke) -> Picture<'a> {
        if !links.is_empty() {
            self.routes.push(Route { label: label.into(), links, stroke });
        }
        self
    }

    /// Marks a node, and adds its role to its name.
    pub fn mark(mut self, node: usize, role: impl Into<String>) -> Picture<'a> {
        let role = role.into();
        self.marks.entry(node).and_modify(|roles| *roles += &format!(", {role}")).or_insert(role);
        self
    }

    /// Draws a link as broken.
    pub fn cut(mut self, link: [usize; 2]) -> Picture<'a> {
        self.cuts.insert(ordered(link));
        self
    }

    /// Returns the picture as SVG.
    ///
    /// # Errors
    ///
    /// Fails if the network has more than [`MAX_PICTURE_NODES`] nodes.
    pub fn to_svg(&self) -> Result<String> {
        let nodes = self.graph.len();
        if nodes > MAX_PICTURE_NODES {
            return Err(Error::parameter(
                "nodes",
                nodes,
                format!("at most {MAX_PICTURE_NODES} for a picture"),
            ));
        }
        Ok(Canvas::new(self).draw())
    }

    /// Returns the text beside a node: its name, or its number if it has none, and its role.
    fn text(&self, node: usize) -> String {
        let name = self.graph.name(node);
        let mut text: String = name.chars().filter(|char| !char.is_control()).take(MAX_NAME_CHARS).collect();
        if name.chars().count() > MAX_NAME_CHARS {
            text.push('…');
        }
        if text.is_empty() {
            text = node.to_string();
        }
        match self.marks.get(&node) {
            Some(role) => format!("{text} ({role})"),
            None => text,
        }
    }

    /// Returns the nodes that routes visit or that are marked.
    fn highlighted(&self) -> BTreeSet<usize> {
        let visited = self.routes.iter().flat_map(|route| &route.links).flatten().copied();
        visited.chain(self.marks.keys().copied()).collect()
    }
}

/// A picture whose nodes have positions in pixels.
struct Canvas<'a> {
    picture: &'a Picture<'a>,
    points: Vec<Point>,
    radius: f64,
    font: f64,
    size: Point,
    /// The height of the texts above the network.
    head: f64,
    svg: String,
}

impl<'a> Canvas<'a> {
    fn new(picture: &'a Picture<'a>) -> Canvas<'a> {
        let nodes = picture.graph.len();
        // Large networks have smaller nodes and names.
        let (radius, font, room) = match nodes {
            0..=30 => (8.0, 14.0, 96.0),
            31..=100 => (6.0, 12.0, 70.0),
            101..=300 => (5.0, 10.5, 54.0),
            _ => (3.5, 9.0, 36.0),
        };
        let mut points = layout(picture.graph);
        let [wide, high] = size(&points).map(|side| side.max(1.0));
        // As much area for each node, and links that are long enough to be seen.
        let scale = (nodes as f64 * room * room / (wide * high)).sqrt().clamp(room * 0.6, room * 1.6);
        points.iter_mut().flatten().for_each(|value| *value *= scale);
        spread(&mut points, 2.0 * radius + 0.7 * font);
        let widest = (0..nodes).map(|node| text_width(&picture.text(node), font, true)).fold(0.0, f64::max);
        let [wide, high] = size(&points);
        let side = MARGIN + widest.min(14.0 * font);
        let width = (wide + 2.0 * side).max(MIN_WIDTH);
        let head = MARGIN + LINE * (1 + picture.notes.len()) as f64;
        let low = corner(&points);
        let shift = [(width - wide) / 2.0 - low[0], head + MARGIN + font - low[1]];
        for point in &mut points {
            *point = [point[0] + shift[0], point[1] + shift[1]];
        }
        let foot = MARGIN + LINE * picture.legend_lines() as f64;
        let height = head + 2.0 * (MARGIN + font) + high + foot;
        Canvas { picture, points, radius, font, size: [width, height], head, svg: String::new() }
    }

    fn draw(mut self) -> String {
        self.open();
        self.draw_links();
        self.draw_routes();
        self.draw_nodes();
        self.draw_legend();
        self.svg.push_str("</svg>\n");
        self.svg
    }

    /// Appends an element. Writing to a string cannot fail.
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = self.svg.write_fmt(element);
        self.svg.push('\n');
    }

    fn open(&mut self) {
        let [width, height] = self.size.map(f64::ceil);
        self.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" role=\"img\">"
        ));
        self.add(format_args!("<title>{}</title>", escaped(&self.picture.title)));
        self.svg.push_str(STYLE);
        self.add(format_args!("<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>"));
        let lines = [(&self.picture.title, "title", 17.0)];
        let notes = self.picture.notes.iter().map(|note| (note, "note", 13.0));
        for (line, (text, class, font)) in lines.into_iter().chain(notes).enumerate() {
            let y = MARGIN + LINE * line as f64 + 5.0;
            self.add(format_args!(
                "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.1}\" font-size=\"{font}\">{}</text>",
                escaped(text)
            ));
        }
    }

    fn draw_links(&mut self) {
        let most = self.picture.uses.values().copied().max().unwrap_or(0).max(1) as f64;
        let links = all_links(self.picture.graph);
        for link in links {
            let [a, b] = link.map(|node| self.points[node]);
            let used = self.picture.uses.get(&link).copied().unwrap_or(0);
            let width = 1.0 + self.radius * 0.9 * (used as f64 / most).sqrt();
            let is_cut = self.picture.cuts.contains(&link);
            let class = if is_cut { "link cut" } else { "link" };
            self.add(format_args!(
                "<path class=\"{class}\" stroke-width=\"{width:.1}\" d=\"{}\"/>",
                line(a, b)
            ));
            if is_cut {
                let [x, y] = [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0];
                let d = self.radius;
                self.add(format_args!(
                    "<path class=\"cross\" d=\"M{:.1} {:.1}L{:.1} {:.1}M{:.1} {:.1}L{:.1} {:.1}\"/>",
                    x - d,
                    y - d,
                    x + d,
                    y + d,
                    x - d,
                    y + d,
                    x + d,
                    y - d
                ));
            }
        }
    }

    /// Draws routes beside each other where they share a link.
    fn draw_routes(&mut self) {
        let mut lanes: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let picture = self.picture;
        let shared = |link: &[usize; 2]| {
            let of_route = |route: &&Route| route.links.iter().any(|other| ordered(*other) == *link);
            picture.routes.iter().filter(of_route).count()
        };
        for route in &picture.routes {
            let mut drawn = BTreeSet::new();
            for [from, to] in &route.links {
                let link = ordered([*from, *to]);
                // A route may cross a link several times; both directions are drawn once.
                if !drawn.insert([*from, *to]) {
                    continue;
                }
                let both = drawn.contains(&[*to, *from]);
                let lane = lanes.entry(link).or_default();
                let offset = LANE * (*lane as f64 - (shared(&link) as f64 - 1.0) / 2.0);
                if !both {
                    *lane += 1;
                }
                self.draw_arrow([*from, *to], if both { offset - LANE } else { offset }, route.stroke, !both);
            }
        }
    }

    /// Draws a part of a route: a line, unless it is there already, and an arrow head.
    fn draw_arrow(&mut self, [from, to]: [usize; 2], offset: f64, stroke: Stroke, with_line: bool) {
        let [a, b] = [self.points[from], self.points[to]];
        let length = (b[0] - a[0]).hypot(b[1] - a[1]).max(1e-9);
        let along = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
        // To the same side of the link in both directions.
        let side = if from < to { offset } else { -offset };
        let across = [-along[1] * side, along[0] * side];
        let at = |share: f64, out: f64| {
            let reach = share * length;
            [
                a[0] + along[0] * reach + across[0] - along[1] * out,
                a[1] + along[1] * reach + across[1] + along[0] * out,
            ]
        };
        let class = stroke.class();
        if with_line {
            self.add(format_args!(
                "<path class=\"route {class}\" d=\"{}\"/>",
                line(at(0.0, 0.0), at(1.0, 0.0))
            ));
        }
        let head = (0.9 * self.radius).max(5.0) / length;
        let [tip, left, right] =
            [at(0.62 + head, 0.0), at(0.62 - head, 0.8 * self.radius), at(0.62 - head, -0.8 * self.radius)];
        self.add(format_args!(
            "<path class=\"head {class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/>",
            tip[0], tip[1], left[0], left[1], right[0], right[1]
        ));
    }

    fn draw_nodes(&mut self) {
        let highlighted = self.picture.highlighted();
        for node in 0..self.points.len() {
            let [x, y] = self.points[node];
            let (class, radius) = match (self.picture.marks.contains_key(&node), highlighted.contains(&node))
            {
                (true, _) => ("node marked", self.radius + 2.0),
                (false, true) => ("node visited", self.radius + 1.0),
                (false, false) => ("node", self.radius),
            };
            self.add(format_args!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}</title></circle>",
                escaped(&self.picture.text(node))
            ));
        }
        let links: Vec<[Point; 2]> = all_links(self.picture.graph)
            .into_iter()
            .map(|link| link.map(|node| self.points[node]))
            .collect();
        let [width, height] = self.size;
        let foot = MARGIN + LINE * self.picture.legend_lines() as f64;
        let edges = [4.0, self.head, width - 4.0, height - foot];
        let outer = self.radius + 2.0;
        let mut labels = Labels::new(&self.points, outer, &links, edges);
        // The names that matter most find their place first; then those of hubs.
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        let degree = |node: usize| self.picture.graph.neighbours(node).len();
        order.sort_by_key(|node| (!highlighted.contains(node), std::cmp::Reverse(degree(*node)), *node));
        let mut omitted = 0;
        for node in order {
            let text = self.picture.text(node);
            let must = highlighted.contains(&node);
            let size = [text_width(&text, self.font, must), 1.15 * self.font];
            let Some((anchor, [x, y])) = labels.place(self.points[node], size, outer, must) else {
                omitted += 1;
                continue;
            };
            let class = if must { "name strong" } else { "name" };
            let (y, font) = (y + 0.35 * self.font, self.font);
            self.add(format_args!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" \
                 font-size=\"{font}\">{}</text>",
                escaped(&text)
            ));
        }
        if omitted > 0 {
            let y = height - foot - 4.0;
            let names = if omitted == 1 { "name has" } else { "names have" };
            self.add(format_args!(
                "<text class=\"note\" x=\"{MARGIN}\" y=\"{y:.1}\" font-size=\"12\">{omitted} {names} no room; \
                 a node shows its name under the pointer</text>"
            ));
        }
    }

    fn draw_legend(&mut self) {
        let mut y = self.size[1] - LINE * self.picture.legend_lines() as f64 - MARGIN / 2.0 + 8.0;
        let text_x = MARGIN + 56.0;
        let picture = self.picture;
        let routes = picture
            .routes
            .iter()
            .map(|route| (format!("route {}", route.stroke.class()), "3", route.label.as_str()));
        let cut = (!picture.cuts.is_empty()).then(|| ("link cut".to_owned(), "2", "the link that failed"));
        let used = (!picture.uses.is_empty())
            .then(|| ("link".to_owned(), "6", "links are wider where more packets cross"));
        for (class, width, label) in routes.chain(cut).chain(used) {
            let sample = line([MARGIN, y], [MARGIN + 44.0, y]);
            self.add(format_args!("<path class=\"{class}\" stroke-width=\"{width}\" d=\"{sample}\"/>"));
            let baseline = y + 4.5;
            self.add(format_args!(
                "<text class=\"name\" x=\"{text_x}\" y=\"{baseline:.1}\" font-size=\"13\">{}</text>",
                escaped(label)
            ));
            y += LINE;
        }
    }
}

impl Picture<'_> {
    fn legend_lines(&self) -> usize {
        self.routes.len() + usize::from(!self.cuts.is_empty()) + usize::from(!self.uses.is_empty())
    }
}

/// Returns every link once, the lower node first.
fn all_links(graph: &Graph) -> Vec<[usize; 2]> {
    let ends = (0..graph.len()).flat_map(|a| graph.neighbours(a).iter().map(move |link| [a, link.to]));
    ends.filter(|[a, b]| a < b).collect()
}

fn line(a: Point, b: Point) -> String {
    format!("M{:.1} {:.1}L{:.1} {:.1}", a[0], a[1], b[0], b[1])
}

/// Returns the approximate width of a text.
fn text_width(text: &str, font: f64, strong: bool) -> f64 {
    let narrow = if strong { 0.68 } else { 0.6 };
    // Scripts from here on have characters that are as wide as they are high.
    let wide = |char: char| if char >= '\u{1100}' { 1.0 } else { narrow };
    text.chars().map(|char| wide(char) * font).sum()
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            char if char.is_control() => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

/// Colours for light pages, and for dark ones where the viewer asks for them. Routes have the
/// colours of Okabe and Ito, which colour-blind readers can distinguish.
const STYLE: &str = "<style>
.paper{fill:#fff}.title,.name{fill:#1b1f24}.note{fill:#59636e}.title,.strong{font-weight:bold}
.name{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.link,.route,.cross{fill:none;stroke-linecap:round}
.link{stroke:#c3cad2}.cut{stroke:#8c959f;stroke-dasharray:2 6}.cross{stroke:#b3261e;stroke-width:2.5}
.node{fill:#fff;stroke:#59636e;stroke-width:1.5}.visited{fill:#d7e9f7}.marked{fill:#ffd166;stroke:#1b1f24;stroke-width:2.5}
.route{stroke-width:3}.main{stroke:#0072b2}.second{stroke:#009e73;stroke-dasharray:9 4}.wrong{stroke:#d55e00;stroke-dasharray:3 4}
.head{stroke:none}.head.main{fill:#0072b2}.head.second{fill:#009e73}.head.wrong{fill:#d55e00}
@media (prefers-color-scheme:dark){
.paper{fill:#14181d}.title,.name{fill:#e6e9ed}.note{fill:#9aa4af}.name{stroke:#14181d}
.link{stroke:#48515b}.cut{stroke:#9aa4af}.cross{stroke:#ff8a80}
.node{fill:#14181d;stroke:#9aa4af}.visited{fill:#23435c}.marked{fill:#b58105;stroke:#e6e9ed}
.main{stroke:#56b4e9}.second{stroke:#2fd0a0}.wrong{stroke:#ff9a4d}
.head{stroke:none}.head.main{fill:#56b4e9}.head.second{fill:#2fd0a0}.head.wrong{fill:#ff9a4d}
}
</style>
";
