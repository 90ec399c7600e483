//! Tables for people: columns padded to their widest cell, two spaces between.

/// Text that cannot move the cursor or colour the terminal: control characters
/// become U+FFFD. Names and payloads come from others.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Lays out `rows` below `header`. `paint` colours a padded cell, given its row,
/// column and text.
pub fn render<const N: usize>(
    header: [&str; N],
    rows: &[[String; N]],
    paint: impl Fn(usize, usize, String) -> String,
) -> String {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    push_row(
        &mut text,
        header.map(str::to_owned).iter(),
        &widths,
        |_, cell| cell,
    );
    for (index, row) in rows.iter().enumerate() {
        text.push('\n');
        push_row(&mut text, row.iter(), &widths, |column, cell| {
            paint(index, column, cell)
        });
    }
    text
}

fn push_row<'a>(
    text: &mut String,
    cells: impl ExactSizeIterator<Item = &'a String>,
    widths: &[usize],
    paint: impl Fn(usize, String) -> String,
) {
    let last = cells.len().saturating_sub(1);
    for (column, (cell, width)) in cells.zip(widths).enumerate() {
        let cell = printable(cell);
        // No trailing blanks: they would wrap on a narrow terminal.
        let padded = if column == last {
            cell
        } else {
            format!("{cell:<width$}  ")
        };
        text.push_str(&paint(column, padded));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_not_padded() {
        let rows = [
            ["a".to_owned(), "running".to_owned()],
            ["longer".to_owned(), "x".to_owned()],
        ];
        assert_eq!(
            render(["NAME", "STATUS"], &rows, |_, _, cell| cell),
            "NAME    STATUS\na       running\nlonger  x"
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let rows = [["\u{1b}[2J".to_owned()]];
        assert_eq!(render(["N"], &rows, |_, _, cell| cell), "N\n\u{fffd}[2J");
    }
}
