/** Characters of a summary: enough after the first number, cut at the second. */
const [minLength, maxLength] = [200, 500];

/** Returns the beginning of a text in paragraphs: whole ones, and a cut one at a space. */
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
