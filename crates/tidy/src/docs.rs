//! Rules over the documentation: links, the table of contents, reachability, scenarios.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::tree::{folder, join};
use crate::{File, Findings, Tree};

/// The table of contents of the site.
const CONTENTS: &str = "docs/SUMMARY.md";
/// Pages where a reader starts.
const ENTRIES: [&str; 3] = ["README.md", "docs/README.md", CONTENTS];
/// Pages here need no line in the table of contents: each fabric has a page.
const FABRICS: &str = "docs/fabrics";

/// A relative link leads to a tracked file or folder, and its anchor to a heading there.
#[must_use]
pub fn links(tree: &Tree) -> Findings {
    let marks: BTreeMap<&str, BTreeSet<String>> =
        tree.markdown().map(|file| (file.path.as_str(), marks(file.text()))).collect();
    let mut findings = Findings::default();
    for file in tree.markdown() {
        for Link { path, mark, line } in relative_links(file) {
            let there = if path.is_empty() {
                Some(file.path.clone())
            } else {
                join(folder(&file.path), &path)
            };
            let Some(there) = there.filter(|there| tree.contains(there)) else {
                findings.at(&file.path, line, format!("`{path}` leads nowhere"));
                continue;
            };
            let known = marks.get(there.as_str());
            if !mark.is_empty() && known.is_some_and(|marks| !marks.contains(&mark)) {
                findings.at(&file.path, line, format!("`{there}` has no heading `#{mark}`"));
            }
        }
    }
    findings
}

/// Every page under `docs/` is a chapter of the site exactly once; the table of contents lists only
/// pages.
#[must_use]
pub fn contents(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let Some(contents) = tree.get(CONTENTS) else {
        return findings;
    };
    let mut listed = BTreeSet::new();
    for Link { path, line, .. } in relative_links(contents) {
        let page = join(folder(CONTENTS), &path).unwrap_or_default();
        if !page.ends_with(".md") {
            findings.at(CONTENTS, line, format!("`{path}` is no page"));
        } else if !listed.insert(page) {
            findings.at(CONTENTS, line, format!("`{path}` is listed twice"));
        }
    }
    for page in tree.under("docs").filter(|file| file.extension() == "md") {
        let by_folder = folder(&page.path) == FABRICS && page.name() != "README.md";
        if page.path != CONTENTS && !by_folder && !listed.contains(&page.path) {
            findings.file(&page.path, format!("is no chapter: add it to {CONTENTS}"));
        }
    }
    findings
}

/// Every file under `docs/` is found by following links from the README.
#[must_use]
pub fn reachable(tree: &Tree) -> Findings {
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut paths: Vec<String> = ENTRIES.map(str::to_owned).to_vec();
    while let Some(path) = paths.pop() {
        // A link to a folder reaches the files in it.
        paths.extend(tree.under(&path).map(|file| file.path.clone()));
        let Some(file) = tree.get(&path) else {
            continue;
        };
        if reached.insert(path) && file.extension() == "md" {
            let links = relative_links(file).into_iter();
            let links = links.filter(|link| !link.path.is_empty());
            paths.extend(links.filter_map(|link| join(folder(&file.path), &link.path)));
        }
    }
    let mut findings = Findings::default();
    for file in tree.under("docs").filter(|file| !reached.contains(&file.path)) {
        findings.file(&file.path, "no link from README.md or docs/SUMMARY.md leads here");
    }
    findings
}

/// Every scenario is mentioned in the README or under `docs/`.
#[must_use]
pub fn scenarios(tree: &Tree) -> Findings {
    let prose = |file: &&File| file.path == "README.md" || file.path.starts_with("docs/");
    let docs: String = tree.markdown().filter(prose).map(File::text).collect();
    let mut findings = Findings::default();
    for file in tree.under("scenarios").filter(|file| file.extension() == "toml") {
        if !docs.contains(&file.path) {
            findings.file(&file.path, "no page of docs/ says what it shows");
        }
    }
    findings
}

/// A link that stays in the repository.
struct Link {
    /// Path; empty for a link within its page.
    path: String,
    /// Anchor behind `#`.
    mark: String,
    line: usize,
}

/// Targets of links, images and HTML attributes that stay in the repository, with their lines.
fn relative_links(file: &File) -> Vec<Link> {
    let text = file.text();
    let mut links = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let targets = match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                vec![dest_url.to_string()]
            }
            Event::Html(html) | Event::InlineHtml(html) => html_targets(&html),
            _ => continue,
        };
        let line = text[..range.start].matches('\n').count() + 1;
        for target in targets {
            let outside = target.contains("://") || target.starts_with("mailto:");
            let (path, mark) = target.split_once('#').unwrap_or((&target, ""));
            let path = path.split('?').next().unwrap_or_default();
            let is_nothing = path.is_empty() && mark.is_empty();
            if !outside && !is_nothing {
                links.push(Link { path: path.to_owned(), mark: mark.to_owned(), line });
            }
        }
    }
    links
}

/// Anchors of a page's headings, as repository hosts and mdBook generate them.
fn marks(text: &str) -> BTreeSet<String> {
    let mut marks = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                heading.iter_mut().for_each(|heading| heading.push_str(&part));
            }
            Event::End(TagEnd::Heading(_)) => {
                let mark = slug(&heading.take().unwrap_or_default());
                let again = (1..).map(|count| format!("{mark}-{count}"));
                let mark = std::iter::once(mark.clone()).chain(again);
                marks.extend(mark.into_iter().find(|mark| !marks.contains(mark)));
            }
            _ => {}
        }
    }
    marks
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn html_targets(html: &str) -> Vec<String> {
    let values = ["src=\"", "href=\"", "srcset=\""].into_iter().flat_map(|attribute| {
        html.match_indices(attribute).map(move |(start, _)| &html[start + attribute.len()..])
    });
    values.filter_map(|rest| rest.split_once('"')).map(|(value, _)| value.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_fails() {
        let readme = "[a](docs/a.md#part) [b](https://host/x) [c](#here)\n\n[d](docs/gone.md)\n\n\
                      ```\n[e](gone.md)\n```\n\n<img src=\"docs/gone.png\">\n\n[f](docs/)\n\n\
                      # Here\n";
        let tree = Tree::from_files([
            ("README.md", readme),
            ("docs/a.md", "[up](../README.md) ![g](a.png)\n[out](../../x.md)\n## Part\n"),
        ]);
        let broken = ["README.md:3", "README.md:9", "docs/a.md:1", "docs/a.md:2"];
        assert_eq!(links(&tree).places(), broken);
    }

    #[test]
    fn a_mark_that_no_heading_has_fails() {
        let there = "# A `b` of *c*, d!\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n";
        let here = "# Here\n\n[a](b.md#a-b-of-c-d)\n[b](b.md#twice-1) [c](#here)\n\
                    [d](b.md#twice-2)\n[e](#there)\n[f](b.md#no-heading) [g](c.rs#L10)\n";
        let tree = Tree::from_files([("a.md", here), ("b.md", there), ("c.rs", "")]);
        assert_eq!(links(&tree).places(), ["a.md:5", "a.md:6", "a.md:7"]);
    }

    #[test]
    fn a_page_that_is_no_chapter_or_is_one_twice_fails() {
        let tree = Tree::from_files([
            (CONTENTS, "- [a](a.md)\n- [a](a.md)\n- [up](../README.md)\n- [p](p.svg)\n"),
            ("docs/a.md", ""),
            ("docs/b.md", ""),
            ("docs/p.svg", ""),
            ("docs/fabrics/README.md", ""),
            ("docs/fabrics/homa.md", ""),
            ("README.md", ""),
        ]);
        let places =
            ["docs/SUMMARY.md:2", "docs/SUMMARY.md:4", "docs/b.md", "docs/fabrics/README.md"];
        assert_eq!(contents(&tree).places(), places);
    }

    #[test]
    fn a_page_that_no_link_leads_to_fails() {
        let tree = Tree::from_files([
            ("README.md", "[a](docs/a.md)\n"),
            ("docs/a.md", "[b](b.md) [pictures](pictures/)\n"),
            ("docs/b.md", ""),
            ("docs/pictures/p.svg", ""),
            ("docs/island.md", "[a](a.md)\n"),
        ]);
        assert_eq!(reachable(&tree).places(), ["docs/island.md"]);
    }

    #[test]
    fn a_scenario_that_no_page_mentions_fails() {
        let tree = Tree::from_files([
            ("README.md", "Run `ethermem sim scenarios/shown.toml`.\n"),
            ("scenarios/shown.toml", ""),
            ("scenarios/hidden.toml", ""),
        ]);
        assert_eq!(scenarios(&tree).places(), ["scenarios/hidden.toml"]);
    }
}
