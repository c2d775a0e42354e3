/** Characters of a summary: no paragraph is added after the first number, and the text is cut at the second. */
const [minLength, maxLength] = [200, 500];

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
