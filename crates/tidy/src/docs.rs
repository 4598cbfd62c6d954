//! Rules over the documentation: links, reachability, scenarios.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Parser, Tag};

use crate::tree::{folder, join};
use crate::{File, Findings, Tree};

/// Where a reader starts.
const ENTRIES: [&str; 2] = ["README.md", "docs/README.md"];

/// A relative link leads to a tracked file or folder.
#[must_use]
pub fn links(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.markdown() {
        for (target, line) in relative_links(file) {
            match join(folder(&file.path), &target) {
                Some(path) if tree.contains(&path) => {}
                _ => findings.at(&file.path, line, format!("`{target}` leads nowhere")),
            }
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
        // A link to a folder leads to what lies in it.
        paths.extend(tree.under(&path).map(|file| file.path.clone()));
        let Some(file) = tree.get(&path) else {
            continue;
        };
        if reached.insert(path) && file.extension() == "md" {
            let links = relative_links(file).into_iter();
            paths.extend(links.filter_map(|(target, _)| join(folder(&file.path), &target)));
        }
    }
    let mut findings = Findings::default();
    for file in tree.under("docs").filter(|file| !reached.contains(&file.path)) {
        findings.file(&file.path, "no link from README.md or docs/README.md leads here");
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

/// The targets of links, images and HTML attributes that stay in the repository, with their lines.
fn relative_links(file: &File) -> Vec<(String, usize)> {
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
            let path = target.split(['#', '?']).next().unwrap_or_default();
            if !outside && !path.is_empty() {
                links.push((path.to_owned(), line));
            }
        }
    }
    links
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
                      ```\n[e](gone.md)\n```\n\n<img src=\"docs/gone.png\">\n\n[f](docs/)\n";
        let tree = Tree::from_files([
            ("README.md", readme),
            ("docs/a.md", "[up](../README.md) ![g](a.png)\n[out](../../x.md)\n"),
        ]);
        let broken = ["README.md:3", "README.md:9", "docs/a.md:1", "docs/a.md:2"];
        assert_eq!(links(&tree).places(), broken);
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
