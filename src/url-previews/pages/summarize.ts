/** Minimum number of characters of a summary: the next paragraph is added to a shorter summary. */
const minLength = 200;

/** Maximum number of characters of a summary; a longer summary is cut. */
const maxLength = 500;

/** Returns a summary of a text: its first paragraphs, cut at a space when they are too long. */
export function summarize(paragraphs: readonly string[]): string {
  let text = '';
  for (const paragraph of paragraphs) {
    if (text.length >= minLength) break;
    text += text === '' ? paragraph : `\n\n${paragraph}`;
  }
  if (text.length <= maxLength) return text;
  const cut = text.slice(0, maxLength);
  const space = cut.search(/\s\S*$/);
  return `${(space >= minLength ? cut.slice(0, space) : cut).toWellFormed()}…`;
}
