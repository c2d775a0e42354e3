/** Maximum number of characters of a report's text. Longer texts are cut off before they are scrubbed. */
const maxLength = 1_000;

/** Quoted names of properties, tables and columns, which are parts of the program. */
const codeNames =
  /\b(reading|setting|column|relation|table|constraint|index|function) (['"])([\w.$]{1,60})\2/g;

/** Character that stands in for the quotation mark before one of `codeNames` until the other quotations are removed. */
const opening = '\u0001';

/** Character that stands in for the quotation mark after one of `codeNames`. */
const closing = '\u0002';

/** Patterns of private values with their replacements, in the order of replacing. */
const replacements: readonly (readonly [RegExp, string])[] = [
  // From the first quotation mark to the last one: parsers quote their input, which may contain quotation marks.
  [/".*"|".*/gs, '"…"'],
  [/(?<!\w)'.*'|(?<!\w)'.*/gs, "'…'"],
  [/`.*`|`.*/gs, '`…`'],
  [/(https?:\/\/)[^\s/]*@/g, '$1'],
  [/(https?:\/\/[^\s?#/]+)[^\s)]*/g, '$1/…'],
  [/(?<![^\s(=,])[@!#$+][^\s:,)]+(?::[^\s,)]+)?/g, '<id>'],
  [/[^\s@<>(=,]+@[^\s@<>),]+/g, '<address>'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, '<ip>'],
  [/(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])/gi, '<ip>'],
  [/(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{16,}/g, '<secret>'],
  [/\d{7,}/g, '<number>'],
];

/**
 * Returns an error message without the parts that may identify users or be secret: ids, mail addresses, phone numbers,
 * IP addresses, tokens, paths of URLs, and quotations, which can be parts of requests and messages.
 */
export function scrub(text: string): string {
  let scrubbed = text.slice(0, maxLength).replace(codeNames, `$1 ${opening}$3${closing}`);
  for (const [pattern, replacement] of replacements) scrubbed = scrubbed.replace(pattern, replacement);
  return scrubbed.replaceAll(opening, "'").replaceAll(closing, "'");
}
