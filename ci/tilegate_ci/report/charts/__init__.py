"""Every chart, as an Altair specification: it draws the README's picture and the page's chart.

Places are computed for a width, so that labels stand beside what they name and never on each
other. The page has each chart in two widths, for a screen and for a phone."""
