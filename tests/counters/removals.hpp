// Included before a rung's source in which each call that synchronises stands as
// `(tilegate_removes(<its number>) ? void() : <the call>)`.
#pragma once

// Whether the number is TILEGATE_REMOVED. At the end of the program the numbers that it was asked
// for are in the file TILEGATE_REACHED.
bool tilegate_removes(unsigned number);
