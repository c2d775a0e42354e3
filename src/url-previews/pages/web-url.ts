/** Maximum number of characters of a URL. */
const maxLength = 4_096;

/** Returns the absolute form of a URL; `undefined` unless it is http or https. */
export function webUrl(text: string | undefined, base?: string): string | undefined {
  if (!text || text.length > maxLength) return undefined;
  const url = URL.parse(text.trim(), base);
  return url && ['http:', 'https:'].includes(url.protocol) ? url.href : undefined;
}
