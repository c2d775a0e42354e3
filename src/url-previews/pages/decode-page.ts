/**
 * Number of bytes at the beginning of a page in which its character set may be named. Source: HTML Standard, 13.2.3.2.
 */
const prescannedBytes = 4_096;

/**
 * Returns the text of a page. The byte order mark decides the character set. Without it, these character sets are tried
 * in order: the character set of the `Content-Type` header, the character set of the page's `meta` element, the
 * character set of its XML declaration, and UTF-8. The first one that fits all bytes is used, otherwise Windows-1252.
 */
export function decodePage(body: Buffer, contentType: string): string {
  const byteOrderMarkCharset = charsetOfByteOrderMark(body);
  const beginning = body.toString('latin1', 0, prescannedBytes);
  const labels = byteOrderMarkCharset
    ? [byteOrderMarkCharset]
    : [charsetOf(contentType), ...charsetsIn(beginning), 'utf-8'].filter((label) => label !== undefined);
  for (const label of labels) {
    const text = decode(body, label, true);
    if (text !== undefined) return text;
  }
  return decode(body, byteOrderMarkCharset ?? 'windows-1252', false) ?? body.toString('latin1');
}

function charsetOfByteOrderMark(body: Buffer): string | undefined {
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8';
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be';
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le';
  return undefined;
}

const charsetOf = (contentType: string) => /;\s*charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(contentType)?.[1];

/** A page that can be searched as ASCII is not in UTF-16, whatever it claims. Source: HTML Standard, 13.2.3.2. */
const correctedLabel = (label: string) => (/^utf-?16/i.test(label) ? 'utf-8' : label);

function charsetsIn(beginning: string): string[] {
  const labels = [
    /<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]{1,40})/i.exec(beginning)?.[1],
    /^\s*<\?xml\s[^>]{0,100}?encoding\s*=\s*["']([\w:.-]{1,40})/i.exec(beginning)?.[1],
  ];
  return labels.filter((label) => label !== undefined).map(correctedLabel);
}

/** @returns `undefined` for an unknown character set and, if `fatal`, for invalid bytes */
function decode(body: Buffer, label: string, fatal: boolean): string | undefined {
  try {
    // `stream` accepts an incomplete last character, where a large page was cut.
    return new TextDecoder(label, { fatal }).decode(body, { stream: true });
  } catch {
    return undefined;
  }
}
