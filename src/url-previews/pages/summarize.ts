/** Characters of a summary from which on no further paragraph is added. */
const minLength = 200;

/** Maximum characters of a summary; longer ones are cut. */
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
