//! The status page as HTML. Plain, without scripts, and it loads nothing.

use std::fmt::Write as _;

use super::board::Status;

/// Renders the page.
pub(super) fn render(status: &Status) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>orchestratord</title>\
         <style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}\
         td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left}</style><h1>orchestratord</h1><table>",
    );
    let term = status.term.map(|term| term.to_string());
    for (name, value) in [
        ("Version", Some(status.version)),
        ("Identity", Some(status.identity.as_str())),
        ("Phase", Some(status.phase)),
        ("Leads", Some(if status.leader { "yes" } else { "no" })),
        ("Starting", status.starting.as_deref()),
        ("Term", term.as_deref()),
        ("Holder of the Lease", status.holder.as_deref()),
        ("Last renewal", status.last_renewal.as_deref()),
    ] {
        if let Some(value) = value {
            row(&mut page, "th", &[name, value]);
        }
    }
    page.push_str("</table><h2>Last transitions</h2><table>");
    row(
        &mut page,
        "th",
        &["At", "From", "To", "Cause", "Term", "Phase had lasted"],
    );
    for transition in &status.transitions {
        let term = transition.term.map(|term| term.to_string()).unwrap_or_default();
        let lasted = format!("{} s", transition.held_for_seconds);
        row(
            &mut page,
            "td",
            &[
                &transition.at,
                transition.from,
                transition.to,
                transition.cause,
                &term,
                &lasted,
            ],
        );
    }
    page.push_str("</table><p>The same as <a href=\"/status.json\">JSON</a>.</p></html>\n");
    page
}

/// One row of a table; its first cell is of the given kind.
fn row(page: &mut String, first: &str, cells: &[&str]) {
    page.push_str("<tr>");
    for (index, cell) in cells.iter().enumerate() {
        let tag = if index == 0 { first } else { "td" };
        // Writing to a String can't fail.
        let _ = write!(page, "<{tag}>{}</{tag}>", escape(cell));
    }
    page.push_str("</tr>");
}

/// Anybody with access to the Lease chooses the holder's name.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::board::PastTransition;

    #[test]
    fn the_page_shows_everything_and_escapes_it() {
        let transition = PastTransition {
            at: "2026-01-02T03:04:05Z".to_owned(),
            from: "Candidate",
            to: "Leader",
            cause: "acquired",
            term: Some(3),
            held_for_seconds: 61,
        };
        let page = render(&Status {
            version: "1.2.3",
            identity: "pod-a".to_owned(),
            phase: "Candidate",
            leader: false,
            starting: None,
            term: Some(3),
            holder: Some("<script>\"x\" & y".to_owned()),
            last_renewal: None,
            transitions: vec![transition],
        });
        for part in [
            "<th>Version</th><td>1.2.3</td>",
            "<th>Holder of the Lease</th><td>&lt;script&gt;&quot;x&quot; &amp; y</td>",
            "<td>2026-01-02T03:04:05Z</td><td>Candidate</td><td>Leader</td><td>acquired</td><td>3</td><td>61 s</td>",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("<script") && !page.contains("Last renewal"));
    }
}
