/** Maximum number of characters of a URL. */
const maxLength = 4_096;

/** Returns the absolute form of an http or https URL; `undefined` for other or too long texts. */
export function webUrl(text: string | undefined, base?: string): string | undefined {
  if (!text || text.length > maxLength) return undefined;
  const url = URL.parse(text.trim(), base);
  return url && ['http:', 'https:'].includes(url.protocol) ? url.href : undefined;
}
