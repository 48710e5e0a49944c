//! How deep a JSON text is nested.

/// Whether the valid JSON text `text` is nested deeper than `limit` arrays and objects.
pub(super) fn exceeds(text: &str, limit: usize) -> bool {
    // Each level costs two bytes, so that nearly every object is judged by its length.
    if text.len() / 2 <= limit {
        return false;
    }
    let mut depth = 0_usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    false
}

/// Advances past the end of a text whose opening quote has just been read.
fn skip_text(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        for limit in [1, 3, 100] {
            let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert!(!exceeds(&nested(limit), limit));
            assert!(exceeds(&nested(limit + 1), limit));
        }
    }

    #[test]
    fn neighbours_do_not_add_up_and_texts_do_not_count() {
        assert!(!exceeds("[{},{},{},{},{},[],[],[]]", 2));
        assert!(!exceeds(r#"{"[[[[[[\"{{{{{":"[[[[[[[[[[[[[\\"}"#, 2));
        assert!(exceeds(r#"{"\"":{"a":{"b":1}}}"#, 2));
    }
}
