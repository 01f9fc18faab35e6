"""Shows verdicts and figures: text, Markdown, JUnit, HTML, pictures."""
