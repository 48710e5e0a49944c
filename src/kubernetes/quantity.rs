//! Quantities such as `500m` and `1Gi`: are two spellings the same amount?

use serde_json::Value;

/// Whether both values are quantities of the same amount. Whatever is no quantity equals nothing.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (amount_of(left), amount_of(right)) {
        (Some(left), Some(right)) => left == right,
        _ => false,
    }
}

fn amount_of(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => amount(text),
        Value::Number(number) => amount(&number.to_string()),
        _ => None,
    }
}

/// The amount in units of 1e-9, rounded away from zero as the API server rounds; none if `text` is no quantity or
/// one that does not fit.
pub fn amount(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits: i128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let (decimal, binary) = scale(suffix)?;
    // digits × 10^exponent × 2^binary, in units of 1e-9.
    let exponent = decimal + 9 - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(1_i128.checked_shl(binary)?)?;
    let amount = match u32::try_from(exponent) {
        Ok(exponent) if scaled != 0 => scaled.checked_mul(10_i128.checked_pow(exponent)?)?,
        Ok(_) => 0,
        Err(_) => {
            let divisor = 10_i128.checked_pow(exponent.unsigned_abs())?;
            (scaled + divisor - 1) / divisor
        }
    };
    Some(if negative { -amount } else { amount })
}

/// The power of ten and the power of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let power = digits.parse::<i32>().ok().filter(|power| (-30..=30).contains(power))?;
            (power, 0)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spellings_of_one_amount_are_equal() {
        for (left, right) in [
            ("1", "1000m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1E", "1000P"),
            ("+1", "1"),
            ("0", "0Gi"),
            ("-1", "-1000m"),
            ("0.1n", "1n"),
            ("100u", "100000n"),
            ("007", "7"),
        ] {
            assert!(equal(&json!(left), &json!(right)), "{left} = {right}");
        }
        assert!(equal(&json!(2), &json!("2")), "a number is a quantity");
    }

    #[test]
    fn other_amounts_and_other_texts_are_not() {
        for (left, right) in [
            ("1", "1m"),
            ("1G", "1Gi"),
            ("1", "-1"),
            ("1M", "1m"),
            ("x", "x"),
            ("", ""),
            ("1.2.3", "1.2.3"),
        ] {
            assert!(!equal(&json!(left), &json!(right)), "{left} ≠ {right}");
        }
        for text in [
            "",
            ".",
            "-",
            "1gi",
            "1ee3",
            "e3",
            "1e",
            "1e99999999999",
            "9999999999999999999999999999999999999999",
            "1 Gi",
            "é",
        ] {
            assert_eq!(amount(text), None, "{text}");
        }
    }
}
