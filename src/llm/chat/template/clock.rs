//! The time for templates, in UTC.

use super::fault::{Result, unsupported};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The seconds since 1970 in UTC.
pub(super) fn now() -> i64 {
    #[cfg(target_arch = "wasm32")]
    return (js_sys::Date::now() / 1000.0).floor() as i64;
    #[cfg(not(target_arch = "wasm32"))]
    {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs() as i64)
    }
}

/// A day of the calendar.
#[derive(Debug, PartialEq)]
struct Date {
    year: i64,
    /// From 0 to 11.
    month: usize,
    /// From 1.
    day: i64,
    /// From 0.
    day_of_year: i64,
    /// From 0, Sunday.
    weekday: usize,
}

impl Date {
    /// The date that is `days` days after 1 January 1970, by the algorithm of Howard Hinnant's "chrono-compatible low-level
    /// date algorithms": its years begin in March, so that a leap day is the last day of one.
    fn new(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_from_march + 2) / 153;
        let day = day_from_march - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize];
        let leap_day = i64::from(is_leap && month > 1);
        Self {
            year,
            month: month as usize,
            day,
            day_of_year: before + leap_day + day - 1,
            weekday: (days + 4).rem_euclid(7) as usize,
        }
    }
}

/// The text of a time by a format of `strftime`.
pub(super) fn strftime(now: i64, format: &str) -> Result<String> {
    let (mut text, mut rest) = (String::new(), format);
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // glibc writes numbers without zeros after a `-`.
        let (is_short, kind) = match rest.strip_prefix('-') {
            Some(after) => (true, after.chars().next()),
            None => (false, rest.chars().next()),
        };
        let Some(kind) = kind else {
            return unsupported("the format `%` of `strftime_now`");
        };
        rest = &rest[usize::from(is_short) + kind.len_utf8()..];
        let field = field(now, kind)?;
        let is_number = is_short && field.bytes().all(|byte| byte.is_ascii_digit());
        let short = field.trim_start_matches(['0', ' ']);
        text.push_str(match is_number {
            true if short.is_empty() => "0",
            true => short,
            false => &field,
        });
    }
    text.push_str(rest);
    Ok(text)
}

fn field(now: i64, kind: char) -> Result<String> {
    let date = Date::new(now.div_euclid(86_400));
    let second = now.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let month = date.month + 1;
    let half = (hour + 11) % 12 + 1;
    // The week that a day is in, if weeks begin with that weekday.
    let week = |first: usize| (date.day_of_year + 7 - ((date.weekday + 7 - first) % 7) as i64) / 7;
    Ok(match kind {
        'Y' => date.year.to_string(),
        'y' => format!("{:02}", date.year.rem_euclid(100)),
        'm' => format!("{month:02}"),
        'd' => format!("{:02}", date.day),
        'e' => format!("{:2}", date.day),
        'B' => MONTHS[date.month].to_owned(),
        'b' | 'h' => MONTHS[date.month][..3].to_owned(),
        'A' => DAYS[date.weekday].to_owned(),
        'a' => DAYS[date.weekday][..3].to_owned(),
        'w' => date.weekday.to_string(),
        'u' => ((date.weekday + 6) % 7 + 1).to_string(),
        'j' => format!("{:03}", date.day_of_year + 1),
        'U' => format!("{:02}", week(0)),
        'W' => format!("{:02}", week(1)),
        'H' => format!("{hour:02}"),
        'I' => format!("{half:02}"),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'f' => "000000".to_owned(),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        's' => now.to_string(),
        'F' => strftime(now, "%Y-%m-%d")?,
        'T' | 'X' => strftime(now, "%H:%M:%S")?,
        'R' => strftime(now, "%H:%M")?,
        'D' | 'x' => strftime(now, "%m/%d/%y")?,
        'r' => strftime(now, "%I:%M:%S %p")?,
        'c' => strftime(now, "%a %b %e %H:%M:%S %Y")?,
        // `datetime.now()` knows no time zone.
        'Z' | 'z' => String::new(),
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '%' => "%".to_owned(),
        _ => return unsupported(format!("the format `%{kind}` of `strftime_now`")),
    })
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn times_are_written_as_python_writes_them() {
        let format = "%Y-%m-%d %H:%M:%S %A %a %B %b %-d %j %p %I %y %w %u %U %W %%";
        for (now, text) in [
            (
                0,
                "1970-01-01 00:00:00 Thursday Thu January Jan 1 001 AM 12 70 4 4 00 00 %",
            ),
            (
                1_709_210_096,
                "2024-02-29 12:34:56 Thursday Thu February Feb 29 060 PM 12 24 4 4 08 09 %",
            ),
            (
                1_735_689_599,
                "2024-12-31 23:59:59 Tuesday Tue December Dec 31 366 PM 11 24 2 2 52 53 %",
            ),
            (
                951_868_800,
                "2000-03-01 00:00:00 Wednesday Wed March Mar 1 061 AM 12 00 3 3 09 09 %",
            ),
        ] {
            assert_eq!(strftime(now, format).unwrap(), text);
        }
        assert!(strftime(0, "%Q").is_err());
    }
}
